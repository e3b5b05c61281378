"""Again with one change: a job's file under the next free name, with the cursor in the command."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from jobs.dialects.base import Position, Refused
from jobs.dialects.document import Document
from jobs.models import Job, JobFile
from jobs.submission.clones import commit_of, with_resolved_commit
from quotas.models import User

LONGEST_NAME: Final = 256
MOST_NAMES: Final = 1000
NUMBERED: Final = re.compile(r"(?P<stem>.+)-(?P<number>[1-9]\d{0,5})")


OPENING: Final = re.compile(r"(?:- +)?[\"']?")
"""The characters between the beginning of a command's value and its first letter."""


@dataclass(frozen=True, slots=True)
class JobCopy:
    """A job file to begin with; `cursor` is where its command begins, when that is known."""

    document: Document
    cursor: Position | None


@dataclass(frozen=True, slots=True)
class CodeChoice:
    """Code that comes from a branch, and the commit of it that the job had; `newest`: that is left out."""

    branch: str
    commit: str
    newest: bool = False


SAME, NEWEST = "same", "newest"
"""The code of a copy: the job's commit, or the newest of its branch; else that of the file."""


def copy_job(user: User, job: Job, code: str = "") -> JobCopy:
    """The job's file as the beginning of the next one.  Secret values are placeholders in it."""
    document = Document(JobFile.objects.get(job=job).text, job.dialect)
    if code == SAME:
        document = with_resolved_commit(job, document)
    document = _rename(document, free_name(user, job.name), newest=code == NEWEST)
    return JobCopy(document, _find_command(document))


def code_choice(job: Job, requested: str = "") -> CodeChoice | None:
    """Return the choice between the job's commit and its branch; None without a known commit."""
    try:
        code = Document(JobFile.objects.get(job=job).text, job.dialect).parsed.spec.code
    except Refused:
        return None
    commit = code and code.branch and (code.commit or commit_of(job))
    if code is None or not commit:
        return None
    return CodeChoice(
        code.branch, commit, newest=requested == NEWEST or (requested != SAME and not code.commit)
    )


def _find_command(document: Document) -> Position | None:
    """Return the position of the first command, inside its list and its quotes."""
    try:
        spec = document.parsed.spec
    except Refused:
        return None
    text, place = document.text, document.places.of_field("/roles/0/command")
    if place is None:
        return None
    line, column = place
    rest = text.split("\n")[line - 1][column - 1 :]
    opening = OPENING.match(rest)
    begins = len(opening[0]) if opening else 0
    words = spec.roles[0].command.split("\n", 1)[0]
    if not rest.startswith(words, begins) and (at := text.find(words)) > 0:
        # The place of another role, or of something around it: the command's own words say better.
        return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return line, column + begins


def free_name(user: User, name: str) -> str:
    """`name` with the next number, which none of the person's jobs has: train, train-2, train-3."""
    numbered = NUMBERED.fullmatch(name)
    stem = (numbered["stem"] if numbered else name)[: LONGEST_NAME - 7]
    mine = Job.objects.filter(owner=user)
    # The newest jobs tell nearly always; whether an older one has the name, an index tells.
    found = (
        NUMBERED.fullmatch(each) for each in mine.order_by("-pk").values_list("name", flat=True)[:MOST_NAMES]
    )
    number = max([1, *(int(each["number"]) for each in found if each and each["stem"] == stem)]) + 1
    while mine.filter(name=f"{stem}-{number}").exists():
        number *= 2
    return f"{stem}-{number}"


def _rename(document: Document, name: str, *, newest: bool) -> Document:
    try:
        parsed = document.parsed
    except Refused:
        return document  # it ran once; what has changed since, the form will say
    change: dict[str, object] = {"name": name}
    if newest and parsed.spec.code is not None and parsed.spec.code.branch:
        change["code"] = parsed.spec.code.model_copy(update={"commit": ""})
    return document.render(parsed.spec.model_copy(update=change)).document

"""Again with one change: a job's file under the next free name, with the cursor in the command."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from jobs import dialects
from jobs.dialects.base import Position, Refused
from jobs.dialects.places import Places
from jobs.models import Job, JobFile
from jobs.ran import as_it_ran, commit_of
from quotas.models import User

LONGEST_NAME: Final = 256
NUMBERED: Final = re.compile(r"(?P<stem>.+)-(?P<number>[1-9]\d{0,5})")


OPENING: Final = re.compile(r"(?:- +)?[\"']?")
"""What stands before a command's first letter where its value begins."""


@dataclass(frozen=True, slots=True)
class Again:
    """A text to begin with; `cursor` is where its command begins, when that is known."""

    text: str
    cursor: Position | None


@dataclass(frozen=True, slots=True)
class CodeChoice:
    """Code that comes from a branch, and the commit of it that the job had; `newest`: that is left out."""

    branch: str
    commit: str
    newest: bool = False


SAME, NEWEST = "same", "newest"
"""Which code a copy has: what the job ran, or what its branch has by then.  As the file says, otherwise."""


def again(user: User, job: Job, code: str = "") -> Again:
    """The job's file as the beginning of the next one.  Secret values are placeholders in it."""
    text = JobFile.objects.get(job=job).text
    if code == SAME:
        text = as_it_ran(job, text)
    text = _renamed(text, job, free_name(user, job.name), newest=code == NEWEST)
    return Again(text, _command(text, job.dialect))


def code_choice(job: Job, asked: str = "") -> CodeChoice | None:
    """What there is to choose of the job's code; None where no commit of a branch is known."""
    try:
        code = dialects.get(job.dialect).parse(JobFile.objects.get(job=job).text).spec.code
    except Refused:
        return None
    commit = code and code.branch and (code.commit or commit_of(job))
    if code is None or not commit:
        return None
    return CodeChoice(code.branch, commit, newest=asked == NEWEST or (asked != SAME and not code.commit))


def _command(text: str, dialect: str) -> Position | None:
    """Where the first command begins: inside its list and its quotes, where it has them."""
    try:
        spec = dialects.get(dialect).parse(text).spec
    except Refused:
        return None
    place = Places(text, dialects.get(dialect), spec, dialects.fields(dialect)).of_field("/roles/0/command")
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
    """`name` with the next number that none of the person's jobs has: train, train-2, train-3."""
    numbered = NUMBERED.fullmatch(name)
    stem = (numbered["stem"] if numbered else name)[: LONGEST_NAME - 7]
    taken = Job.objects.filter(owner=user, name__startswith=f"{stem}-").order_by("-pk")
    found = (NUMBERED.fullmatch(each) for each in taken.values_list("name", flat=True)[:1000])
    numbers = [int(each["number"]) for each in found if each and each["stem"] == stem]
    return f"{stem}-{max([1, *numbers]) + 1}"


def _renamed(text: str, job: Job, name: str, *, newest: bool) -> str:
    dialect = dialects.get(job.dialect)
    try:
        parsed = dialect.parse(text)
    except Refused:
        return text  # it ran once; what has changed since, the form will say
    change: dict[str, object] = {"name": name}
    if newest and parsed.spec.code is not None and parsed.spec.code.branch:
        change["code"] = parsed.spec.code.model_copy(update={"commit": ""})
    return dialect.render(parsed.spec.model_copy(update=change), parsed.extras, base=text).text

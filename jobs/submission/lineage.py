"""Lineage of a job: the jobs that it was copied from, its copies, and the change of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.models import Job, JobFile
from jobs.submission.differences import Change, Line, changes, line_difference, one_line
from quotas.access import Verb, can, those, workspaces_of
from quotas.models import User

MOST: Final = 25
"""Steps, and jobs made from one, that a page shows; the others are on the next."""

LONGEST_TEXT: Final = 200_000
"""Characters; texts that are longer are compared by their fields alone."""


@dataclass(frozen=True, slots=True)
class HistoryStep:
    """A job of the chain; `line` is its change to the job that it was copied from.

    `readable` is whether the person may see the files of both; None for `job` is one that was deleted.
    """

    job: Job | None
    line: str = ""
    readable: bool = False
    first: bool = False


@dataclass(frozen=True, slots=True)
class Lineage:
    """The chain back from a job, the latest first; `earlier` is the next beyond it, `is_hidden` if unseen."""

    steps: list[HistoryStep]
    earlier: Job | None
    is_hidden: bool


def trace(user: User, job: Job) -> Lineage:
    """Return the jobs that this one was copied from, itself first."""
    chain, earlier, is_hidden = _chain(user, job)
    steps = _build_steps(user, chain, whole=earlier is None and not is_hidden)
    return Lineage(steps, earlier, is_hidden)


def _chain(user: User, job: Job) -> tuple[list[Job], Job | None, bool]:
    """Return the job and its origins, the next origin beyond the page, and whether that is hidden.

    One that was deleted is part of the chain all the same; what is in a workspace that the person does not
    belong to ends it.
    """
    known = Job.objects.filter(workspace__in=workspaces_of(user)).select_related("owner", "workspace")
    chain, current = [job], job
    while current.origin_id is not None:
        before = known.filter(pk=current.origin_id).first()
        if before is None:
            return chain, None, True
        if len(chain) == MOST and before.deleted_at is None:
            return chain, before, False
        chain.append(before)
        current = before
    return chain, None, False


def _build_steps(user: User, chain: list[Job], *, whole: bool) -> list[HistoryStep]:
    specs = _files(user, chain)
    steps = []
    for at, job in enumerate(chain):
        before = chain[at + 1] if at + 1 < len(chain) else None
        if job.deleted_at is not None:
            steps.append(HistoryStep(None))
        else:
            first = before is None and whole
            steps.append(
                HistoryStep(
                    job, _describe(specs, before, job), before is None or _both(specs, before, job), first
                )
            )
    return steps


def list_changes(user: User, job: Job, made: list[Job]) -> list[HistoryStep]:
    """Return each of the job's copies with what it changed."""
    specs = _files(user, [job, *made])
    return [HistoryStep(each, _describe(specs, job, each), _both(specs, job, each)) for each in made]


def _files(user: User, jobs: list[Job]) -> Mapping[int, JobFile]:
    """The files that the person may read."""
    readable = those(user, Verb.READ, [job for job in jobs if job.deleted_at is None])
    return JobFile.objects.in_bulk([job.pk for job in readable])


def _both(files: Mapping[int, JobFile], before: Job, after: Job) -> bool:
    return before.pk in files and after.pk in files


def _describe(files: Mapping[int, JobFile], before: Job | None, after: Job) -> str:
    if before is None or not _both(files, before, after):
        return ""
    return one_line(changes(files[before.pk].spec, files[after.pk].spec))


def list_descendants(user: User, job: Job, before: str = "") -> list[Job]:
    """Return the copies of the job, the latest first, one more than a page shows; from `before` on."""
    rows = (
        Job.objects.visible_to(user).filter(origin=job).select_related("owner", "workspace").order_by("-pk")
    )
    last = rows.filter(public_id=before).first() if before else None
    return list((rows.filter(pk__lt=last.pk) if last else rows)[: MOST + 1])


def describe_change(user: User, job: Job) -> str:
    """Return the change to the job that it was copied from, where the person may read both."""
    before = Job.objects.visible_to(user).filter(pk=job.origin_id).first() if job.origin_id else None
    if before is None or not can(user, Verb.READ, before):
        return ""
    files = JobFile.objects.in_bulk([before.pk, job.pk])
    return _describe(files, before, job)


def compare_with_job(before: Job, document: Document) -> dict[str, Any]:
    """The difference of a job file to a job: by field, where it can be read, and line by line."""
    file = JobFile.objects.get(job=before)
    found: tuple[Change, ...] | None = None
    named = before.dialect
    try:
        parsed, named = document.parsed, document.dialect
        theirs = Document(file.text, before.dialect).parsed
        found = tuple(each for each in changes(theirs.spec, parsed.spec) if each.pointer != "/name")
    except Refused:
        pass
    lines = _lines(file.text, document.text) if named == before.dialect else []
    return {"origin": before, "changes": found, "lines": lines}


def _lines(before: str, after: str) -> list[Line]:
    if before == after or max(len(before), len(after)) > LONGEST_TEXT:
        return []
    return line_difference(before.splitlines(), after.splitlines())

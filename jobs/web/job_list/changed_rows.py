"""Rows of the list of jobs that have changed since a page was drawn.

A page sends the version of each row that it shows and that of the table around them.  Where only rows differ,
the answer is these rows: a change that 500 people see costs each of them one row instead of a whole list.
Versions are digests of what a row is made of, so that nothing is stored, and nothing is shared by viewers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import get_language

from jobs.models import Job

ROW: Final = "row"
TABLE: Final = "table"
"""Names of the form fields that carry the versions; that of a row is `ID.VERSION`."""

DIGITS: Final = 16


@dataclass(frozen=True, slots=True)
class ListVersion:
    """The version of a table, and those of its rows by the id of the job, in their order."""

    table: str
    rows: Mapping[str, str]

    def find_changed(self, shown: ListVersion) -> frozenset[str] | None:
        """Return the ids of the rows that differ from those `shown`; None where the whole list is due."""
        if shown.table != self.table or list(shown.rows) != list(self.rows):
            return None
        return frozenset(job_id for job_id, version in self.rows.items() if shown.rows[job_id] != version)


def parse_shown(query: QueryDict) -> ListVersion:
    """Return the versions that a page sends; without any, nothing is shown."""
    rows = (text.partition(".") for text in query.getlist(ROW))
    return ListVersion(query.get(TABLE, ""), {job_id: version for job_id, _dot, version in rows})


def list_version(jobs: Sequence[Job], extras: Mapping[str, Any], *around: object) -> ListVersion:
    """Return the version of a list: its jobs, what their rows show beside them, and what is `around` them.

    `extras` are what `row.html` takes by the key of a job: sets of keys, or values by key.  Owner, workspace,
    cluster and quota have to be loaded.
    """
    table = _digest(get_language(), timezone.get_current_timezone_name(), *around)
    return ListVersion(table, {job.public_id: _row_version(job, extras) for job in jobs})


def _row_version(job: Job, extras: Mapping[str, Any]) -> str:
    columns = {name: value for name, value in vars(job).items() if name != "_state"}
    places = (job.owner.get_username(), job.workspace.title, job.cluster.title, job.quota.title)
    besides = [
        values.get(job.pk) if isinstance(values, Mapping) else job.pk in values for values in extras.values()
    ]
    return _digest(columns, places, besides)


def _digest(*parts: object) -> str:
    return sha256(repr(parts).encode()).hexdigest()[:DIGITS]

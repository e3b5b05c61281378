"""Jobs of the ledger's holders: requests and reservations know a job by the key of its attempt."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from jobs.models import Attempt, Job
from quotas.admin.base import MachineWritten
from quotas.models import Request, Reservation

NAMED: Final = 20
"""So many jobs are named in a sentence; the others are counted."""


def find_jobs(holders: Collection[str]) -> Mapping[str, Job]:
    """Return the jobs of the holders, with their owners; one query."""
    rows = Attempt.objects.filter(key__in=holders).select_related("job__owner")
    return {row.key: row.job for row in rows}


def name_jobs(holders: Sequence[str]) -> str:
    """Return the names of the holders' jobs with their owners, the first ones only where there are many."""
    jobs = find_jobs(holders[:NAMED])
    names = [
        f"{jobs[holder].name} ({jobs[holder].owner.get_username()})" if holder in jobs else holder
        for holder in holders[:NAMED]
    ]
    if more := len(holders) - len(names):
        names.append(ngettext("%(count)d more", "%(count)d more", more) % {"count": more})
    return ", ".join(names)


class _NamesJob(MachineWritten):
    """Rows of the ledger under the name of their job; `holder_path` leads from a row to its holder."""

    holder_path = "holder"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Have the job's name come with each row."""
        attempts = Attempt.objects.filter(key=OuterRef(self.holder_path))
        name = Subquery(attempts.values("job__name")[:1])
        rows: QuerySet[Any] = super().get_queryset(request).annotate(job_name=name)
        return rows

    @admin.display(description=gettext_lazy("Job"))
    def job(self, row: Any) -> str:
        """Return the name of the job; a request without one is named so."""
        return str(row.job_name or _("(deleted job)"))


@admin.register(Request)
class RequestAdmin(_NamesJob):
    """Waiting requests, in the order of admission."""

    list_display = (
        "job",
        "owner",
        "state",
        "cluster",
        "quota",
        "priority",
        "idle",
        "held",
        "since",
        "holder",
    )
    list_filter = ("state", "cluster")
    list_select_related = ("cluster", "quota", "owner")
    search_fields = ("holder", "owner__username")


@admin.register(Reservation)
class ReservationAdmin(_NamesJob):
    """Active reservations."""

    holder_path = "request__holder"
    list_display = (
        "job",
        "owner",
        "active",
        "cluster",
        "quota",
        "amounts",
        "borrowed",
        "created_at",
        "started_at",
        "asked_back_at",
        "released_at",
        "request",
    )
    list_filter = ("active", "cluster")
    list_select_related = ("request__owner", "cluster", "quota")
    search_fields = ("request__holder",)

    @admin.display(description=gettext_lazy("owner"))
    def owner(self, row: Reservation) -> str:
        """Return who submitted the job."""
        return row.request.owner.get_username()

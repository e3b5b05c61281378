"""Filters of the admin's list of jobs."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import admin
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _text
from django.utils.translation import gettext_lazy as _

from jobs.messages import state_label
from jobs.models import Attempt, Job
from jobs.models.jobs import is_unfinished
from jobs.states import FINAL, ReasonCode, State
from quotas.admission import queue_snapshot
from quotas.models import QueueSnapshot, User

MOST_OWNERS: Final = 100
GPU_RANGES: Final = {"0": (0, 0), "1": (1, 1), "2-7": (2, 7), "8+": (8, 1_000_000)}
PLACES: Final = {"1-10": (1, 10), "11-50": (11, 50), "51+": (51, 1_000_000)}
APART: Final = "apart"


class StateFilter(admin.SimpleListFilter):
    """A filter by state; jobs that have not ended have an index of their own."""

    title = _("state")
    parameter_name = "state__exact"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(state.value, state_label(state)) for state in State]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        chosen = self.value()
        if chosen is None or chosen not in {state.value for state in State}:
            return queryset
        if State(chosen) not in FINAL:
            queryset = queryset.filter(is_unfinished())
        return queryset.filter(state=chosen)


class ReasonFilter(admin.SimpleListFilter):
    """A filter of attempts by the code of their reason; the codes are not collected from all rows."""

    title = _("reason")
    parameter_name = "reason_code__exact"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(code.value, code.value) for code in ReasonCode]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Attempt]) -> QuerySet[Attempt]:
        return queryset.filter(reason_code=self.value()) if self.value() else queryset


class PriorityFilter(admin.SimpleListFilter):
    """A filter by priority."""

    title = _("priority")
    parameter_name = "priority"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(str(number), str(number)) for number in range(9, 0, -1)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        chosen = self.value() or ""
        return queryset.filter(priority=int(chosen)) if chosen.isdecimal() else queryset


class GpuFilter(admin.SimpleListFilter):
    """A filter by the number of GPUs."""

    title = _("GPUs")
    parameter_name = "gpus"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name.replace("-", "–")) for name in GPU_RANGES]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        found = GPU_RANGES.get(self.value() or "")
        return queryset.filter(gpus__range=found) if found else queryset


class OwnerFilter(admin.SimpleListFilter):
    """A filter by owner: those who have jobs that have not ended."""

    title = _("owner")
    parameter_name = "owner"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        unfinished = Job.objects.filter(owner=OuterRef("pk"), state__in=sorted(set(State) - FINAL))
        people = User.objects.filter(Exists(unfinished)).order_by("username")  # an index for each of them
        return [(name, name) for name in people.values_list("username", flat=True)[:MOST_OWNERS]]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        return queryset.filter(owner__username=self.value()) if self.value() else queryset


class PlaceFilter(admin.SimpleListFilter):
    """A filter by the position in the cluster's queue."""

    title = _("position")
    parameter_name = "position"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [*((name, name.replace("-", "–")) for name in PLACES), (APART, _text("Not in line"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        chosen = self.value()
        if chosen not in {*PLACES, APART}:
            return queryset
        least, most = PLACES.get(chosen or "", (0, 0))
        clusters = list(QueueSnapshot.objects.values_list("cluster_id", flat=True))
        holders = [
            place.holder
            for queue in queue_snapshot.queues_of(clusters).values()
            for place in queue_snapshot.places_in(queue)
            if (place.on_cluster is None if chosen == APART else least <= (place.on_cluster or 0) <= most)
        ]
        return queryset.filter(Q(pk__in=_jobs_of(holders)), state=State.QUEUED)


def _jobs_of(holders: list[str]) -> list[int]:
    """Return the keys of the jobs of these holders."""
    keys: list[int] = []
    for first in range(0, len(holders), 500):
        rows = Attempt.objects.filter(key__in=holders[first : first + 500])
        keys += rows.values_list("job_id", flat=True)
    return keys[:5000]

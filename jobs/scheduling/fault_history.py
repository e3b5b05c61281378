"""Earlier faults of a job, by which the next one is decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils import timezone

from jobs.fault_tolerance.decisions import WINDOW, Decision, Fault, decide
from jobs.fault_tolerance.policy import FaultPolicy
from jobs.models import Attempt, ReplicaRestart


@dataclass(frozen=True, slots=True)
class FaultHistory:
    """Faults of a job and when each was decided, in their order."""

    faults: Sequence[Fault]
    times: Sequence[datetime | None]

    @property
    def recent(self) -> int:
        """Return how many there were within WINDOW."""
        since = timezone.now() - WINDOW
        return sum(at is not None and at > since for at in self.times)

    def decide(self, policy: FaultPolicy, fault: Fault) -> Decision:
        """Decide about the next one, by the table and by how often the job may be restarted in WINDOW."""
        is_window_spent = self.recent >= settings.CONSOLE_FAULT_RESTARTS_PER_DAY
        return decide(policy, fault, self.faults, is_window_spent=is_window_spent)


def list_earlier(attempt: Attempt, fault: Fault) -> FaultHistory:
    """Return the faults of earlier attempts, and those after which the same replica was started again alone.

    Replicas that failed with it don't count: the failure of one may be the failure of all.
    """
    attempts = Attempt.objects.filter(job=attempt.job_id, number__lt=attempt.number, fault__isnull=False)
    rows: list[tuple[tuple[int, bool, int], Any, datetime | None]] = [
        ((number, True, pk), known, at)
        for number, pk, known, at in attempts.values_list("number", "pk", "fault", "ended_at")
    ]
    if fault.index is not None:
        restarts = ReplicaRestart.objects.filter(
            attempt__job=attempt.job_id,
            attempt__number__lte=attempt.number,
            role=fault.role,
            index=fault.index,
            restarts=True,
        )
        rows += [
            ((number, False, pk), known, at)
            for number, pk, known, at in restarts.values_list("attempt__number", "pk", "fault", "created_at")
        ]
    rows.sort(key=lambda row: row[0])
    return FaultHistory([Fault.from_json(row[1]) for row in rows], [row[2] for row in rows])

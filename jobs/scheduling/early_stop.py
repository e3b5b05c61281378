"""Early stop of a sweep's jobs by the median rule.

A job is stopped once its best value of the objective is worse than the median of the best values that the
sweep's other jobs had by the same step (Golovin et al., Google Vizier, KDD 2017, section 3.2.2, with the best
value in place of the running average).  A check is claimed in database time, so that one of several workers
makes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import median
from typing import Final

import structlog
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from jobs.lifecycle import transitions
from jobs.live import triggers
from jobs.models import Attempt, Job, Sweep, SweepRun, TrainingSeries
from jobs.models.jobs import is_unfinished
from jobs.states import EndKind, State
from jobs.submission.sweeps.commands import latest
from jobs.training_metrics.results import load_buckets
from jobs.training_metrics.series import Bucket

log = structlog.get_logger(__name__)

PAUSE: Final = timedelta(seconds=20)
"""Between two checks of a sweep."""

_LONGEST_NAME: Final = 100
"""Of the metric in the evidence, which has to fit into `Attempt.end_why`."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a job is stopped: its best value by a step, and the median of so many other jobs' ones."""

    step: float
    best: float
    median: float
    jobs: int


def judge_sweeps() -> None:
    """Stop the jobs that the median rule condemns, in each sweep whose turn it is."""
    running = SweepRun.objects.filter(is_unfinished("job__"), job__state=State.RUNNING.value).order_by()
    turn = Q(judged_at=None) | Q(judged_at__lt=Now() - PAUSE)
    for sweep in list(Sweep.objects.filter(turn, pk__in=running.values("sweep"), stop_after__isnull=False)):
        if Sweep.objects.filter(turn, pk=sweep.pk).update(judged_at=Now()):
            _judge(sweep)


def _judge(sweep: Sweep) -> None:
    jobs = {run.job_id: run.job for run in latest(sweep)}
    running = {pk: job for pk, job in jobs.items() if job.state == State.RUNNING}
    rows = list(TrainingSeries.objects.filter(job__in=jobs, name=sweep.objective))
    due = [row for row in rows if row.job_id in running and row.last_step >= (sweep.stop_after or 0)]
    if not due or len(rows) <= sweep.stop_jobs:
        return
    buckets = load_buckets(rows)
    for row in due:
        others = [each for each in rows if each.job_id != row.job_id and each.axis == row.axis]
        found = find_evidence(sweep, row, others, buckets)
        if found is not None:
            _stop(sweep, running[row.job_id], found)


def find_evidence(
    sweep: Sweep,
    row: TrainingSeries,
    others: Sequence[TrainingSeries],
    buckets: Mapping[int, Sequence[Bucket]],
) -> Evidence | None:
    """Return why the job of a series is to be stopped; None where it is not.

    `buckets` are the points of each series.
    """
    step = row.last_step
    known = [
        best
        for other in others
        if other.last_step >= step
        and (best := _best_by(buckets.get(other.pk, ()), step, sweep.goal)) is not None
    ]
    own = _best_by(buckets.get(row.pk, ()), step, sweep.goal)
    if own is None or len(known) < sweep.stop_jobs:
        return None
    middle = median(known)
    is_worse = own > middle if sweep.goal == Sweep.Goal.MIN else own < middle
    return Evidence(step, own, middle, len(known)) if is_worse else None


def _best_by(buckets: Sequence[Bucket], step: float, goal: str) -> float | None:
    """Return the best value up to a step; None where there is none."""
    reached = [bucket for bucket in buckets if bucket[0] <= step]
    if not reached:
        return None
    if goal == Sweep.Goal.MIN:
        return min(bucket[2] for bucket in reached)
    return max(bucket[3] for bucket in reached)


def _stop(sweep: Sweep, job: Job, found: Evidence) -> None:
    evidence = {
        "metric": sweep.objective[:_LONGEST_NAME],
        "jobs": found.jobs,
        **{name: f"{getattr(found, name):.6g}" for name in ("step", "best", "median")},
    }
    with transaction.atomic():
        now = transitions.lock_job(job.pk)
        attempt = Attempt.objects.get(job=now, number=now.attempt_number)
        if State(now.state) is not State.RUNNING:
            return
        if transitions.want_end(now, attempt, EndKind.EARLY_STOP, why=json.dumps(evidence)):
            log.info("early_stop", attempt=attempt.key, **evidence)
            triggers.trigger_on_commit("observe", now.cluster_id)

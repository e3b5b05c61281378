"""Idle jobs: measured, reported to their owners, and ended by their policies.

A measurement of a cluster is claimed in database time, so that one of several workers measures.  An unknown
use is never idle: an attempt that could not be measured, or a gap between measurements, begins its time anew.
Warning and end are single conditional UPDATEs; a worker may be killed between any two of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.db.models.lookups import Exact
from django.utils import timezone

from jobs import notifications
from jobs.backends.base import Backend, Handle, Unreachable
from jobs.backends.measures import MeasuredElsewhere, Measuring, Transferred, Use
from jobs.backends.metrics_source import MetricsSource
from jobs.clusters import backend_for
from jobs.lifecycle import transitions
from jobs.live import triggers
from jobs.models import Attempt, Event, Idleness, Job, JobFile, MeasuredCluster, Replica, ReplicaUsage
from jobs.models.usage import Sample
from jobs.scheduling import activity, alerts, prometheus
from jobs.scheduling.usage_samples import RATE_DIGITS, add_sample
from jobs.spec import JobSpec
from jobs.states import EndKind, ReplicaState, State
from quotas.limits import idle
from quotas.limits.idle import Policy
from quotas.models import Cluster
from quotas.models.expressions import Unindexed

log = structlog.get_logger(__name__)

OWN_LIMIT: Final = "JOB_CONSOLE_END_WHEN_IDLE"
"""A job's own variable: the idle time after which it is to be ended, as in 4h, 90m or 1d."""

GAP: Final = timedelta(minutes=5)
"""After a longer time without a measurement, idle times begin anew."""

REFRESHED: Final = timedelta(minutes=10)
GPU_STEP: Final = 5
CPU_STEP_S: Final = 2.0
MEMORY_STEP: Final = 0.05
TRANSFER_STEP: Final = 1 << 20
"""Smallest stored changes; CPU in seconds, memory as a share, disk and network in bytes."""

_UNITS: Final = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_SPAN: Final = re.compile(r"([1-9][0-9]{0,4})([mhd])")


def own_limit(spec: JobSpec) -> timedelta | None:
    """Return the idle time after which the job itself wants to be ended; None without a valid value."""
    found = _SPAN.fullmatch(spec.env.get(OWN_LIMIT, "").strip())
    return int(found[1]) * _UNITS[found[2]] if found else None


def watch(cluster_id: int) -> None:
    """Measure the cluster's running jobs, warn and end idle ones; nothing where the backend can't measure."""
    cluster = Cluster.objects.get(pk=cluster_id)
    attempts = list(
        Attempt.objects.filter(
            Exact(Unindexed("job__cluster_id"), cluster_id),
            live=True,
            job__state=State.RUNNING.value,
            number=F("job__attempt_number"),
        )
        .select_related("job__cluster", "job__owner", "job__quota")
        .order_by("id")
    )
    if not attempts:
        return
    try:
        backend = backend_for(cluster)
        source = backend.metrics_source if isinstance(backend, MeasuredElsewhere) else None
        if source is None and not isinstance(backend, Measuring):
            return
        unbroken = _claim(cluster_id)
        if unbroken is None:
            return
        seen = _measure(backend, source, attempts)
    except Unreachable as error:
        log.warning("measure_failed", cluster=cluster_id, error=str(error))
        return
    policies = idle.policies_of(cluster_id)
    busy = activity.of(attempts)
    roles = idle.roles_of({(each.job.owner_id, each.job.workspace_id) for each in attempts})
    files = JobFile.objects.in_bulk([attempt.job_id for attempt in attempts])
    for attempt in attempts:
        job, spec = attempt.job, files[attempt.job_id].spec
        role = roles.get((job.owner_id, job.workspace_id), "")
        rules = _rules(spec, policies.get(job.quota_id), job, role)
        watched = Measured(rules.percent if rules else idle.PERCENT, activity.is_interactive(job))
        idles = job.gpus or watched.interactive or own_limit(spec)
        unused = write(attempt, seen.get(Handle(attempt.handle), ()), watched)
        _judge(attempt, rules, unused=bool(idles and unused and not busy.of(attempt)), unbroken=unbroken)
    alerts.judge(attempts, {key: file.spec for key, file in files.items()}, unbroken=unbroken)
    MeasuredCluster.objects.filter(pk=cluster_id).update(at=Now())


def _measure(
    backend: Backend, source: MetricsSource | None, attempts: Sequence[Attempt]
) -> Mapping[Handle, Sequence[Use]]:
    if source is not None and isinstance(backend, MeasuredElsewhere):
        return prometheus.measure(source, backend, attempts)
    assert isinstance(backend, Measuring)
    return backend.measure([Handle(attempt.handle) for attempt in attempts])


@dataclass(frozen=True, slots=True)
class Measured:
    """The percent below which a job is idle, and whether it serves something in which people work."""

    percent: int
    interactive: bool


def _claim(cluster_id: int) -> bool | None:
    """Claim a measurement: return whether there was no gap before it; None when another worker measures."""
    _row_of, made = MeasuredCluster.objects.get_or_create(pk=cluster_id)
    if made:
        return False
    every = timedelta(seconds=settings.CONSOLE_MEASURE_SECONDS)
    row = MeasuredCluster.objects.filter(pk=cluster_id)
    if not row.filter(claimed_at__lt=Now() - every / 2).update(claimed_at=Now()):
        return None
    return row.filter(at__gt=Now() - max(GAP, 3 * every)).exists()


# --- what is used ----------------------------------------------------------------------------------------


def write(attempt: Attempt, uses: Sequence[Use], watched: Measured) -> bool:
    """Store the changed uses; return whether all of the attempt is known to be unused.

    GPUs decide where there are any; CPU too where somebody could work, or where nothing else is held.
    """
    replicas = Replica.objects.filter(attempt=attempt, run=attempt.job.run_number, state=ReplicaState.RUNNING)
    rows = {(replica.role, replica.index): replica for replica in replicas.select_related("use")}
    now = timezone.now()
    unused, changed = bool(rows), []
    found = {(use.role, use.index): use for use in uses}
    for key, replica in rows.items():
        use = found.get(key)
        if use is None:
            unused = False
            continue
        before: ReplicaUsage | None = getattr(replica, "use", None)
        after = _changed_row(before, replica, use, now)
        if after is not None:
            changed.append(after)
        by_gpus = attempt.job.gpus and not watched.interactive
        unused &= _gpus_are_idle(use, watched.percent)
        unused &= bool(by_gpus) or _cpu_is_idle(before, after, watched.percent)
    ReplicaUsage.objects.bulk_create(
        changed,
        batch_size=200,
        update_conflicts=True,
        unique_fields=["replica"],
        update_fields=["at", "cpu_s", "cpu_milli", "memory_mib", "gpu_percents", "transferred", "points"],
    )
    return unused


def _gpus_are_idle(use: Use, percent: int) -> bool:
    return use.gpu_percents is not None and all(each < percent for each in use.gpu_percents)


def _cpu_is_idle(before: ReplicaUsage | None, after: ReplicaUsage | None, percent: int) -> bool:
    """Compare with a percentage of one core; a first measurement has no rate, and an unknown one neither."""
    cpu_milli = None if before is None else (after or before).cpu_milli
    return cpu_milli is not None and cpu_milli < 10 * percent


def _changed_row(
    before: ReplicaUsage | None, replica: Replica, use: Use, now: datetime
) -> ReplicaUsage | None:
    """Return the row to write; None while nothing changed."""
    gpus = None if use.gpu_percents is None else list(use.gpu_percents)
    if before is None:
        none = None if use.cpu_s is None else 0
        first = Sample(now.timestamp(), _most(gpus), none, use.memory_mib)
        return _row(replica, use, now, cpu_milli=none, points=[first])
    elapsed = (now - before.at).total_seconds()
    spent = None
    if use.cpu_s is not None and before.cpu_s is not None:
        spent = abs(use.cpu_s - before.cpu_s)  # less than before: what had worked is no longer there
    as_before = (before.cpu_milli or 0) * elapsed / 1000
    moved = _moved(before.transferred, use.transferred)
    quiet = (
        max(spent or 0, as_before) < CPU_STEP_S
        and not _gpus_differ(before.gpu_percents, gpus)
        and not _memory_differs(before.memory_mib, use.memory_mib)
        and not _transfers_differ(before, moved, elapsed)
    )
    if elapsed <= 0 or (quiet and elapsed < REFRESHED.total_seconds()):
        return None
    cpu_milli = None if spent is None else round(1000 * spent / elapsed)
    cpu = None if cpu_milli is None else cpu_milli // 10
    rates = [None if each is None else round(each / elapsed / (1 << 20), RATE_DIGITS) for each in moved]
    sample = Sample(now.timestamp(), _most(gpus), cpu, use.memory_mib, *rates)
    points = add_sample(before.samples, sample)
    return _row(replica, use, now, cpu_milli=cpu_milli, points=points)


def _memory_differs(before: int | None, after: int | None) -> bool:
    if before is None or after is None:
        return before is not after
    return abs(after - before) > MEMORY_STEP * before


def _gpus_differ(before: Sequence[int] | None, after: Sequence[int] | None) -> bool:
    if before is None or after is None:
        return before is not after
    return abs((_most(before) or 0) - (_most(after) or 0)) >= GPU_STEP


def _moved(before: Sequence[int | None] | None, after: Transferred) -> list[int | None]:
    """Return the bytes of disk and network since the last look; None for what either look does not know.

    Less than before: a process has gone whose bytes nobody has taken over.
    """
    pairs = zip(before or [None] * 4, astuple(after), strict=True)
    return [None if old is None or new is None else max(0, new - old) for old, new in pairs]


def _transfers_differ(before: ReplicaUsage, moved: Sequence[int | None], elapsed: float) -> bool:
    """Tell whether disk or network moved a step or more, or would have by the last rates."""
    last = before.samples[-1][-len(moved) :] if before.points else [None] * len(moved)
    as_before = [(rate or 0) * elapsed * (1 << 20) for rate in last]
    return any(max(new or 0, old) >= TRANSFER_STEP for new, old in zip(moved, as_before, strict=True))


def _row(
    replica: Replica, use: Use, now: datetime, *, cpu_milli: int | None, points: list[Sample]
) -> ReplicaUsage:
    gpus = None if use.gpu_percents is None else list(use.gpu_percents)
    return ReplicaUsage(
        replica=replica,
        at=now,
        cpu_s=use.cpu_s,
        cpu_milli=cpu_milli,
        memory_mib=use.memory_mib,
        gpu_percents=gpus,
        transferred=list(astuple(use.transferred)),
        points=points,
    )


def _most(percents: Sequence[int] | None) -> int | None:
    """Return the use of the busiest GPU."""
    return max(percents, default=None) if percents is not None else None


# --- what follows ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rules:
    """The idle policy of one job: when its owner is warned, when it is ended, and what counts as use."""

    warn: timedelta
    release: timedelta | None
    percent: int
    extensions: int


def _rules(spec: JobSpec, policy: Policy | None, job: Job, role: str) -> Rules | None:
    """Return the job's own limit or its quota's policy, whichever comes first; None without either."""
    own = own_limit(spec)
    if policy is not None and policy.spares(owner_id=job.owner_id, role=role, labels=spec.tags):
        policy = None
    if policy is None:
        return None if own is None else Rules(own * 3 / 4, own, idle.PERCENT, 0)
    if own is None or (policy.release is not None and policy.release <= own):
        return Rules(policy.warn, policy.release, policy.percent, policy.extensions)
    return Rules(min(policy.warn, own * 3 / 4), own, policy.percent, policy.extensions)


def _judge(attempt: Attempt, rules: Rules | None, *, unused: bool, unbroken: bool) -> None:
    """Begin, continue or reset the attempt's idle time, and warn or end by the rules."""
    rows = Idleness.objects.filter(attempt=attempt)
    if not unused or not unbroken:
        rows.exclude(counts_from=None).update(counts_from=None, warned_at=None, ends_at=None)
        _show(attempt.job, None)
    if not unused:
        rows.exclude(kept=0).update(kept=0)
        return
    Idleness.objects.get_or_create(attempt=attempt)
    rows.filter(counts_from=None).update(counts_from=Now())
    if attempt.job.idle_since is None:
        _show(attempt.job, timezone.now())
    if rules is None:
        rows.exclude(warned_at=None).update(warned_at=None, ends_at=None)
        return
    rows.exclude(extensions=rules.extensions).update(extensions=rules.extensions)
    if rules.release is None:
        rows.exclude(ends_at=None).update(ends_at=None)
    else:  # an owner who was warned without an end is warned again before it comes
        rows.filter(ends_at=None).exclude(warned_at=None).update(warned_at=None)
    if not _warn(attempt, rules):
        _release(attempt, rules)


def _show(job: Job, since: datetime | None) -> None:
    """Store since when the job is idle, when that changes."""
    if (job.idle_since is None) == (since is None):
        return
    with transaction.atomic():
        if Job.objects.filter(pk=job.pk, idle_since__isnull=since is not None).update(idle_since=since):
            transitions.tell(job)
    job.idle_since = since


def _warn(attempt: Attempt, rules: Rules) -> bool:
    """Warn the owner, once; return whether that was now."""
    with transaction.atomic():
        job = transitions.lock_job(attempt.job_id)
        due = Idleness.objects.filter(
            attempt=attempt, warned_at=None, counts_from__lte=Now() - rules.warn, attempt__end_kind=""
        )
        if not due.update(warned_at=Now()):
            return False
        if rules.release is not None:
            # As long after the warning as the policy has it, also where nobody could warn in time.
            Idleness.objects.filter(attempt=attempt).update(ends_at=Now() + (rules.release - rules.warn))
        row = Idleness.objects.get(attempt=attempt)
        params = {
            "minutes": _minutes(row.warned_at, job.idle_since or row.counts_from),
            "gpus": job.gpus,
            "until": row.ends_at.isoformat(timespec="seconds") if row.ends_at else None,
        }
        transitions.record(job, Event.Kind.IDLE_WARNED, params=params)
        notifications.tell([attempt.job.owner], notifications.Kind.IDLE, params, job)
        transitions.tell(job)
    return True


def _release(attempt: Attempt, rules: Rules) -> None:
    """Ask for the end of an attempt whose owner was warned in time."""
    if rules.release is None:
        return
    with transaction.atomic():
        job = transitions.lock_job(attempt.job_id)
        row = Idleness.objects.filter(
            attempt=attempt, warned_at__isnull=False, counts_from__isnull=False, ends_at__lte=Now()
        ).first()
        if row is None or State(job.state) is not State.RUNNING:
            return
        seconds = 60 * _minutes(timezone.now(), job.idle_since or row.counts_from)
        if transitions.want_end(job, attempt, EndKind.IDLE, why=str(seconds)):
            log.info("idle_ended", attempt=attempt.key, seconds=seconds)
            triggers.trigger_on_commit("observe", job.cluster_id)


def _minutes(until: datetime | None, since: datetime | None) -> int:
    return max(1, round((until - since).total_seconds() / 60)) if until and since else 1


def due_clusters() -> list[int]:
    """Return the clusters with running attempts."""
    rows = Attempt.objects.filter(live=True, job__state=State.RUNNING.value).order_by()
    return sorted(set(rows.values_list("job__cluster_id", flat=True)))

"""Figures of /metrics, read on request: from the database by existing indexes, disk, and signs of life."""

from datetime import timedelta
from typing import Final

import redis
from django.db.models import Count, Min
from django.utils import timezone

from console.monitoring import disk, health
from console.monitoring.metrics import Reading, count, measure
from jobs import log_forwarding
from jobs.client.wheel_builder import version
from jobs.models import Attempt, Delivery, Job, LogSink
from jobs.models.jobs import is_unfinished
from jobs.states import FINAL, State
from quotas.models import Cluster, Request, Workspace

MIB: Final = 1024 * 1024
RECENT: Final = timedelta(hours=1)
"""Of jobs that ended, those count that ended so lately."""


def jobs_by_state() -> Reading:
    """Every state that a job can leave, also those that none is in; deleted jobs do not count."""
    rows = Job.objects.filter(is_unfinished(), deleted_at=None).order_by().values_list("cluster", "state")
    counts: dict[tuple[str, ...], float] = {(state.value,): 0 for state in State if state not in FINAL}
    for _cluster, state, number in rows.annotate(Count("pk")):
        counts[state,] += number
    return counts


def recently_ended() -> Reading:
    """Jobs that ended within RECENT, by each final state; deleted jobs do not count."""
    ended = Job.objects.filter(ended_at__gt=timezone.now() - RECENT, deleted_at=None, state__in=FINAL)
    # By workspace, as the index has them: without it every job that ever ended is read.
    rows = ended.filter(workspace__in=Workspace.objects.values("pk")).order_by().values_list("state")
    return {(state.value,): 0 for state in State if state in FINAL} | {
        (state,): number for state, number in rows.annotate(Count("pk"))
    }


def waiting_by_cluster() -> Reading:
    """Every enabled cluster, also those for which nothing waits."""
    rows = Request.objects.filter_waiting().order_by().values_list("cluster__slug")
    clusters = Cluster.objects.filter(enabled=True).values_list("slug", flat=True)
    return {(slug,): 0 for slug in clusters} | {
        (slug,): number for slug, number in rows.annotate(Count("pk"))
    }


def oldest_waiting() -> Reading:
    """Every enabled cluster; requests that wait for other jobs to end do not count."""
    waiting = Request.objects.filter_waiting().filter(others=False).order_by()
    oldest = waiting.values_list("cluster__slug").annotate(Min("since"))
    now = timezone.now()
    clusters = Cluster.objects.filter(enabled=True).values_list("slug", flat=True)
    return {(slug,): 0 for slug in clusters} | {
        (slug,): max(0.0, (now - since).total_seconds()) for slug, since in oldest
    }


def last_responses() -> Reading:
    """Enabled clusters that have answered."""
    rows = Cluster.objects.filter(enabled=True).values_list("slug", "answered_at")
    return {(slug,): at.timestamp() for slug, at in rows if at}


def clusters_up() -> Reading:
    """Every enabled cluster."""
    rows = Cluster.objects.filter(enabled=True).values_list("slug", "trouble")
    return {(slug,): int(not trouble) for slug, trouble in rows}


def parts_up() -> Reading:
    """Return what the parts themselves say, without asking any; nothing where Redis is away."""
    try:
        return {(part,): int(state == health.OK) for part, state in health.signs().items()}
    except redis.RedisError:
        return {}


def disk_free() -> Reading:
    """Return the free bytes of the disk of CONSOLE_HOME."""
    return {(): disk.measure().free_mib * MIB}


def disk_floor() -> Reading:
    """Return the bytes of that disk that have to stay free."""
    return {(): disk.measure().floor_mib * MIB}


def deliveries_waiting() -> Reading:
    """Return the messages that wait, those that are tried again included."""
    return {(): Delivery.objects.filter(state=Delivery.State.WAITING).count()}


def build_info() -> Reading:
    """Return the version of the release."""
    return {(version(),): 1}


def live_attempts() -> Reading:
    """Return the live attempts."""
    return {(): Attempt.objects.filter(live=True).count()}


def log_sink_errors() -> Reading:
    """Return the batches that each sink did not take at once."""
    return _of_log_sinks("errors")


def log_sink_drops() -> Reading:
    """Return the bytes that each sink refused for good."""
    return _of_log_sinks("dropped_bytes")


def _of_log_sinks(column: str) -> Reading:
    rows = LogSink.objects.order_by("pk").values_list("workspace__slug", "name", column)
    return {(workspace, name): number for workspace, name, number in rows}


def register() -> None:
    """Once, when the applications are loaded."""
    measure("console_jobs", "Jobs that have not ended for good, by state.", ("state",), jobs_by_state)
    measure(
        "console_recently_ended_jobs",
        "Jobs that ended within the last hour, by state.",
        ("state",),
        recently_ended,
    )
    measure("console_waiting", "Requests that wait for resources.", ("cluster",), waiting_by_cluster)
    measure(
        "console_oldest_waiting_seconds",
        "For how long the request that waits longest does; 0 where none waits.",
        ("cluster",),
        oldest_waiting,
    )
    measure("console_live_attempts", "Attempts that an engine has.", (), live_attempts)
    measure(
        "console_cluster_last_response_timestamp_seconds",
        "When an enabled cluster's engine answered last; absent where it never did.",
        ("cluster",),
        last_responses,
    )
    measure("console_cluster_up", "Whether an enabled cluster has no trouble.", ("cluster",), clusters_up)
    measure("console_part_up", "Whether a part gives signs of life and has no trouble.", ("part",), parts_up)
    measure("console_disk_free_bytes", "Free space on the console's disk.", (), disk_free)
    measure("console_disk_floor_bytes", "Space below which nothing new is started.", (), disk_floor)
    measure(
        "console_deliveries_waiting",
        "Messages of notification channels not yet sent.",
        (),
        deliveries_waiting,
    )
    measure("console_build_info", "The release that runs; always 1.", ("version",), build_info)
    sink = ("workspace", "sink")
    measure(
        "console_log_sink_lag_bytes", "Bytes of logs not yet sent to a log sink.", sink, log_forwarding.lags
    )
    count("console_log_sink_errors_total", "Failed batches of a log sink.", sink, log_sink_errors)
    count("console_log_sink_dropped_bytes_total", "Bytes that a log sink refused.", sink, log_sink_drops)

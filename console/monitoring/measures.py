"""Job metrics of /metrics, read from the database on request by existing indexes."""

from django.db.models import Count

from console.monitoring.metrics import Reading, measure
from jobs import log_forwarding
from jobs.live.limits import streams
from jobs.models import Attempt, Job, LogSink
from jobs.states import State
from quotas.models import Cluster, Request


def jobs_by_state() -> Reading:
    """Every state, also those that no job is in; deleted jobs do not count."""
    rows = Job.objects.filter(deleted_at=None).order_by().values_list("state").annotate(Count("pk"))
    return {(state.value,): 0 for state in State} | {(state,): number for state, number in rows}


def waiting_by_cluster() -> Reading:
    """Every enabled cluster, also those for which nothing waits."""
    rows = Request.objects.filter(state=Request.State.WAITING).order_by().values_list("cluster__slug")
    clusters = Cluster.objects.filter(enabled=True).values_list("slug", flat=True)
    return {(slug,): 0 for slug in clusters} | {
        (slug,): number for slug, number in rows.annotate(Count("pk"))
    }


def live_attempts() -> Reading:
    """Return the live attempts."""
    return {(): Attempt.objects.filter(live=True).count()}


def open_streams() -> Reading:
    """In the process that answers."""
    return {(): streams.total()}


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
    measure("console_jobs", "Jobs by state.", ("state",), jobs_by_state)
    measure("console_waiting", "Requests that wait for resources.", ("cluster",), waiting_by_cluster)
    measure("console_live_attempts", "Attempts that an engine has.", (), live_attempts)
    measure("console_open_streams", "Live streams of this web process.", (), open_streams)
    sink = ("workspace", "sink")
    measure(
        "console_log_sink_lag_bytes", "Bytes of logs not yet sent to a log sink.", sink, log_forwarding.lags
    )
    measure("console_log_sink_errors", "Failed batches of a log sink, ever.", sink, log_sink_errors)
    measure("console_log_sink_dropped_bytes", "Bytes that a log sink refused, ever.", sink, log_sink_drops)

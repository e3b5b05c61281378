"""Job metrics of /metrics, read from the database on request by existing indexes."""

from django.db.models import Count

from console.monitoring.metrics import Reading, measure
from jobs.live.limits import streams
from jobs.models import Attempt, Job
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


def register() -> None:
    """Once, when the applications are loaded."""
    measure("console_jobs", "Jobs by state.", ("state",), jobs_by_state)
    measure("console_waiting", "Requests that wait for resources.", ("cluster",), waiting_by_cluster)
    measure("console_live_attempts", "Attempts that an engine has.", (), live_attempts)
    measure("console_open_streams", "Live streams of this web process.", (), open_streams)

"""Celery's way in.  Tasks carry ids only and do nothing that could not be done again."""

from __future__ import annotations

from celery import shared_task

from jobs.assets.uploads import expiry
from jobs.live import queue, vitals
from jobs.notifications import packing, routing, sending, watching
from jobs.scheduling import dryruns, idle, reconcile, tidy, trials
from quotas.audit import trail
from quotas.billing import books
from quotas.ledger import usage
from quotas.models import Cluster


@shared_task
def drain(cluster_id: int) -> None:
    """Admit and hand over what may start on the cluster."""
    queue.answered("drain", cluster_id)
    trials.begin(cluster_id)
    reconcile.drain(cluster_id)


@shared_task
def observe(cluster_id: int) -> None:
    """Look at everything live on the cluster."""
    queue.answered("observe", cluster_id)
    trials.look(cluster_id)
    reconcile.observe(cluster_id)


@shared_task
def inventory(cluster_id: int) -> None:
    """Ask the cluster what it has."""
    queue.answered("inventory", cluster_id)
    reconcile.take_inventory(cluster_id)
    queue.kick("drain", cluster_id)


@shared_task
def dry_run(cluster_id: int) -> None:
    """Answer whoever asks what the cluster would say of a job."""
    queue.answered("dry_run", cluster_id)
    dryruns.answer(cluster_id)


@shared_task
def measure(cluster_id: int) -> None:
    """Look at what the cluster's jobs use."""
    queue.measure_answered(cluster_id)
    idle.watch(cluster_id)


@shared_task
def sweep_measures() -> None:
    """Ring for every cluster on which something runs."""
    for cluster_id in idle.due_clusters():
        queue.ring_measure(cluster_id)


@shared_task
def seal(attempt_id: int) -> None:
    """Store the logs of an ended attempt."""
    tidy.seal(attempt_id)


@shared_task
def notices() -> None:
    """Tell people what there is to tell."""
    queue.notices_answered()
    routing.route()
    packing.pack()
    sending.send()


@shared_task
def watch_notices() -> None:
    """Look for jobs that wait for long and quotas that are nearly used, and forget what is old."""
    watching.waits()
    watching.quotas()
    sending.forget()


@shared_task
def sweep() -> None:
    """Ring for everything the database says is due; that this came is beat's sign of life."""
    vitals.alive("beat")
    for step, clusters in reconcile.due_clusters().items():
        for cluster_id in clusters:
            queue.kick(step, cluster_id)


@shared_task
def sweep_inventories() -> None:
    """Ring for every enabled cluster's inventory."""
    for cluster_id in Cluster.objects.filter(enabled=True).values_list("pk", flat=True):
        queue.kick("inventory", cluster_id)


@shared_task
def roll_up() -> None:
    """Write down what was held in each hour that is over."""
    usage.roll_up()
    books.roll_up()


@shared_task
def tidy_audit() -> None:
    """Remove what the audit trail has kept long enough."""
    trail.tidy()


@shared_task
def tidy_uploads() -> None:
    """Remove uploaded code that nothing uses any more."""
    expiry.tidy()


@shared_task
def sweep_logs() -> None:
    """Store every log that should have been stored, and remove what is no longer needed."""
    for attempt_id in reconcile.sealable():
        tidy.seal(attempt_id)
    tidy.tidy()

"""Celery tasks.  They carry ids only and are safe to repeat."""

from __future__ import annotations

from celery import shared_task

from jobs.assets.uploads import expiry
from jobs.live import heartbeats, triggers
from jobs.notifications import deliveries, routing, thresholds
from jobs.scheduling import asset_checks, cleanup, fault_watch, idle, reconcile
from jobs.submission import dry_runs
from quotas.accounts import access_keys
from quotas.audit import audit_log
from quotas.billing import ledger_days
from quotas.ledger import usage
from quotas.models import Cluster


@shared_task
def drain(cluster_id: int) -> None:
    """Admit and submit the attempts that may start on the cluster."""
    triggers.mark_started("drain", cluster_id)
    asset_checks.begin(cluster_id)
    reconcile.drain(cluster_id)


@shared_task
def observe(cluster_id: int) -> None:
    """Observe every live attempt of the cluster."""
    triggers.mark_started("observe", cluster_id)
    asset_checks.look(cluster_id)
    reconcile.observe(cluster_id)


@shared_task
def inventory(cluster_id: int) -> None:
    """Take the cluster's inventory."""
    triggers.mark_started("inventory", cluster_id)
    reconcile.take_inventory(cluster_id)
    triggers.trigger("drain", cluster_id)


@shared_task
def dry_run(cluster_id: int) -> None:
    """Answer the cluster's open dry runs."""
    triggers.mark_started("dry_run", cluster_id)
    dry_runs.answer(cluster_id)


@shared_task
def measure(cluster_id: int) -> None:
    """Measure the use of the cluster's jobs."""
    triggers.mark_started("measure", cluster_id)
    idle.watch(cluster_id)


@shared_task
def sweep_measures() -> None:
    """Trigger a measurement of every cluster with running jobs."""
    for cluster_id in idle.due_clusters():
        triggers.trigger("measure", cluster_id)


@shared_task
def watch_faults() -> None:
    """Look for faults in the output of running jobs with fault tolerance."""
    fault_watch.watch()


@shared_task
def seal(attempt_id: int) -> None:
    """Store the logs of an ended attempt."""
    cleanup.seal(attempt_id)


@shared_task
def notices() -> None:
    """Route, pack and send notifications."""
    triggers.mark_started("notices")
    routing.route()
    deliveries.pack()
    deliveries.send()


@shared_task
def watch_notices() -> None:
    """Notify of long waits and nearly used quotas, and delete old notifications."""
    thresholds.report_waits()
    thresholds.report_quotas()
    deliveries.forget()


@shared_task
def sweep() -> None:
    """Wake the workers for every step that is due by the database; record that beat is alive."""
    heartbeats.beat("beat")
    for step, clusters in reconcile.due_clusters().items():
        for cluster_id in clusters:
            triggers.trigger(step, cluster_id)


@shared_task
def sweep_inventories() -> None:
    """Wake a worker for every enabled cluster's inventory."""
    for cluster_id in Cluster.objects.filter(enabled=True).values_list("pk", flat=True):
        triggers.trigger("inventory", cluster_id)


@shared_task
def roll_up() -> None:
    """Store the usage of each hour that is over."""
    usage.roll_up()
    ledger_days.roll_up()


@shared_task
def delete_old_audit_entries() -> None:
    """Delete audit entries past their retention."""
    audit_log.delete_old_entries()


@shared_task
def delete_expired_signatures() -> None:
    """Delete the used signatures that are refused by their age alone."""
    access_keys.delete_expired_signatures()


@shared_task
def remove_expired_uploads() -> None:
    """Delete uploaded code that nothing uses any more."""
    expiry.remove_expired()


@shared_task
def sweep_logs() -> None:
    """Store every log of an ended attempt, and clean up ended attempts and deleted jobs."""
    for attempt_id in reconcile.sealable():
        cleanup.seal(attempt_id)
    cleanup.clean_up()

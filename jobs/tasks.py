"""Celery tasks.  They carry ids only and are safe to repeat."""

from __future__ import annotations

from celery import shared_task

from jobs import log_forwarding, training_metrics
from jobs.assets.uploads import expiry
from jobs.live import heartbeats, triggers
from jobs.notifications import deliveries, routing, thresholds
from jobs.scheduling import (
    accounted_usage,
    asset_checks,
    cleanup,
    early_stop,
    fault_watch,
    idle,
    reconcile,
    removal,
    role_credentials,
    stack_dumps,
)
from jobs.submission import dataset_copies, dry_runs
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
    """Measure the use of the cluster's running jobs, and look up that of ended ones."""
    triggers.mark_started("measure", cluster_id)
    idle.watch(cluster_id)
    accounted_usage.collect(cluster_id)


@shared_task
def sweep_measures() -> None:
    """Trigger a measurement of every cluster with running jobs, or with ended ones to look up."""
    for cluster_id in {*idle.due_clusters(), *accounted_usage.due_clusters()}:
        triggers.trigger("measure", cluster_id)


@shared_task
def watch_faults() -> None:
    """Look for faults in the output of running jobs with fault tolerance."""
    fault_watch.watch()
    stack_dumps.trigger_open()


@shared_task
def dump_stacks(cluster_id: int) -> None:
    """Collect the requested stacks of the cluster's jobs."""
    triggers.mark_started("dump_stacks", cluster_id)
    stack_dumps.answer(cluster_id)


@shared_task
def sweep_credentials() -> None:
    """Trigger a renewal of the credentials of roles on every cluster with such jobs."""
    role_credentials.trigger_due()


@shared_task
def renew_credentials(cluster_id: int) -> None:
    """Renew the credentials of roles that are put beside the cluster's jobs."""
    triggers.mark_started("renew_credentials", cluster_id)
    role_credentials.renew(cluster_id)


@shared_task
def seal(attempt_id: int) -> None:
    """Store the logs of an ended attempt."""
    cleanup.seal(attempt_id)


@shared_task
def forward_logs() -> None:
    """Send new lines of logs to the log sinks of their workspaces."""
    triggers.mark_started("forward_logs")
    if log_forwarding.forward():
        triggers.trigger("forward_logs")


@shared_task
def collect_training_metrics() -> None:
    """Read new output of jobs for training metrics, and stop what does worse than the rest of its sweep."""
    triggers.mark_started("collect_training_metrics")
    is_more = training_metrics.collect()
    early_stop.judge_sweeps()
    if is_more:
        triggers.trigger("collect_training_metrics")


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
def remove_due() -> None:
    """Remove what workspaces keep no longer after a job's end."""
    triggers.mark_started("remove_due")
    if removal.remove_due():
        triggers.trigger("remove_due")


@shared_task(soft_time_limit=600, time_limit=660)
def copy_folders() -> None:
    """Copy folders of ended jobs into datasets; one large file may take longer than other tasks may."""
    triggers.mark_started("copy_folders")
    if dataset_copies.copy_next():
        triggers.trigger("copy_folders")


@shared_task
def sweep_logs() -> None:
    """Store every log of an ended attempt, and clean up ended attempts and deleted jobs."""
    if dataset_copies.is_due():
        triggers.trigger("copy_folders")
    for attempt_id in reconcile.sealable():
        cleanup.seal(attempt_id)
    cleanup.clean_up()

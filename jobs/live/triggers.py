"""Triggers: a worker is asked to run a step after the row that it should find was committed.

A trigger is a hint.  Those for the same step of the same cluster are coalesced, the periodic reconcile pass
makes up for a lost one, and a broker that is away neither blocks nor fails the commit.
"""

from __future__ import annotations

from typing import Final, Literal

from celery import current_app
from django.db import transaction
from redis import Redis

from jobs.live import bus

Step = Literal[
    "drain",
    "observe",
    "inventory",
    "dry_run",
    "measure",
    "notices",
    "forward_logs",
    "dump_stacks",
    "collect_training_metrics",
    "renew_credentials",
    "copy_folders",
    "remove_due",
]

QUEUES: Final[dict[str, str]] = {
    "measure": "logs",
    "notices": "notices",
    "forward_logs": "logs",
    "dump_stacks": "logs",
    "collect_training_metrics": "logs",
    "renew_credentials": "logs",
    "copy_folders": "logs",
    "remove_due": "logs",
}
"""Celery queues of the steps; that of all others is `control`."""

COALESCE_MS: Final = 1000
"""Lifetime of a kick that stands for all others; the task clears it when it begins."""


def trigger(step: Step, cluster_id: int = 0) -> None:
    """Trigger a step, unless it was triggered just now; `cluster_id` is 0 for steps of no cluster."""
    arguments = [cluster_id] if cluster_id else []

    def send(redis: Redis) -> None:
        if redis.set(_key(step, cluster_id), "1", nx=True, px=COALESCE_MS):
            _send(f"jobs.tasks.{step}", arguments, QUEUES.get(step, "control"))

    bus.attempt(send)


def mark_started(step: Step, cluster_id: int = 0) -> None:
    """Let the next commit trigger the step again; called when the step begins."""
    bus.attempt(lambda redis: redis.delete(_key(step, cluster_id)))


def trigger_on_commit(step: Step, cluster_id: int = 0) -> None:
    """Trigger a step once the current transaction has committed."""
    transaction.on_commit(lambda: trigger(step, cluster_id))


def seal_on_commit(attempt_id: int) -> None:
    """Have the log worker store an ended attempt's logs once the transaction has committed."""
    transaction.on_commit(lambda: bus.attempt(lambda _redis: _send("jobs.tasks.seal", [attempt_id], "logs")))


def _key(step: str, cluster_id: int) -> str:
    return f"kick:{step}:{cluster_id}"


def _send(task: str, arguments: list[int], queue: str) -> None:
    current_app.send_task(task, args=arguments, queue=queue, retry=False, ignore_result=True)

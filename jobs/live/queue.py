"""The doorbell: asks a worker to look, after the row that it should find was committed.

A kick is a hint.  Kicks for the same step of the same cluster are coalesced, a lost one is made up for
by the periodic sweep, and a broker that is away neither blocks nor fails the commit.
"""

from __future__ import annotations

from typing import Final, Literal

import redis
from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

from jobs.live import bus

Step = Literal["drain", "observe", "inventory", "dry_run"]

COALESCE_MS: Final = 1000
"""How long an unanswered kick stands for all others; the task clears it when it begins."""

NOTICES: Final = "kick:notices"


def _mark(step: str, key: int) -> str:
    return f"kick:{step}:{key}"


def kick(step: Step, cluster_id: int) -> None:
    """Ask the control worker for `step` on a cluster, unless somebody just did."""
    _ring(_mark(step, cluster_id), f"jobs.tasks.{step}", [cluster_id], "control")


def answered(step: Step, cluster_id: int) -> None:
    """The step begins: whatever is committed from now on deserves a new kick."""
    _clear(_mark(step, cluster_id))


def ring_measure(cluster_id: int) -> None:
    """Ask for a look at what the cluster's jobs use, unless somebody just did."""
    _ring(_mark("measure", cluster_id), "jobs.tasks.measure", [cluster_id], "logs")


def measure_answered(cluster_id: int) -> None:
    """It is looked at."""
    _clear(_mark("measure", cluster_id))


def ring_notices() -> None:
    """Ask the worker of notices to look, unless somebody just did."""
    _ring(NOTICES, "jobs.tasks.notices", [], "notices")


def notices_answered() -> None:
    """It looks: whatever is written from now on deserves a new ring."""
    _clear(NOTICES)


def _ring(mark: str, task: str, arguments: list[int], queue: str) -> None:
    if not bus.reachable():
        return
    try:
        if bus.client().set(mark, "1", nx=True, px=COALESCE_MS):
            _send(task, arguments, queue)
    except (redis.RedisError, OperationalError, OSError) as error:
        bus.told_off(error)


def _clear(mark: str) -> None:
    try:
        bus.client().delete(mark)
    except (redis.RedisError, OSError) as error:
        bus.told_off(error)


def kick_on_commit(step: Step, cluster_id: int) -> None:
    """`kick` once the current transaction has committed."""
    transaction.on_commit(lambda: kick(step, cluster_id))


def seal_on_commit(attempt_id: int) -> None:
    """Ask the log worker to store an ended attempt's logs."""

    def send() -> None:
        if not bus.reachable():
            return
        try:
            _send("jobs.tasks.seal", [attempt_id], "logs")
        except (OperationalError, OSError) as error:
            bus.told_off(error)

    transaction.on_commit(send)


def _send(task: str, arguments: list[int], queue: str) -> None:
    current_app.send_task(task, args=arguments, queue=queue, retry=False, ignore_result=True)

"""Which of the addresses that all jobs of a machine share are a replica's own.

Jobs share the machine's network, and with it its loopback: what listens there may be the console, its
database, or somebody else's job.  A port is the replica's while one of its processes listens on it.
"""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

from jobs.backends.base import TaskRef
from jobs.backends.local import inside, listening
from jobs.backends.local.inside import Replica, Shut
from jobs.backends.sessions import Barrier, NoEntry


def address(attempt: Path, task: TaskRef, host: str, port: int) -> tuple[str, int]:
    """Where to connect to for `host`:`port` as the replica would.  Raises NoEntry."""
    try:
        replica = inside.find(attempt, task.role, task.index)
    except Shut as error:
        raise NoEntry(Barrier(error.barrier), error.detail) from error
    except OSError as error:
        raise NoEntry(Barrier.NOT_RUNNING, str(error)) from error
    if not _itself(replica, host):
        raise NoEntry(Barrier.NOT_ITS_OWN, host)
    found = listening.address_of(port, listening.sockets_of(replica.pids()))
    if found is None:
        raise NoEntry(Barrier.NOT_ITS_OWN, f"{host}:{port}")
    return found, port


def _itself(replica: Replica, host: str) -> bool:
    """Whether `host` is what the replica calls itself."""
    house = replica.errand.plan.house
    if host.lower() in {"localhost", house.host_ip, house.node.lower()}:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False

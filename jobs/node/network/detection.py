"""Detection of what jobs' own networks would need and this machine lacks, by trying to make one."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NoReturn

from jobs.node.network import namespaces, router
from jobs.node.network.attempt_network import AttemptNetwork
from jobs.node.network.namespaces import Holder, Router, make_inside
from jobs.node.network.replica_network import ReplicaNetwork
from jobs.node.network.rules import INTERNET, host_rules, router_rules
from jobs.node.network.uplink import Pasta
from jobs.node.sandbox.isolation import Isolation
from jobs.node.supervisor.plan import NetworkPlan

_TUNNEL: Final = Path("/dev/net/tun")
_RANGE: Final = "10.66.0.0/16"


def main(mode: str) -> NoReturn:
    """Write the names of what is lacking with isolation of that mode, as a list in JSON, and exit."""
    sys.stdout.write(json.dumps(list(_find_lacks(Isolation(mode)))))
    sys.stdout.flush()
    os._exit(0)


def _find_lacks(mode: Isolation) -> Iterator[str]:
    lacking = list(_find_absent())
    yield from lacking
    if not lacking:
        try:
            _try(mode)
        except OSError as error:
            yield str(error)


def _find_absent() -> Iterator[str]:
    is_root = os.geteuid() == 0
    for name in ("nft", "sleep", *(() if is_root else ("pasta",))):
        try:
            namespaces.find_program(name)
        except FileNotFoundError:
            yield name
    if not is_root and not os.access(_TUNNEL, os.R_OK | os.W_OK):
        yield str(_TUNNEL)


def _try(mode: Isolation) -> None:
    """Make a router with a replica, and have the kernel take the host's rules too; raises OSError."""

    def prepare() -> None:
        router.set_up(router_rules(_RANGE, (INTERNET,), ()))
        if mode is Isolation.PERSONS:
            router.apply(host_rules())

    holder = Holder(user=mode is Isolation.NAMESPACES, prepare=prepare, mark={})
    try:
        network = AttemptNetwork.of(holder.identity, mode)
        holder.wait()
        make_inside(network.user, network.net, lambda: _make_replica(network.net))
        if os.geteuid() != 0:
            _try_pasta(holder)
    finally:
        holder.cancel()


def _make_replica(router_namespace: int) -> list[int]:
    """Make and link a replica's network; called with all rights in the router's user namespace."""
    replica = ReplicaNetwork.make(Router(router_namespace, None))
    replica.link(NetworkPlan(_RANGE, "", ()), 0)
    return [replica.fd]


def _try_pasta(holder: Holder) -> None:
    with tempfile.TemporaryDirectory(prefix="job-console-") as folder:
        pasta = Pasta(Path(folder, "pid"))
        pasta.ensure(holder.identity.pid)
        pasta.stop()

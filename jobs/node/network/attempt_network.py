"""The network of one attempt: its router, which is found again by `router.json` in the attempt's folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from jobs.faults import fault
from jobs.node import processes
from jobs.node.files import Folder
from jobs.node.network import router, uplink
from jobs.node.network.namespaces import Holder
from jobs.node.network.rules import router_rules
from jobs.node.network.uplink import Pasta
from jobs.node.processes import Identity
from jobs.node.sandbox.isolation import Isolation
from jobs.node.supervisor import layout
from jobs.node.supervisor.plan import NetworkPlan, Plan

MARK: Final = "JOB_CONSOLE_ROUTER"
"""The variable in the environment of a router's holder that names its attempt."""


@dataclass(frozen=True, slots=True)
class AttemptNetwork:
    """Open descriptors of a router's namespaces.

    `net` is its network namespace; `user` its user namespace, None where the console is root.
    """

    net: int
    user: int | None

    @classmethod
    def open(cls, folder: Folder, plan: Plan) -> Self:
        """Open the network of the attempt in `folder`, which is made unless it is there.

        May be repeated, and by another process after any kill.  Raises OSError, with the reason, when it
        can't be made.
        """
        assert plan.network is not None
        holder = _find_holder(folder)
        if holder is None:
            return cls._make(folder, plan, plan.network)
        try:
            if _has_pasta(plan.network) and not (pasta := _pasta(folder)).is_running():
                pasta.start(holder.pid)
            return cls._open(holder, plan)
        finally:
            holder.poke()

    @classmethod
    def _make(cls, folder: Folder, plan: Plan, network: NetworkPlan) -> Self:
        _pasta(folder).stop()  # which may have been started for a router that was not finished
        rules = router_rules(network.addresses, network.egress, uplink.host_addresses())
        holder = Holder(
            user=_has_user_namespace(plan), prepare=lambda: router.set_up(rules), mark={MARK: plan.key}
        )
        try:
            fault("network.holder_started")
            made = cls._open(holder.identity, plan)
            if _has_pasta(network):
                _pasta(folder).start(holder.identity.pid)
            holder.wait()
            if network.uplink and network.egress:
                uplink.add_link(network.uplink, made.net)
            fault("network.made")
            folder.write(layout.ROUTER, holder.identity.dump(), durable=False)
        except BaseException:
            holder.cancel()
            raise
        fault("network.recorded")
        holder.release()
        return made

    @classmethod
    def _open(cls, holder: Identity, plan: Plan) -> Self:
        user = _open_namespace(holder.pid, "user") if _has_user_namespace(plan) else None
        return cls(_open_namespace(holder.pid, "net"), user)

    def close(self) -> None:
        """Close the descriptors; the network stays."""
        os.close(self.net)
        if self.user is not None:
            os.close(self.user)


def remove(folder: Folder, plan: Plan) -> None:
    """Remove the network of an attempt that has ended; none is fine.  May be repeated."""
    if plan.network is None:
        return
    holder = _find_holder(folder)
    held = holder.hold() if holder else None
    if held is not None:
        processes.send(held, processes.KILL)
        os.close(held)
    if plan.network.uplink:
        uplink.remove_link(plan.network.uplink)
    _pasta(folder).stop()
    folder.remove(layout.ROUTER)


def _find_holder(folder: Folder) -> Identity | None:
    """Return the process that keeps the router, if it lives."""
    found = folder.read(layout.ROUTER)
    holder = Identity.load(found) if found else None
    return holder if holder and holder.alive() else None


def _has_user_namespace(plan: Plan) -> bool:
    return Isolation(plan.house.isolation) is Isolation.NAMESPACES


def _has_pasta(network: NetworkPlan) -> bool:
    return bool(network.egress) and not network.uplink


def _pasta(folder: Folder) -> Pasta:
    return Pasta(Path(f"/proc/self/fd/{folder.fd}").readlink() / layout.PASTA)


def _open_namespace(pid: int, name: str) -> int:
    return os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)

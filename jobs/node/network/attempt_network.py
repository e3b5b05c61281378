"""The network of one attempt: its router, which is found again by `router.json` in the attempt's folder."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
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
    """A router: `net` and `user` are open descriptors of its namespaces.

    `user` is None where the console is root.  `holder` is the process that keeps the router, `pasta` the one
    that connects it, if it has one.
    """

    net: int
    user: int | None
    holder: Identity
    pasta: Pasta | None = None
    _link: str = ""

    @classmethod
    def open(cls, folder: Folder, plan: Plan) -> Self:
        """Open the network of the attempt in `folder`, which is made unless it is there.

        May be repeated, and by another process after any kill.  Raises OSError, with the reason, when it
        can't be made.
        """
        return cls.adopt(folder, plan) or cls._make(folder, plan)

    @classmethod
    def adopt(cls, folder: Folder, plan: Plan) -> Self | None:
        """Open the network of the attempt in `folder`, and restore it; None when there is none.  OSError."""
        made = cls.find(folder, plan)
        if made is not None:
            made.restore()
        return made

    @classmethod
    def find(cls, folder: Folder, plan: Plan) -> Self | None:
        """Open the network of the attempt in `folder` as it is; None when there is none.  Raises OSError."""
        found = folder.read(layout.ROUTER)
        holder = Identity.load(found) if found else None
        return cls._load(holder, folder, plan) if holder is not None and holder.alive() else None

    def restore(self) -> None:
        """Start what connects the router again if it was killed, and let it go on if it was stopped; OSError.

        An ordinary user's jobs are the only ones who need a process for that.
        """
        if self.pasta is not None and self.holder.alive():
            self.pasta.ensure(self.holder.pid)

    @classmethod
    def _make(cls, folder: Folder, plan: Plan) -> Self:
        network = plan.network
        assert network is not None
        _remove_leftovers(folder, network)
        rules = router_rules(network.addresses, network.egress, uplink.host_addresses())
        user = plan.house.isolation == Isolation.NAMESPACES
        holder = Holder(user=user, prepare=lambda: router.set_up(rules), mark={MARK: plan.key})
        try:
            fault("network.held")
            made = cls._load(holder.identity, folder, plan)
            made.restore()
            if network.uplink and network.egress:
                uplink.add_link(network.uplink, made.net)  # while the holder sets up the router
            holder.wait()
            fault("network.made")
            folder.write(layout.ROUTER, holder.identity.dump(), durable=False)
        except BaseException:
            holder.cancel()
            raise
        fault("network.recorded")
        holder.release()
        return made

    @classmethod
    def _load(cls, holder: Identity, folder: Folder, plan: Plan) -> Self:
        network = plan.network
        assert network is not None
        pasta = _pasta(folder) if _has_pasta(network) else None
        return replace(cls.of(holder, Isolation(plan.house.isolation)), pasta=pasta, _link=network.uplink)

    @classmethod
    def of(cls, holder: Identity, mode: Isolation) -> Self:
        """Open the namespaces that a process keeps, and nothing more; OSError."""
        user = _open_namespace(holder.pid, "user") if mode is Isolation.NAMESPACES else None
        return cls(_open_namespace(holder.pid, "net"), user, holder)

    def remove(self) -> None:
        """Remove it, also when the attempt's folder is gone, and close the descriptors."""
        held = self.holder.hold()
        if held is not None:
            if self._link:  # which is this router's as long as that is kept
                uplink.remove_link(self._link)
            processes.send(held, processes.KILL)
            os.close(held)
        if self.pasta is not None:
            self.pasta.stop()
        self.close()

    def close(self) -> None:
        """Close the descriptors; the network stays."""
        os.close(self.net)
        if self.user is not None:
            os.close(self.user)


def remove(folder: Folder, plan: Plan) -> None:
    """Remove the network of an attempt that has ended; none is fine.  May be repeated.

    The link of a router that nobody keeps ends by itself.  Its address may be another attempt's by now.
    """
    if plan.network is None:
        return
    network = AttemptNetwork.find(folder, plan)
    if network is not None:
        network.remove()
    elif _has_pasta(plan.network):
        _pasta(folder).stop()
    folder.remove(layout.ROUTER)


def _remove_leftovers(folder: Folder, network: NetworkPlan) -> None:
    """Remove what belonged to a router of a running attempt that nobody keeps or has recorded."""
    if network.uplink:
        uplink.remove_link(network.uplink)
    if _has_pasta(network):
        _pasta(folder).stop()


def _has_pasta(network: NetworkPlan) -> bool:
    return bool(network.egress) and not network.uplink


def _pasta(folder: Folder) -> Pasta:
    return Pasta(Path(f"/proc/self/fd/{folder.fd}").readlink() / layout.PASTA)


def _open_namespace(pid: int, name: str) -> int:
    return os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)

"""The network of an attempt while the agent looks after it."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from jobs.node.agent.launcher import Launcher
from jobs.node.files import Folder
from jobs.node.network import attempt_network
from jobs.node.network.attempt_network import AttemptNetwork
from jobs.node.network.router_services import RouterServices
from jobs.node.supervisor.plan import Plan


class OpenedNetwork:
    """The network of one attempt, if it has one of its own, with what is served in its router."""

    def __init__(
        self, path: Path, folder: Folder, plan: Plan, launcher: Launcher, services: RouterServices
    ) -> None:
        self._path, self._folder, self._plan = path, folder, plan
        self._launcher, self._services = launcher, services
        self._network: AttemptNetwork | None = None
        self._is_adopted = True
        self._opening = asyncio.Lock()

    async def open(self) -> AttemptNetwork | None:
        """Return the network, made once somebody needs it, or None in the host's.  Raises as orders do."""
        async with self._opening:
            if self._network is None and self._plan.network is not None:
                await self._launcher.make_network(self._path)
                await asyncio.to_thread(self._adopt)
                if self._network is None:
                    raise ConnectionResetError("what keeps the network was killed")
            return self._network

    async def adopt(self) -> None:
        """Serve again in a network that an earlier agent left; whoever needs another has it made."""
        if self._plan.network is not None:
            self._is_adopted = False
            await asyncio.to_thread(self.restore)

    def restore(self) -> None:
        """Adopt it if that failed before, or start again what was killed of it."""
        with contextlib.suppress(OSError):  # tried again in the next round
            if self._network is not None:
                self._network.restore()
            elif not self._is_adopted:
                self._adopt()

    async def remove(self) -> None:
        """Remove the network, which nobody needs any more."""
        if self._plan.network is not None:
            await asyncio.to_thread(self._remove)

    def close(self) -> None:
        """Let go of it; the network stays."""
        network, self._network = self._network, None
        if network is not None:
            self._services.close(self._plan.key)
            network.close()

    def _adopt(self) -> None:
        found = AttemptNetwork.adopt(self._folder, self._plan)
        if found is not None:
            try:
                self._services.open(self._plan, found)
            except BaseException:
                found.close()
                raise
        self._network, self._is_adopted = found, True

    def _remove(self) -> None:
        network, self._network = self._network, None
        self._services.close(self._plan.key)
        if network is not None:
            network.remove()
        else:
            attempt_network.remove(self._folder, self._plan)

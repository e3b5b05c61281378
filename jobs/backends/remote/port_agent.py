"""Session agents that say which of a node's listening sockets are a replica's, for each new connection.

A step of an engine takes its time, so an agent that was asked is kept for a while, for the next question.
"""

from __future__ import annotations

import asyncio
from asyncio.events import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

from jobs.backends.remote.transport import ABORT_TIMEOUT_S, Transport
from jobs.backends.sessions import Barrier, NoEntry

IDLE_S: Final = 30.0
"""An agent that was asked nothing for so long is left."""


class PortAgent:
    """The agent on one replica's node; `make` connects to a new one, `drop` is called when it is left."""

    def __init__(self, make: Callable[[], Transport], drop: Callable[[], object]) -> None:
        self._make, self._drop = make, drop
        self._one_at_a_time = asyncio.Lock()
        self._transport: Transport | None = None
        self._idle: TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    async def ask(self, request: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """Return the agent's answer.  Raises NoEntry."""
        async with self._one_at_a_time:
            self._cancel_timer()
            try:
                return await self._ask(request, timeout_s)
            finally:
                if self._transport is not None:
                    self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._close_later)

    async def _ask(self, request: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """Ask the agent of the last question; it may have ended meanwhile, and then another one."""
        if self._transport is not None:
            try:
                return await self._ask_open(self._transport, request, timeout_s)
            except NoEntry:
                if self._transport is not None:
                    raise
        transport = self._make()
        await transport.open(timeout_s)
        self._transport = transport
        return await self._ask_open(transport, request, timeout_s)

    async def _ask_open(
        self, transport: Transport, request: Mapping[str, Any], timeout_s: float
    ) -> dict[str, Any]:
        try:
            return await transport.start(request, timeout_s)
        except (NoEntry, asyncio.CancelledError) as error:
            if not isinstance(error, NoEntry) or error.barrier is not Barrier.NOT_ITS_OWN:
                await self._close_transport()
            raise

    async def close(self) -> None:
        """Leave the agent; the next question begins another."""
        async with self._one_at_a_time:
            self._cancel_timer()
            self._drop()
            await self._close_transport()

    def _close_later(self) -> None:
        self._closing = asyncio.ensure_future(self.close())

    def _cancel_timer(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    async def _close_transport(self) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.close(ABORT_TIMEOUT_S)


_agents: Final[WeakKeyDictionary[AbstractEventLoop, dict[Hashable, PortAgent]]] = WeakKeyDictionary()
"""The agents of each event loop, by their replicas."""


def agent_for(key: Hashable, make: Callable[[], Transport]) -> PortAgent:
    """Return the agent of the replica that `key` names."""
    agents = _agents.setdefault(asyncio.get_running_loop(), {})
    if (known := agents.get(key)) is not None:
        return known
    return agents.setdefault(key, PortAgent(make, lambda: agents.pop(key, None)))


async def close_agents() -> None:
    """Leave all agents that this event loop has asked."""
    agents = list(_agents.get(asyncio.get_running_loop(), {}).values())
    await asyncio.gather(*(agent.close() for agent in agents))

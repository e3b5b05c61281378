"""What carries `wire` between the console and the node's end of a session: a step's process, or a door.

The node's end runs as the job's user, and what comes from it is not believed: it is bounded, and what makes
no sense ends that session alone.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final

from jobs.backends.sessions import Barrier, NoEntry
from jobs.backends.slurm.client.programs import NO_ANSWER, NO_CONNECTION
from jobs.backends.slurm.sessions import wire

BEGIN_S: Final = 20.0
"""A node that has said nothing by then is given up: srun itself tries on for minutes."""

END_S: Final = 10.0
AT_ONCE_S: Final = 2.0

NOT_THERE: Final = ("invalid job id", "expired or invalid job", "already completing or completed")
"""What srun says when the job is none, or none any more."""

_LONGEST_DETAIL: Final = 4000


class Line(ABC):
    """One of them, for one session."""

    def __init__(self) -> None:
        self._heard = wire.Heard(wire.LONGEST_FROM_A_NODE)
        self._early: list[tuple[int, bytes]] = []

    @abstractmethod
    async def open(self, patience_s: float) -> None:
        """Get through to the node, or on the way there.  Raises NoEntry."""

    @abstractmethod
    async def say(self, data: bytes) -> None:
        """Send one message.  BrokenPipeError when nobody hears it."""

    @abstractmethod
    async def end(self, patience_s: float = END_S) -> None:
        """Say that nobody is here any more, which ends what it carries; and wait for it, for so long."""

    @abstractmethod
    async def over(self) -> None:
        """Until the node's end is gone."""

    @abstractmethod
    async def _read(self) -> bytes:
        """What comes next; b"" at the end."""

    @abstractmethod
    async def _why(self) -> NoEntry:
        """Why it ended without a word."""

    def _said(self) -> str:
        """What is known so far of what is in the way."""
        return ""

    async def ask(self, request: Mapping[str, Any], patience_s: float) -> dict[str, Any]:
        """Have one question answered.  Raises NoEntry."""
        await self.open(patience_s)
        try:
            return await self.first_word(request, patience_s)
        finally:
            await self.end(AT_ONCE_S)

    async def first_word(self, request: Mapping[str, Any], patience_s: float) -> dict[str, Any]:
        """Tell it what is wanted, and hear what it says to that.  Raises NoEntry."""
        told: list[tuple[int, bytes]] | None = None
        try:
            async with asyncio.timeout(patience_s):
                await self.say(wire.words(request))
                told = await self.hear()
            if told is None:
                raise await self._why()
            self._early = told[1:]
            return _first(wire.understood(told[0][1]))
        except TimeoutError as error:
            raise NoEntry(Barrier.ENGINE_AWAY, self._said() or f"nothing within {patience_s:g} s") from error
        except BrokenPipeError:
            raise await self._why() from None
        except wire.Broken as error:
            raise NoEntry(Barrier.FAILED, str(error)) from error

    async def hear(self) -> list[tuple[int, bytes]] | None:
        """The next messages, at least one; None at the end.  Raises wire.Broken."""
        if self._early:
            early, self._early = self._early, []
            return early
        while data := await self._read():
            if found := list(self._heard.more(data)):
                return found
        return None


def why(said: str) -> Barrier:
    """What srun's complaint means."""
    low = said.lower()
    if any(phrase in low for phrase in (*NO_CONNECTION, *NO_ANSWER)):
        return Barrier.ENGINE_AWAY
    return Barrier.NOT_RUNNING if any(phrase in low for phrase in NOT_THERE) else Barrier.FAILED


def _first(said: dict[str, Any]) -> dict[str, Any]:
    """The node's first word, when it lets us in.  Raises NoEntry when not."""
    if "barrier" not in said:
        return said
    barrier, detail = said["barrier"], str(said.get("detail", ""))[:_LONGEST_DETAIL]
    raise NoEntry(Barrier(barrier) if barrier in tuple(Barrier) else Barrier.FAILED, detail)

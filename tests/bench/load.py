"""Somebody who posts the same thing again and again."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

import aiohttp

from tests.signed import Key, acs3_headers


@dataclass(frozen=True, slots=True)
class Call:
    """A POST of `body`, which must be answered with `status`."""

    url: str
    token: str
    body: bytes
    status: int = 201

    @property
    def headers(self) -> dict[str, str]:
        """Who calls, and with what."""
        return {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}

    async def make(self, session: aiohttp.ClientSession) -> float:
        """Its duration in seconds; raises AssertionError for any other answer."""
        began = time.perf_counter()
        async with session.post(self.url, data=self.body, headers=self.headers) as answer:
            text = await answer.text()
        assert answer.status == self.status, text
        return time.perf_counter() - began


@dataclass(frozen=True, slots=True)
class SignedCall(Call):
    """The same by an access key, each request with a signature of its own."""

    key: Key = field(kw_only=True)

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers of one request."""
        return acs3_headers(self.key, "POST", self.url, self.body)


def rate(call: Call, *, seconds: float, at_once: int) -> float:
    """Answers a second, with `at_once` calls under way all the time."""
    return per_second(call, seconds=seconds, at_once=at_once)[0]


def per_second(call: Call, *, seconds: float, at_once: int) -> tuple[float, list[float]]:
    """The same, with the duration of each call."""
    return asyncio.run(_per_second(call, seconds, at_once))


async def _per_second(call: Call, seconds: float, at_once: int) -> tuple[float, list[float]]:
    async with aiohttp.ClientSession() as session:
        await call.make(session)
        began = time.perf_counter()

        async def caller() -> list[float]:
            taken = []
            while time.perf_counter() - began < seconds:
                taken.append(await call.make(session))
            return taken

        made = await asyncio.gather(*(caller() for _each in range(at_once)))
        taken = [each for of_one in made for each in of_one]
        return len(taken) / (time.perf_counter() - began), taken


def durations(call: Call, *, per_second: float, seconds: float) -> list[float]:
    """Durations of calls that begin at fixed times, whether or not those before have been answered."""
    return asyncio.run(_durations(call, per_second, int(per_second * seconds)))


async def _durations(call: Call, per_second: float, number: int) -> list[float]:
    async with aiohttp.ClientSession() as session:
        await call.make(session)
        began = time.perf_counter()

        async def later(turn: int) -> float:
            due = began + turn / per_second
            await asyncio.sleep(due - time.perf_counter())
            late = max(0.0, time.perf_counter() - due)
            return late + await call.make(session)

        return await asyncio.gather(*(later(turn) for turn in range(number)))

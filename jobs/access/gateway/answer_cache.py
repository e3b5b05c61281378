"""A short-lived cache of answers: a page of a hundred files checks its viewer once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MOST: Final = 10_000


class AnswerCache(Generic[K, V]):
    """Answers of `ask`, each good for `seconds`; whoever asks while one is on its way waits for that one.

    A failure is told to all who wait, and not remembered.
    """

    def __init__(self, ask: Callable[[K], Awaitable[V]], seconds: float) -> None:
        self._ask = ask
        self._seconds = seconds
        self._known: dict[K, tuple[float, asyncio.Future[V]]] = {}

    async def get(self, key: K) -> V:
        """The answer for `key`, at most `seconds` old."""
        now = asyncio.get_running_loop().time()
        until, answer = self._known.get(key, (0.0, None))
        if answer is None or until < now:
            self._make_room(now)
            answer = asyncio.ensure_future(self._ask(key))
            answer.add_done_callback(lambda done: self._drop_failure(key, done))
            self._known[key] = (now + self._seconds, answer)
        return await asyncio.shield(answer)

    def forget_all(self) -> None:
        """Ask everything again."""
        self._known.clear()

    def _make_room(self, now: float) -> None:
        if len(self._known) >= MOST:
            self._known = {key: row for key, row in self._known.items() if row[0] >= now}
        if len(self._known) >= MOST:
            self._known.clear()

    def _drop_failure(self, key: K, done: asyncio.Future[V]) -> None:
        if done.cancelled() or done.exception() is not None:
            self._known.pop(key, None)

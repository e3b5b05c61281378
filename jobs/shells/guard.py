"""How many may knock, and how often in vain: before anybody is known, an address is all there is."""

from __future__ import annotations

import time
from collections import Counter, deque
from typing import Final

from django.conf import settings

MOST_STRANGERS: Final = 100
"""Connections that have not said who they are, in all."""

MOST_STRANGERS_EACH: Final = 20
WINDOW_SECONDS: Final = 600.0
MOST_ADDRESSES: Final = 10_000


class Guard:
    """Connections and failures of this process, by address.  Times are seconds on one clock."""

    def __init__(self, most: int, most_failures: int) -> None:
        self._most, self._most_failures = most, most_failures
        self._open = 0
        self._strangers: Counter[str] = Counter()
        self._failures: dict[str, deque[float]] = {}

    @classmethod
    def from_settings(cls) -> Guard:
        """As the admin wants it."""
        return cls(settings.CONSOLE_ENTRIES + MOST_STRANGERS, settings.CONSOLE_SSH_FAILURES)

    def admit(self, address: str) -> bool:
        """Whether one more connection from `address` is listened to; `known` and `gone` are to follow."""
        full = self._open >= self._most or self._strangers.total() >= MOST_STRANGERS
        if full or self._strangers[address] >= MOST_STRANGERS_EACH or self._is_paused(address):
            return False
        self._open += 1
        self._strangers[address] += 1
        return True

    def known(self, address: str) -> None:
        """It has said who it is, and was believed."""
        self._strangers[address] -= 1
        self._tidy(address)

    def gone(self, address: str, *, known: bool) -> None:
        """It is over; in vain, unless it was `known`."""
        self._open -= 1
        if known:
            return
        self._strangers[address] -= 1
        self._tidy(address)
        if len(self._failures) >= MOST_ADDRESSES:
            self._failures.pop(next(iter(self._failures)))
        self._failures.setdefault(address, deque(maxlen=self._most_failures)).append(time.monotonic())

    def _is_paused(self, address: str) -> bool:
        failures = self._failures.get(address)
        if not failures or len(failures) < self._most_failures:
            return False
        return time.monotonic() - failures[0] < WINDOW_SECONDS

    def _tidy(self, address: str) -> None:
        if self._strangers[address] <= 0:
            del self._strangers[address]

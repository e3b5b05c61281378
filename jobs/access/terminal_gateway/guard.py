"""Limits of unauthenticated SSH connections and of failed logins, by address."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final

from django.conf import settings

MOST_UNAUTHENTICATED: Final = 100
"""Connections that have not said who they are, in all."""

MOST_UNAUTHENTICATED_EACH: Final = 20
WINDOW_SECONDS: Final = 600.0
MOST_ADDRESSES: Final = 10_000


class PendingConnection:
    """A connection that was admitted; `cut` ends it."""

    def __init__(self, guard: ConnectionGuard, origin: str, cut: Callable[[], None]) -> None:
        self._guard, self._origin = guard, origin
        self.cut = cut
        self.is_known = False
        self.has_offered = False
        """A key was offered: only such a connection can have failed."""

    def authenticate(self) -> None:
        """Note that it is authenticated."""
        self.is_known = True
        self._guard.forget(self._origin, self)

    def close(self) -> None:
        """Free its slot; it has failed if it offered keys and none was accepted."""
        self._guard.release(self._origin, self)


class ConnectionGuard:
    """Connections and failures of this process, by origin.  Times are seconds on one clock.

    When too many are unauthenticated, the origin with most of them loses its oldest: an origin that holds
    many open keeps out no other.  A connection that offers no key is bounded by these limits and the login
    deadline alone: it guesses nothing, so it pauses no origin.
    """

    def __init__(self, most: int, most_failures: int) -> None:
        self._most, self._most_failures = most, most_failures
        self._open = 0
        self._unauthenticated: dict[str, dict[PendingConnection, None]] = {}
        self._unauthenticated_total = 0
        self._failures: dict[str, deque[float]] = {}

    @classmethod
    def from_settings(cls) -> ConnectionGuard:
        """Return the guard of the settings."""
        return cls(settings.CONSOLE_ENTRIES + MOST_UNAUTHENTICATED, settings.CONSOLE_SSH_FAILURES)

    def admit(self, address: str, cut: Callable[[], None]) -> PendingConnection | None:
        """Count a connection from `address`; None refuses it.  `cut` may be called to end it."""
        origin = origin_of(address)
        mine = len(self._unauthenticated.get(origin, ()))
        if self._open >= self._most or mine >= MOST_UNAUTHENTICATED_EACH or self._is_paused(origin):
            return None
        if self._unauthenticated_total >= MOST_UNAUTHENTICATED and not self._make_room(mine):
            return None
        pending = PendingConnection(self, origin, cut)
        self._open += 1
        self._unauthenticated_total += 1
        self._unauthenticated.setdefault(origin, {})[pending] = None
        return pending

    def _make_room(self, mine: int) -> bool:
        """Cut the oldest connection of the origin with most; False if that has no more than `mine`."""
        origin, theirs = max(self._unauthenticated.items(), key=lambda each: len(each[1]))
        if len(theirs) <= mine:
            return False
        oldest = next(iter(theirs))
        self.forget(origin, oldest)
        oldest.cut()
        return True

    def forget(self, origin: str, pending: PendingConnection) -> None:
        """Stop counting a connection as unauthenticated."""
        mine = self._unauthenticated.get(origin, {})
        if pending in mine:
            del mine[pending]
            self._unauthenticated_total -= 1
        if not mine:
            self._unauthenticated.pop(origin, None)

    def release(self, origin: str, pending: PendingConnection) -> None:
        """Free what a connection that is over held, and count its failure if it was one."""
        self._open -= 1
        if pending.is_known:
            return
        self.forget(origin, pending)
        if not pending.has_offered:
            return
        if len(self._failures) >= MOST_ADDRESSES:
            self._failures.pop(next(iter(self._failures)))
        self._failures.setdefault(origin, deque(maxlen=self._most_failures)).append(time.monotonic())

    def _is_paused(self, origin: str) -> bool:
        failures = self._failures.get(origin)
        if not failures or len(failures) < self._most_failures:
            return False
        return time.monotonic() - failures[0] < WINDOW_SECONDS


def origin_of(address: str) -> str:
    """Return the network of an address that counts as one origin: of IPv6 the 64 bits of one customer."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        mapped = found.ipv4_mapped
        return str(mapped or IPv6Network((int(found), 64), strict=False))
    return str(found)

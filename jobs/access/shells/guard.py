"""How many may knock, and how often in vain: before anybody is known, an address is all there is."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final

from django.conf import settings

MOST_STRANGERS: Final = 100
"""Connections that have not said who they are, in all."""

MOST_STRANGERS_EACH: Final = 20
WINDOW_SECONDS: Final = 600.0
MOST_ADDRESSES: Final = 10_000


class Knock:
    """One connection that is listened to; `cut` ends it."""

    def __init__(self, guard: Guard, origin: str, cut: Callable[[], None]) -> None:
        self._guard, self._origin = guard, origin
        self.cut = cut
        self.is_known = False
        self.has_offered = False
        """A key was offered: only such a connection can have failed."""

    def known(self) -> None:
        """It has said who it is, and was believed."""
        self.is_known = True
        self._guard.forget(self._origin, self)

    def gone(self) -> None:
        """Give its room back; it has failed if it offered keys and none was accepted."""
        self._guard.left(self._origin, self)


class Guard:
    """Connections and failures of this process, by where they come from.  Times are seconds on one clock.

    When too many strangers knock, a place is taken from whoever has most of them: somebody who holds many
    connections open keeps out nobody who comes from elsewhere.  A connection that offers no key is bounded by
    its room and by the login deadline alone: silence guesses nothing, so it pauses nobody.
    """

    def __init__(self, most: int, most_failures: int) -> None:
        self._most, self._most_failures = most, most_failures
        self._open = 0
        self._strangers: dict[str, dict[Knock, None]] = {}
        self._total = 0
        self._failures: dict[str, deque[float]] = {}

    @classmethod
    def from_settings(cls) -> Guard:
        """As the admin wants it."""
        return cls(settings.CONSOLE_ENTRIES + MOST_STRANGERS, settings.CONSOLE_SSH_FAILURES)

    def admit(self, address: str, cut: Callable[[], None]) -> Knock | None:
        """The connection from `address`, if it is listened to; `cut` may be called to end it."""
        origin = origin_of(address)
        mine = len(self._strangers.get(origin, ()))
        if self._open >= self._most or mine >= MOST_STRANGERS_EACH or self._is_paused(origin):
            return None
        if self._total >= MOST_STRANGERS and not self._made_room(mine):
            return None
        knock = Knock(self, origin, cut)
        self._open += 1
        self._total += 1
        self._strangers.setdefault(origin, {})[knock] = None
        return knock

    def _made_room(self, mine: int) -> bool:
        """Whether somebody who has more strangers here than `mine` had to give one up, the oldest."""
        origin, theirs = max(self._strangers.items(), key=lambda each: len(each[1]))
        if len(theirs) <= mine:
            return False
        oldest = next(iter(theirs))
        self.forget(origin, oldest)
        oldest.cut()
        return True

    def forget(self, origin: str, knock: Knock) -> None:
        """It is a stranger no more."""
        mine = self._strangers.get(origin, {})
        if knock in mine:
            del mine[knock]
            self._total -= 1
        if not mine:
            self._strangers.pop(origin, None)

    def left(self, origin: str, knock: Knock) -> None:
        """Free what a connection that is over held, and count its failure if it was one."""
        self._open -= 1
        if knock.is_known:
            return
        self.forget(origin, knock)
        if not knock.has_offered:
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
    """Whose address it is, as far as it tells: of IPv6 the half that one customer is given."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        mapped = found.ipv4_mapped
        return str(mapped or IPv6Network((int(found), 64), strict=False))
    return str(found)

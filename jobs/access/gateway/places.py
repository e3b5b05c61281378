"""How much may pass at a time, so that no crowd at the endpoints keeps anybody from the console."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings


class Full(Exception):
    """There is no place for one more."""


class Places:
    """Requests and WebSockets under way in this process, in all and of each person (by primary key)."""

    def __init__(self) -> None:
        self._total = 0
        self._people: Counter[int] = Counter()

    @contextmanager
    def one(self) -> Iterator[None]:
        """Somebody's, whoever they are.  Raises Full."""
        if self._total >= settings.CONSOLE_GATEWAY_CONNECTIONS:
            raise Full
        self._total += 1
        try:
            yield
        finally:
            self._total -= 1

    @contextmanager
    def of(self, person: int) -> Iterator[None]:
        """One of those that `person` may have.  Raises Full."""
        if self._people[person] >= settings.CONSOLE_GATEWAY_CONNECTIONS_PER_PERSON:
            raise Full
        self._people[person] += 1
        try:
            yield
        finally:
            self._people[person] -= 1
            if not self._people[person]:
                del self._people[person]

    @property
    def taken(self) -> int:
        """How many there are now."""
        return self._total

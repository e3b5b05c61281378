"""How often something may be done: by one source, and by all of them together."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from typing import Final

MOST_SOURCES: Final = 4096
"""Who has not been heard of the longest is forgotten then."""


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float
    missed: int = 0

    def take(self, now: float, most: int, every_s: float) -> bool:
        """Whether there was one more; it fills up as time passes."""
        self.left = min(most, self.left + (now - self.at) / every_s)
        self.at = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


@dataclass(slots=True)
class Bounds:
    """`at_once` and then one every `every_s` seconds for each source; `all_…` for everybody together."""

    at_once: int
    every_s: float
    all_at_once: int
    all_every_s: float
    clock: Callable[[], float] = monotonic
    _sources: OrderedDict[str, _Bucket] = field(default_factory=OrderedDict)
    _all: _Bucket | None = None
    _lock: Lock = field(default_factory=Lock)

    def admit(self, source: str) -> int | None:
        """None when it is too much; else how many of the source were too much since the last one."""
        with self._lock:
            now = self.clock()
            bucket = self._sources.pop(source, None) or _Bucket(self.at_once, now)
            self._sources[source] = bucket
            if len(self._sources) > MOST_SOURCES:
                self._sources.popitem(last=False)
            self._all = self._all or _Bucket(self.all_at_once, now)
            mine = bucket.take(now, self.at_once, self.every_s)
            if not mine or not self._all.take(now, self.all_at_once, self.all_every_s):
                bucket.missed += 1
                return None
            missed, bucket.missed = bucket.missed, 0
            return missed

    def forget(self) -> None:
        """Begin anew."""
        with self._lock:
            self._sources.clear()
            self._all = None

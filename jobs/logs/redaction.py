"""Masking of a job's own secrets wherever its log is read or stored: `*` for each byte.

Masking keeps all offsets.  It depends on the whole log alone, not on the pieces in which the log is read:
each piece is searched together with as many bytes on either side as a secret is long.  The end of a log that
still grows is held back while it may be the beginning of a secret.

The values are those that the attempt was sent with; they are encrypted in its row, and stay the same when
somebody changes a saved secret.  Live logs are masked as they are read, since the job writes them; sealed
logs are masked before they are stored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from jobs.models import Attempt, LogStream
from quotas import encryption

SHORTEST: Final = 6
"""Bytes.  A shorter value stands in any log by chance."""

SHORTEST_LINE: Final = 16
"""Of a value of several lines each of at least so many bytes is masked by itself too: terminals end lines in
their own way.
"""

LEAST_HELD: Final = 4
"""So many bytes of a secret's beginning at the end of a log are held back; fewer stand there by chance."""

MASK: Final = b"*"
_ARMOUR: Final = b"-----"


@dataclass(frozen=True, slots=True)
class _Value:
    """A secret, and the number of bytes after which it repeats itself (its length, if it does not)."""

    secret: bytes
    period: int

    def runs(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield the beginning and end of each occurrence in `data`; repetitions without a gap are one."""
        value, step = self.secret, self.period
        at = data.find(value)
        while at >= 0:
            begin, end = at, at + len(value)
            while step < len(value) and data[end : end + step] == value[-step:]:
                end += step
            yield begin, end
            at = data.find(value, end - len(value) + 1)


def _period(value: bytes) -> int:
    """Return the least distance at which the value overlaps itself (by the borders of its prefixes)."""
    borders = [0] * len(value)
    length = 0
    for at in range(1, len(value)):
        while length and value[at] != value[length]:
            length = borders[length - 1]
        length += value[at] == value[length]
        borders[at] = length
    return len(value) - borders[-1] if value else 0


class Redactor:
    """Masks certain values in logs."""

    def __init__(self, values: Iterable[bytes] = ()) -> None:
        self._values = tuple(_Value(value, _period(value)) for value in sorted(set(values)))
        self.reach = max((len(value.secret) - 1 for value in self._values), default=0)

    def __bool__(self) -> bool:
        return bool(self._values)

    def mask(self, data: bytes) -> bytes:
        """Mask every occurrence in `data`, also of those that overlap."""
        found: bytearray | None = None
        for value in self._values:
            for begin, end in value.runs(data):
                found = bytearray(data) if found is None else found
                found[begin:end] = MASK * (end - begin)
        return data if found is None else bytes(found)

    def pread(self, file: int, length: int, offset: int) -> bytes:
        """Read as `os.pread` does, and mask."""
        if not self._values:
            return os.pread(file, length, offset)
        before = min(offset, self.reach)
        data = os.pread(file, before + length + self.reach, offset - before)
        if len(data) < before:  # it is shorter than that
            return b""
        return self.mask(data)[before : before + length]

    def visible_size(self, file: int, size: int) -> int:
        """Return how many of the `size` bytes of a growing log are not the possible beginning of a secret."""
        if not self._values:
            return size
        start = max(0, size - self.reach)
        end = os.pread(file, size - start, start)
        return size - max((_prefix_length(end, value.secret) for value in self._values), default=0)


def _prefix_length(end: bytes, value: bytes) -> int:
    """Return how many bytes at the end are the beginning of `value`."""
    at = end.find(value[:LEAST_HELD], max(0, len(end) - len(value) + 1))
    while at >= 0:
        if value.startswith(end[at:]):
            return len(end) - at
        at = end.find(value[:LEAST_HELD], at + 1)
    return 0


NOTHING: Final = Redactor()


def mask_values(secrets: Iterable[str]) -> Iterator[bytes]:
    """Yield the values that are masked: secrets, and long lines of those of several lines."""
    for secret in secrets:
        value = secret.strip().encode("utf-8", "surrogatepass")
        if len(value) >= SHORTEST:
            yield value
        lines = value.splitlines()
        if len(lines) > 1:
            yield from (line for line in lines if len(line) >= SHORTEST_LINE and not line.startswith(_ARMOUR))


def store_secrets(confided: Iterable[tuple[Attempt, Iterable[str]]]) -> None:
    """Store the secrets that each attempt is about to be sent with, in addition to earlier ones."""
    changed = []
    for attempt, secrets in confided:
        before = set(_load(attempt.confided))
        wanted = sorted(value for value in before.union(secrets) if len(value.strip()) >= SHORTEST)
        if wanted and set(wanted) != before:
            attempt.confided = encryption.encrypt(json.dumps(wanted))
            changed.append(attempt)
    Attempt.objects.bulk_update(changed, ("confided",))


def of_stream(stream: LogStream) -> Redactor:
    """Return the redactor of a log."""
    return _redactor(stream.attempt.confided) if stream.attempt.confided else NOTHING


@lru_cache(maxsize=256)
def _redactor(confided: str) -> Redactor:
    return Redactor(mask_values(_load(confided)))


def _load(confided: str) -> list[str]:
    return [str(value) for value in json.loads(encryption.decrypt(confided))] if confided else []

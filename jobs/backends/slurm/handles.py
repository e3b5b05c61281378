"""Handles of jobs on a Slurm cluster."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from jobs.backends.base import Handle
from jobs.backends.remote.attempts import InvalidKey, is_key

_HANDLE: Final = re.compile(r"(?P<number>[1-9][0-9]*)\.(?P<key>[a-z0-9-]+)")


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """A parsed handle: Slurm's number for the job, and the attempt's key."""

    number: int
    key: str

    @classmethod
    def of(cls, handle: Handle) -> SlurmJob:
        """Parse a handle.  Raises InvalidKey for one of another backend."""
        match = _HANDLE.fullmatch(handle)
        if match is None or not is_key(match["key"]):
            raise InvalidKey(handle)
        return cls(int(match["number"]), match["key"])

    @property
    def handle(self) -> Handle:
        """Return the handle."""
        return Handle(f"{self.number}.{self.key}")

"""Handing jobs over in two steps, for engines that can hold them (`Capability.HOLD`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from jobs.backends.base import Handle


@runtime_checkable
class Holding(Protocol):
    """A backend whose jobs wait, once submitted, until they are released.

    What was submitted and never noted, because its submitter died in between, so never runs.
    """

    def release(self, handles: Sequence[Handle]) -> None:
        """Let these go, in one call.  Absent ones and those that run are fine; raises Unreachable."""

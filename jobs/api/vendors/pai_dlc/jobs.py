"""Jobs: create, list, get, update, stop, delete; their events and logs."""

from __future__ import annotations

from typing import Final

from jobs.api.vendors.operations import Operation

OPERATIONS: Final[tuple[Operation, ...]] = ()

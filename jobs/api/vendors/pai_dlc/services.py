"""What is beside jobs: specs, metrics, health checks, terminals, tokens, TensorBoards, templates."""

from __future__ import annotations

from typing import Final

from jobs.api.vendors.operations import Operation

OPERATIONS: Final[tuple[Operation, ...]] = ()

"""The services beside jobs: specs, metrics, health checks, terminals, tokens, TensorBoards, templates."""

from __future__ import annotations

from typing import Final

from jobs.api.vendors.operations import Operation
from jobs.api.vendors.pai_dlc import job_templates, metrics, specs, terminals

OPERATIONS: Final[tuple[Operation, ...]] = (
    *specs.OPERATIONS,
    *metrics.OPERATIONS,
    *terminals.OPERATIONS,
    *job_templates.OPERATIONS,
)

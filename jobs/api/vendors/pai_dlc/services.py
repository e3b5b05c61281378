"""The services beside jobs: specs, metrics, terminals, TensorBoards, templates, and what is refused."""

from __future__ import annotations

from typing import Final

from jobs.api.vendors.operations import Operation
from jobs.api.vendors.pai_dlc import (
    dashboards,
    job_templates,
    metrics,
    specs,
    tensorboards,
    terminals,
    tokens,
    unsupported,
)

OPERATIONS: Final[tuple[Operation, ...]] = (
    *specs.OPERATIONS,
    *metrics.OPERATIONS,
    *terminals.OPERATIONS,
    *dashboards.OPERATIONS,
    *tensorboards.OPERATIONS,
    *tokens.OPERATIONS,
    *job_templates.OPERATIONS,
    *unsupported.OPERATIONS,
)

"""The PAI-DLC API."""

from __future__ import annotations

from typing import ClassVar

from jobs.api.vendors.alibaba import AlibabaApi
from jobs.api.vendors.operations import Operation
from jobs.api.vendors.pai_dlc import jobs, services


class PaiDlc(AlibabaApi):
    """PAI-DLC 2020-12-03."""

    name = "PAI-DLC"
    version = "2020-12-03"
    prefixes = (
        "/api/v1/jobs",
        "/api/v1/ecsspecs",
        "/api/v1/tokens",
        "/api/v1/tensorboards",
        "/api/v1/jobtemplates",
        "/api/v1/cms",
        "/api/v1/tags",
        "/api/v1/rayhistoryservers",
    )
    operations: ClassVar[tuple[Operation, ...]] = (*jobs.OPERATIONS, *services.OPERATIONS)

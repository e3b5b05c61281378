"""The API of the PAI workspace service."""

from __future__ import annotations

from typing import ClassVar

from jobs.api.vendors.alibaba import AlibabaApi
from jobs.api.vendors.operations import Operation


class PaiWorkspace(AlibabaApi):
    """PAI workspace service 2021-02-04."""

    name = "PAI workspace service"
    version = "2021-02-04"
    prefixes = (
        "/api/v1/workspaces",
        "/api/v1/images",
        "/api/v1/datasets",
        "/api/v1/codesources",
        "/api/v1/quotas",
        "/api/v1/resources",
    )
    operations: ClassVar[tuple[Operation, ...]] = ()

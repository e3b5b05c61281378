"""The API of the PAI workspace service."""

from __future__ import annotations

from typing import ClassVar

from jobs.api.vendors.alibaba import AlibabaApi
from jobs.api.vendors.operations import Operation
from jobs.api.vendors.pai_workspace import code_sources, datasets, images, quotas, unsupported, workspaces


class PaiWorkspace(AlibabaApi):
    """PAI workspace service 2021-02-04."""

    name = "PAI workspace service"
    version = "2021-02-04"
    prefixes = (
        "/api/v1/workspaces",
        "/api/v1/defaultWorkspaces",
        "/api/v1/image",
        "/api/v1/datasets",
        "/api/v1/codesources",
        "/api/v1/quotas",
        "/api/v1/resources",
        "/api/v1/models",
        "/api/v1/product",
        "/api/v1/servicetemplates",
    )
    operations: ClassVar[tuple[Operation, ...]] = (
        *workspaces.OPERATIONS,
        *images.OPERATIONS,
        *datasets.OPERATIONS,
        *code_sources.OPERATIONS,
        *quotas.OPERATIONS,
        *unsupported.OPERATIONS,
    )

"""Quotas, and the resources that they give to workspaces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from django.db.models import QuerySet

from jobs.api.vendors.alibaba import page_slice
from jobs.api.vendors.operations import Call, JsonObject, Kind, Operation, Parameter, Support
from jobs.api.vendors.pai_workspace.assets import RELEASE, find_workspace
from jobs.api.vendors.pai_workspace.lists import PAGES, split_values
from jobs.submission.targets import target_address
from quotas.access import workspaces_of
from quotas.models import Kind as ResourceKind
from quotas.models import Quota, Source, User

PRODUCT: Final = "DLC"
RESOURCE_TYPES: Final = {ResourceKind.GENERAL: "ECS", ResourceKind.LINGJUN: "Lingjun"}


def _quotas_of(user: User) -> QuerySet[Quota]:
    """Return the quotas of the person's workspaces, by name."""
    rows = Quota.objects.filter(workspace__in=workspaces_of(user))
    return rows.select_related("workspace", "cluster").order_by("name", "id")


def name_quotas(quotas: Sequence[Quota]) -> Mapping[int, str]:
    """Return the ids of quotas by their keys: the short name, or with workspace and cluster if shared."""
    count = Counter(each.slug for each in quotas)
    return {each.pk: each.slug if count[each.slug] == 1 else target_address(each) for each in quotas}


def _list_quotas(call: Call) -> JsonObject:
    quotas = list(_quotas_of(call.person))
    ids = name_quotas(quotas)
    name = (call.values["Name"] or "").casefold()
    found = [_render(each, ids[each.pk]) for each in quotas if name in each.name.casefold()]
    return {"Quotas": found, "TotalCount": len(found)}


def _render(quota: Quota, quota_id: str) -> JsonObject:
    mode = "share" if quota.source == Source.PUBLIC else "isolate"
    return {
        "Id": quota_id,
        "Name": quota.slug,
        "DisplayName": quota.name,
        "Mode": mode,
        "ProductCode": f"PAI_{mode}",
        "QuotaType": "PAI",
        "Specs": list(_specs(quota)),
    }


def _specs(quota: Quota) -> Iterator[JsonObject]:
    """Yield the limits of a quota: cores, GiB and GPUs; nothing for what has no limit."""
    amounts = {
        "cpu": None if quota.cpu_milli is None else f"{quota.cpu_milli / 1000:g}",
        "memory": None if quota.memory_mib is None else f"{quota.memory_mib / 1024:g}",
        "gpu": None if quota.gpus is None else str(quota.gpus),
    }
    units = {"cpu": "core", "memory": "GiB", "gpu": "card"}
    for name, value in amounts.items():
        if value is not None:
            yield {"Name": name, "Type": units[name], "Value": value}


def _list_resources(call: Call) -> JsonObject:
    values = call.values
    quotas = list(_quotas_of(call.person))
    ids = name_quotas(quotas)
    if slug := values["WorkspaceId"]:
        workspace = find_workspace(call.person, slug)
        quotas = [each for each in quotas if each.workspace_id == workspace.pk]
    found = [each for each in quotas if _is_wanted(call, each, ids[each.pk])]
    page = [_render_resource(each, ids[each.pk]) for each in found[page_slice(call)]]
    return {"Resources": page, "TotalCount": len(found)}


def _is_wanted(call: Call, quota: Quota, quota_id: str) -> bool:
    """Tell whether the filters of ListResources leave a quota."""
    values = call.values
    given = {
        PRODUCT: split_values(values["ProductTypes"]),
        RESOURCE_TYPES[ResourceKind(quota.kind)]: split_values(values["ResourceTypes"]),
        quota_id: split_values(values["QuotaIds"]),
    }
    is_named = values["ResourceName"] in (None, quota.slug, quota.name)
    is_grouped = values["GroupName"] in (None, quota.workspace.slug)
    return is_named and is_grouped and all(not wanted or own in wanted for own, wanted in given.items())


def _render_resource(quota: Quota, quota_id: str) -> JsonObject:
    return {
        "Id": target_address(quota),
        "Name": quota.slug,
        "GroupName": quota.workspace.slug,
        "WorkspaceId": quota.workspace.slug,
        "ProductType": PRODUCT,
        "ResourceType": RESOURCE_TYPES[ResourceKind(quota.kind)],
        "EnvType": "prod",
        "IsDefault": False,
        "Labels": [],
        "Spec": {},
        "Quotas": [_render(quota, quota_id)],
    }


OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        "ListQuotas",
        "GET",
        "api/v1/quotas",
        _list_quotas,
        parameters=(Parameter("Name"),),
        note="Id is the ResourceId of a DLC job.",
        since=RELEASE,
    ),
    Operation(
        "ListResources",
        "GET",
        "api/v1/resources",
        _list_resources,
        parameters=(
            *PAGES,
            Parameter("WorkspaceId"),
            Parameter("ProductTypes", note=f"All are {PRODUCT}."),
            Parameter("ResourceTypes", note=", ".join(RESOURCE_TYPES.values())),
            Parameter("QuotaIds"),
            Parameter("ResourceName"),
            Parameter("GroupName", note="The workspace's id."),
            Parameter("Labels", support=Support.IGNORED, note="Resources have no labels."),
            Parameter("Option", support=Support.IGNORED, note="Each resource has its workspace and quota."),
            Parameter("Verbose", Kind.BOOLEAN, support=Support.IGNORED, note="All fields are answered."),
            Parameter("VerboseFields", support=Support.IGNORED, note="All fields are answered."),
        ),
        support=Support.PARTIAL,
        note="Each quota is a resource; encryption, executor and time of creation are not answered.",
        since=RELEASE,
    ),
)

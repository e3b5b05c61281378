"""What site.yaml may say.  Amounts are in cores, GiB and whole GPUs; prices are an hour's.

What a file does not name is left as it is.  Its JSON Schema is published, for editors that complete.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Slug = Annotated[str, Field(pattern=r"^[-a-zA-Z0-9_]{1,63}$")]
Amount = Annotated[float, Field(ge=0, le=1e9)]
Count = Annotated[int, Field(ge=0, le=1_000_000_000)]
Price = Annotated[float, Field(ge=0, le=1e9)]
Hour = Annotated[int, Field(ge=0, le=24)]

RoleName = Literal["viewer", "developer", "operator", "admin"]
StateName = Literal["schedulable", "cordoned", "draining"]
SourceName = Literal["quota", "public", "preemptible"]
KindName = Literal["general", "lingjun"]
PeriodName = Literal["day", "week", "month"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class NodeShape(_Part):
    """What an admin decided about a node; what it has is its engine's to say."""

    state: StateName = "schedulable"
    why: Annotated[str, Field(max_length=500)] = ""


class SpotShape(_Part):
    """What preemptible resources cost: always, or from one hour of the day until before another."""

    gpu_type: Annotated[str, Field(max_length=64, description="without it, the price of a core")] = ""
    market: Price = Field(description="what a discount is taken from")
    price: Price
    from_hour: Hour | None = None
    until_hour: Hour | None = None


class ClusterShape(_Part):
    """A cluster that is there already; without a `region`, it keeps the one it has."""

    region: Annotated[str, Field(max_length=100)] | None = None
    nodes: dict[str, NodeShape] = {}
    spot_prices: list[SpotShape] | None = None


class SpecShape(_Part):
    """A ready-made size and its price: of one cluster or all of them, for one workspace or everybody."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    description: Annotated[str, Field(max_length=200)] = ""
    cluster: Slug | None = None
    workspace: Slug | None = None
    cores: Annotated[float, Field(gt=0, le=1e6)]
    memory_gib: Annotated[float, Field(gt=0, le=1e6)]
    gpus: Annotated[dict[str, Annotated[int, Field(gt=0)]], Field(max_length=1)] = {}
    price: Price = 0.0
    offered: bool = True


class PersonCeilings(_Part):
    """What one person may hold directly in a quota."""

    gpus: Count | None = None
    cores: Amount | None = None
    memory_gib: Amount | None = None
    jobs: Count | None = None


class QuotaShape(_Part):
    """A resource quota with those that are part of it; what has no ceiling is left out.

    Its short name is also what job files call a virtual cluster or a queue.
    """

    name: Annotated[str, Field(max_length=200)] = ""
    source: SourceName = "quota"
    kind: KindName = "general"
    accepts_jobs: bool = True
    gpus: Count | None = None
    gpus_by_type: dict[str, Count] = {}
    cores: Amount | None = None
    memory_gib: Amount | None = None
    jobs: Count | None = None
    gpu_hours: Count | None = None
    period: PeriodName = "month"
    person: PersonCeilings = PersonCeilings()
    may_borrow: bool = True
    most_pending: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    quotas: dict[Slug, QuotaShape] = {}


class WorkspaceShape(_Part):
    """A workspace; its quotas stand below the clusters that they are of."""

    name: Annotated[str, Field(max_length=200)] = ""
    description: str = ""
    members: dict[str, RoleName] = {}
    quotas: dict[Slug, dict[Slug, QuotaShape]] = {}


class Site(_Part):
    """The whole file."""

    version: Literal[1]
    gpu_types: dict[Annotated[str, Field(max_length=64)], list[str]] = {}
    clusters: dict[Slug, ClusterShape] = {}
    specs: list[SpecShape] = []
    workspaces: dict[Slug, WorkspaceShape] = {}


def json_schema() -> dict[str, Any]:
    """The schema of the file, as JSON Schema 2020-12."""
    schema = Site.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "site.yaml", **schema}

"""The schema of site.yaml.  Amounts are in cores, GiB and whole GPUs; prices are per hour.

What a file does not name is left as it is.  Its JSON Schema is published, for editors that complete.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

SLUG = re.compile(r"^[-a-zA-Z0-9_]{1,63}$")
Slug = Annotated[str, Field(pattern=SLUG.pattern)]
Amount = Annotated[float, Field(ge=0, le=1e9)]
Count = Annotated[int, Field(ge=0, le=1_000_000_000)]
Price = Annotated[float, Field(ge=0, le=1e9)]
Hour = Annotated[int, Field(ge=0, le=24)]

Moment = Annotated[AwareDatetime, Field(strict=False, description="ISO 8601 with a time zone")]

RoleName = Literal["viewer", "developer", "operator", "admin"]
StateName = Literal["schedulable", "cordoned", "draining"]
SourceName = Literal["quota", "public", "preemptible"]
KindName = Literal["general", "lingjun"]
PeriodName = Literal["day", "week", "month"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class NodeShape(_Part):
    """An admin's decision about a node; its hardware comes from the engine."""

    state: StateName = "schedulable"
    why: Annotated[str, Field(max_length=500)] = ""


class SpotShape(_Part):
    """A price of preemptible resources, at all times or between two hours of the day."""

    gpu_type: Annotated[str, Field(max_length=64, description="without it, the price of a core")] = ""
    market: Price = Field(description="what a discount is taken from")
    price: Price
    from_hour: Hour | None = None
    until_hour: Hour | None = None


class ClusterShape(_Part):
    """A cluster that is there already; it keeps what the file leaves out."""

    name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    admission: Annotated[
        Literal["console", "engine"] | None, Field(description="who decides what starts when")
    ] = None
    enabled: bool | None = None
    shows_addresses: bool | None = None
    cordons_faulty: bool | None = None
    cordon_percent: Annotated[int, Field(ge=0, le=100)] | None = None
    region: Annotated[str, Field(max_length=100)] | None = None
    settings: Annotated[
        dict[str, Any] | None,
        Field(description="as its backend has them; ******** in place of a secret leaves it as it is"),
    ] = None
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


class PersonLimitsShape(_Part):
    """The limits of one person directly in a quota."""

    gpus: Count | None = None
    cores: Amount | None = None
    memory_gib: Amount | None = None
    jobs: Count | None = None


class IdleShape(_Part):
    """When jobs that don't use what they hold are warned and ended, and whose are not."""

    warn_minutes: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    release_minutes: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    percent: Annotated[int, Field(ge=1, le=100)] = 5
    extensions: Annotated[int, Field(ge=0, le=32_767)] = 2
    exempt: bool = False
    exempt_people: list[str] = []
    exempt_roles: list[RoleName] = []
    exempt_labels: dict[str, str] = {}


Minutes = Annotated[int, Field(ge=1, le=1_000_000_000)]


class JobPolicyShape(_Part):
    """Limits of requests in a quota for a role or a person, or for everybody where neither is named."""

    role: RoleName | Literal[""] = ""
    person: str = ""
    by_workspace: Annotated[bool, Field(description="set by the workspace's admins, beside the others")] = (
        False
    )
    highest_priority: Annotated[int, Field(ge=1, le=9)] | None = None
    time_limit_minutes: Minutes | None = None
    default_minutes: Minutes | None = None
    job_gpus: Count | None = None
    gpu_types: list[str] = []
    waiting_jobs: Count | None = None
    running_jobs: Count | None = None


class QuotaShape(_Part):
    """A resource quota with those that are part of it, as it is to be: what it leaves out has its default.

    Without `policies` it keeps those that it has.

    Its short name is also what job files call a virtual cluster or a queue.
    """

    part_of: Annotated[
        str, Field(description="WORKSPACE/QUOTA, where it does not stand in that, in any order")
    ] = ""
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
    person: PersonLimitsShape = PersonLimitsShape()
    may_borrow: bool = True
    fair_share_weight: Annotated[int, Field(ge=1, le=100)] = 1
    least_running_minutes: Count | None = None
    most_pending: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    idle: IdleShape = IdleShape()
    policies: list[JobPolicyShape] | None = None
    quotas: dict[Slug, QuotaShape] = {}


class LogSinkShape(_Part):
    """A server that gets the logs of a workspace's jobs.  A password or token is entered in the admin."""

    url: Annotated[str, Field(min_length=1, max_length=2000)]
    format: Literal["loki", "elasticsearch", "ndjson"] = "loki"
    auth: Literal["none", "basic", "bearer"] = "none"
    username: Annotated[str, Field(max_length=200, pattern="^[^:]*$")] = ""
    labels: dict[str, str] = {}
    enabled: bool = True


class ServiceAccountShape(_Part):
    """An account of scripts.  Its tokens and access keys are issued in the console, never in a file."""

    role: RoleName = "developer"
    contact: Annotated[str, Field(min_length=1, max_length=200)]
    about: Annotated[str, Field(max_length=200)] = ""
    made_by: str | None = None
    active: bool = True


class WorkspaceShape(_Part):
    """A workspace; its quotas stand below the clusters that they are of.

    Without `egress` it keeps the one that it has, without `log_sinks` those.  `members` are those by hand.
    """

    name: Annotated[str, Field(max_length=200)] = ""
    vendor_id: Annotated[
        str, Field(max_length=200, description="WorkspaceId of job files and programs for PAI-DLC")
    ] = ""
    description: str = ""
    egress: Annotated[
        Literal["none", "internet"] | list[str] | None,
        Field(description="where its jobs may connect to; a list has rules such as 192.0.2.0/24:443"),
    ] = None
    members: dict[str, RoleName] = {}
    service_accounts: dict[str, ServiceAccountShape] = {}
    quotas: dict[Slug, dict[Slug, QuotaShape]] = {}
    log_sinks: dict[Annotated[str, Field(min_length=1, max_length=100)], LogSinkShape] = {}


class PersonShape(_Part):
    """A person, who is added where there is none; one who is there keeps what the file leaves out.

    A password is never in a file: a new person sets one by a link, or signs in by LDAP or a provider.
    """

    email: Annotated[str, Field(max_length=254)] | None = None
    first_name: Annotated[str, Field(max_length=150)] | None = None
    last_name: Annotated[str, Field(max_length=150)] | None = None
    unix_name: Annotated[
        str | None,
        Field(max_length=32, description="as which user their jobs run, where a cluster tells people apart"),
    ] = None
    active: bool | None = None
    disabled_by: Annotated[
        str | None, Field(max_length=64, description="the source that disabled it and may enable it again")
    ] = None
    superuser: bool | None = None
    break_glass: bool | None = None
    directory_dn: Annotated[str, Field(max_length=500)] | None = None
    groups: Annotated[list[str] | None, Field(description="local groups, all of them")] = None


class GroupShape(_Part):
    """A local group; who is in it is said by `people`."""

    description: Annotated[str, Field(max_length=500)] = ""
    workspaces: Annotated[dict[Slug, RoleName], Field(description="roles of its people")] = {}


class GroupMappingShape(_Part):
    """A role, or all rights, for a group of LDAP ("ldap") or of an OIDC provider (its name)."""

    source: Annotated[str, Field(min_length=1, max_length=64)]
    group: Annotated[str, Field(min_length=1, max_length=500)]
    workspace: Slug | None = None
    role: RoleName = "developer"
    superuser: bool = False

    @model_validator(mode="after")
    def _check_right(self) -> GroupMappingShape:
        if self.superuser == (self.workspace is not None):
            raise ValueError("select either a workspace or superuser")
        return self


class AnnouncementShape(_Part):
    """A text, with translations."""

    text: Annotated[str, Field(min_length=1, max_length=500)]
    text_zh_hans: Annotated[str, Field(max_length=500)] = ""
    text_ja: Annotated[str, Field(max_length=500)] = ""


class BannerShape(AnnouncementShape):
    """A text on every page: for everybody, one workspace or one person."""

    level: Literal["info", "warn", "bad"] = "info"
    workspace: Slug | None = None
    person: str | None = None
    from_at: Moment | None = None
    until_at: Moment | None = None


class MaintenanceShape(AnnouncementShape):
    """A maintenance window of one cluster or all."""

    cluster: Slug | None = None
    from_at: Moment
    until_at: Moment
    keeps_free: bool = True
    lead_hours: Annotated[int, Field(ge=0, le=24 * 60)] = 24


class TemplateVersionShape(_Part):
    """A version of a template, which never changes.  `content` is a job file without secret values."""

    format: Annotated[str, Field(min_length=1, max_length=32)]
    content: str
    parameters: list[Any] = []
    constraints: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    notes: Annotated[str, Field(max_length=400)] = ""
    made_by: Annotated[str | None, Field(description="default: the owner")] = None


class TemplateShape(_Part):
    """A job template of a workspace, or without one of its owner; versions are only ever added."""

    owner: str
    workspace: Slug | None = None
    proposed_to: Slug | None = None
    name: Annotated[str, Field(min_length=1, max_length=80)]
    description: Annotated[str, Field(max_length=2000)] = ""
    icon: Annotated[str, Field(max_length=32)] = "bolt"
    retired: bool = False
    default: Annotated[int, Field(ge=1)] | None = None
    versions: Annotated[list[TemplateVersionShape], Field(min_length=1, max_length=500)]


class AssetShape(_Part):
    """An asset that jobs name by an id, of one workspace or for everybody."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    workspace: Slug | None = None
    description: str = ""


class GuardedShape(AssetShape):
    """An asset behind a login.  A password is entered in the console; `own_secret` is each person's own."""

    username: Annotated[str, Field(max_length=200)] = ""
    own_secret: Annotated[str, Field(max_length=200)] = ""


class ImageShape(GuardedShape):
    """A container image."""

    address: Annotated[str, Field(min_length=1, max_length=500)]
    official: bool = False
    framework: Annotated[str, Field(max_length=100)] = ""
    version: Annotated[str, Field(max_length=100)] = ""
    python: Annotated[str, Field(max_length=32)] = ""
    accelerator: Annotated[str, Field(max_length=100)] = ""
    accelerated: bool = False


class DatasetShape(GuardedShape):
    """A dataset; its versions count from 1, and the last is taken when a job names none, or the `default`."""

    source: Literal["oss", "s3", "bos", "nas", "extreme_nas", "cpfs", "bmcpfs", "pfs", "host", "http"]
    versions: Annotated[list[Annotated[str, Field(min_length=1, max_length=1000)]], Field(min_length=1)]
    default: Annotated[int, Field(ge=1)] | None = None
    mount_path: Annotated[str, Field(max_length=500)] = "/mnt/data"
    read_only: bool = True
    endpoint: Annotated[str, Field(max_length=300)] = ""
    region: Annotated[str, Field(max_length=64)] = ""
    vpc: Slug | None = None
    options: dict[str, str] = {}


class CodeShape(GuardedShape):
    """A git repository."""

    repo: Annotated[str, Field(min_length=1, max_length=500)]
    branch: Annotated[str, Field(max_length=200)] = ""
    commit: Annotated[str, Field(max_length=64)] = ""
    mount_path: Annotated[str, Field(max_length=500)] = "/root/code"


class VpcShape(AssetShape):
    """A virtual network."""

    vpc_id: Annotated[str, Field(min_length=1, max_length=100)]
    region: Annotated[str, Field(max_length=64)] = ""
    cidr: Annotated[str, Field(max_length=64)] = ""
    switches: list[str] = []
    security_groups: list[str] = []


class RoleShape(AssetShape):
    """A RAM role."""

    arn: Annotated[str, Field(min_length=1, max_length=300)]


class AssetsShape(_Part):
    """Assets, by their ids."""

    images: dict[Slug, ImageShape] = {}
    datasets: dict[Slug, DatasetShape] = {}
    code: dict[Slug, CodeShape] = {}
    vpcs: dict[Slug, VpcShape] = {}
    roles: dict[Slug, RoleShape] = {}


class StorageShape(_Part):
    """A folder or a bucket of this site for an id or address of storage in job files.

    Without `workspaces` or `clusters` it is for all of them.  A secret key is entered in the admin.
    """

    address: Annotated[str, Field(max_length=1000, description="as job files name it; default: the name")] = (
        ""
    )
    folder: Annotated[str, Field(max_length=1000)] = ""
    bucket: Annotated[str, Field(max_length=1000)] = ""
    endpoint: Annotated[str, Field(max_length=500)] = ""
    region: Annotated[str, Field(max_length=64)] = ""
    access_key: Annotated[str, Field(max_length=200)] = ""
    mount_path: Annotated[str, Field(max_length=500)] = ""
    read_only: bool = False
    workspaces: Annotated[list[Slug], Field(min_length=1)] | None = None
    clusters: Annotated[list[Slug], Field(min_length=1)] | None = None
    folders: Annotated[
        dict[Slug, Annotated[str, Field(min_length=1, max_length=1000)]],
        Field(description="of clusters on which the folder differs"),
    ] = {}


class Site(_Part):
    """The whole file."""

    version: Literal[1]
    gpu_types: dict[Annotated[str, Field(max_length=64)], list[str]] = {}
    clusters: dict[Slug, ClusterShape] = {}
    specs: list[SpecShape] = []
    people: dict[Annotated[str, Field(min_length=1, max_length=150)], PersonShape] = {}
    groups: dict[Annotated[str, Field(min_length=1, max_length=100)], GroupShape] = {}
    group_mappings: list[GroupMappingShape] = []
    workspaces: dict[Slug, WorkspaceShape] = {}
    assets: AssetsShape = AssetsShape()
    storage: dict[Annotated[str, Field(min_length=1, max_length=200)], StorageShape] = {}
    templates: dict[Annotated[str, Field(pattern=r"^t-[a-z0-9]{1,14}$")], TemplateShape] = {}
    banners: list[BannerShape] = []
    maintenance: list[MaintenanceShape] = []


def json_schema() -> dict[str, Any]:
    """The schema of the file, as JSON Schema 2020-12."""
    schema = Site.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "site.yaml", **schema}

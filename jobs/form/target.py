"""The target of a job, as far as the form's rules depend on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from django.utils import timezone

from jobs.assets import visibility
from jobs.models import AssetKind, Dataset
from jobs.spec import JobSpec, Mount, Resources
from quotas.admission import Price, snapshot
from quotas.amounts import Amounts
from quotas.clusters import gputypes
from quotas.models import Kind, Quota, Source, User

EMPTY: Final[Mapping[str, str]] = {}
_GRANTED: Final = frozenset({Dataset.Source.OSS, Dataset.Source.NAS, Dataset.Source.NAS_EXTREME})
"""Sources that PAI has to be authorised for."""


@dataclass(frozen=True, slots=True)
class JobTarget:
    """The target of a job: a quota with its cluster's facts.

    `kinds` are the resource types that the workspace may choose among.  `most_gpus` and `most_cpu_milli`
    are what one person may hold in it, where that is bounded.  `prices` are those of preemptible
    resources now, by GPU type, and `gpu_names` the names that people use for those types.  `vpc_of` says in
    which virtual network a place lies, by the id or address of its mount, `public_data` which datasets are
    everybody's, and `granted_data` which lie in OSS or NAS, as far as the assets tell.
    """

    source: Source = Source.QUOTA
    kind: Kind = Kind.GENERAL
    quota: str = ""
    region: str = ""
    backend: str = "local"
    kinds: frozenset[Kind] = frozenset({Kind.GENERAL})
    most_gpus: int | None = None
    most_cpu_milli: int | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)
    gpu_names: Mapping[str, str] = field(default_factory=dict)
    vpc_of: Mapping[str, str] = field(default_factory=dict)
    public_data: frozenset[str] = frozenset()
    granted_data: frozenset[str] = frozenset()

    @property
    def lingjun(self) -> bool:
        """Whether Lingjun machines stand behind it."""
        return self.kind is Kind.LINGJUN

    @property
    def is_quota(self) -> bool:
        """Whether it is a resource quota, and not public or preemptible resources."""
        return self.source is Source.QUOTA

    def amounts_of(self, resources: Resources) -> Amounts:
        """One replica's resources, its GPUs under the name that prices have."""
        gpus = {resources.gpu_type: resources.gpus} if resources.gpus else {}
        amounts = Amounts(resources.cpu_milli, resources.memory_mib, gpus)
        return gputypes.canonicalize(amounts, self.gpu_names)


def describe_target(
    quota: Quota,
    *,
    kinds: frozenset[Kind] = frozenset(),
    vpc_of: Mapping[str, str] = EMPTY,
    public_data: frozenset[str] = frozenset(),
) -> JobTarget:
    """The target that a quota is, with its cluster; no query where nothing is bid for."""
    spot = quota.source == Source.PREEMPTIBLE
    return JobTarget(
        source=Source(quota.source),
        kind=Kind(quota.kind),
        quota=quota.name,
        region=quota.cluster.region,
        backend=quota.cluster.backend,
        kinds=kinds | {Kind(quota.kind)},
        most_gpus=quota.most_gpus_of_one,
        most_cpu_milli=quota.most_cpu_of_one,
        prices=snapshot.prices_of(quota.cluster, timezone.now()) if spot else {},
        gpu_names=gputypes.names() if spot else {},
        vpc_of=vpc_of,
        public_data=public_data,
    )


def find_kinds(quota: Quota) -> frozenset[Kind]:
    """The resource types that its workspace may choose among."""
    rows = Quota.objects.filter(workspace=quota.workspace_id, accepts_jobs=True, cluster__enabled=True)
    return frozenset(Kind(kind) for kind in rows.order_by().values_list("kind", flat=True).distinct())


def add_datasets(target: JobTarget, user: User, spec: JobSpec) -> JobTarget:
    """Return the target with the facts of the registered datasets that the job mounts."""
    keys = {dataset_key(mount) for mount in spec.mounts} - {""}
    if not keys:
        return target
    rows = list(visibility.visible_to(user, AssetKind.DATASET).filter(key__in=keys).select_related("vpc"))
    return replace(
        target,
        vpc_of={**target.vpc_of, **{row.key: row.vpc.vpc_id for row in rows if row.vpc is not None}},
        public_data=target.public_data | {row.key for row in rows if row.is_public},
        granted_data=target.granted_data | {row.key for row in rows if row.source in _GRANTED},
    )


def dataset_key(mount: Mount) -> str:
    """The id of the dataset that is mounted, without the version that may follow it; "" for none."""
    return mount.id.partition("@")[0]

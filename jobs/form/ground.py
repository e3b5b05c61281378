"""Where a job would run, as far as the rules of the form have to know it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from django.utils import timezone

from jobs.assets import sight
from jobs.models import AssetKind, Dataset
from jobs.spec import JobSpec, Mount, Resources
from quotas.admission import Price, snapshot
from quotas.amounts import Amounts
from quotas.clusters import gputypes
from quotas.models import Kind, Quota, Source, User

EMPTY: Final[Mapping[str, str]] = {}
_GRANTED: Final = frozenset({Dataset.Source.OSS, Dataset.Source.NAS, Dataset.Source.NAS_EXTREME})
"""What PAI has to be allowed to use."""


@dataclass(frozen=True, slots=True)
class Ground:
    """A quota, and what it stands for.

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
        asked = Amounts(resources.cpu_milli, resources.memory_mib, gpus)
        return gputypes.renamed(asked, self.gpu_names)


def ground_of(
    quota: Quota,
    *,
    kinds: frozenset[Kind] = frozenset(),
    vpc_of: Mapping[str, str] = EMPTY,
    public_data: frozenset[str] = frozenset(),
) -> Ground:
    """The ground that a quota is, with its cluster; no query where nothing is bid for."""
    spot = quota.source == Source.PREEMPTIBLE
    return Ground(
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


def kinds_beside(quota: Quota) -> frozenset[Kind]:
    """The resource types that its workspace may choose among."""
    rows = Quota.objects.filter(workspace=quota.workspace_id, accepts_jobs=True, cluster__enabled=True)
    return frozenset(Kind(kind) for kind in rows.order_by().values_list("kind", flat=True).distinct())


def with_data(ground: Ground, user: User, spec: JobSpec) -> Ground:
    """The same with what the assets tell of the datasets that the job mounts by their ids."""
    keys = {key_of(mount) for mount in spec.mounts} - {""}
    if not keys:
        return ground
    rows = list(sight.visible_to(user, AssetKind.DATASET).filter(key__in=keys).select_related("vpc"))
    return replace(
        ground,
        vpc_of={**ground.vpc_of, **{row.key: row.vpc.vpc_id for row in rows if row.vpc is not None}},
        public_data=ground.public_data | {row.key for row in rows if row.is_public},
        granted_data=ground.granted_data | {row.key for row in rows if row.source in _GRANTED},
    )


def key_of(mount: Mount) -> str:
    """The id of the dataset that is mounted, without the version that may follow it; "" for none."""
    return mount.id.partition("@")[0]

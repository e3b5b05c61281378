"""Rules of the section on resources: type, source, quota, framework, roles, bids, times, networks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from jobs.dialects.dlc import conditions, job_types, limits
from jobs.form.ground import Ground
from jobs.form.rules.base import BOTH, Page, Rule, Said, Section, bound, hide, off, offer, tell
from jobs.spec import Framework, JobSpec, TaskRole
from quotas.admission import Bid, Shape
from quotas.admission.bids import cost, outbid
from quotas.amounts import Part
from quotas.models import Source

FRAMEWORKS: Final = (
    Framework.TENSORFLOW,
    Framework.PYTORCH,
    Framework.ELASTIC_BATCH,
    Framework.XGBOOST,
    Framework.ONEFLOW,
    Framework.MPI,
    Framework.SLURM,
    Framework.RAY,
)
"""Those of the pages, in their order; Slurm stands on the older one alone."""

ON_LINGJUN: Final = (
    Framework.TENSORFLOW,
    Framework.PYTORCH,
    Framework.ELASTIC_BATCH,
    Framework.MPI,
    Framework.SLURM,
    Framework.RAY,
)

LINGJUN_REGIONS: Final = frozenset(
    {"cn-wulanchabu", "ap-southeast-1", "cn-shenzhen", "cn-beijing", "cn-shanghai", "cn-hangzhou"}
)
"""Wulanchabu, Singapore, Shenzhen, Beijing, Shanghai, Hangzhou; the older page knows the first alone."""

SPOT_REGION: Final = "cn-wulanchabu"
_REGION: Final = re.compile(r"[a-z]{2}-[a-z]+(-\d+)?")
KIND: Final = "kind"
SOURCE: Final = "source"
"""Fields of the form that are no part of a JobSpec: they belong to the quota that is chosen."""

LEAST_DISCOUNT, MOST_DISCOUNT, DISCOUNT_STEP = 10, 90, 10
PUBLIC_GATEWAY: Final = "eth0"
PRIVATE_GATEWAY: Final = "eth1"


# --- type, source, quota ---------------------------------------------------------------------------------


def _kind_where_both(_spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if len(ground.kinds) < 2:
        yield hide(KIND)


def _lingjun_regions(_spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if ground.lingjun and _REGION.fullmatch(ground.region) and ground.region not in LINGJUN_REGIONS:
        yield tell(KIND, broken=True, region=ground.region)


def _public_ceiling(spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if ground.source is not Source.PUBLIC:
        return
    gpus, cores = conditions.gpus_and_cores(spec)
    most_cores = None if ground.most_cpu_milli is None else ground.most_cpu_milli // 1000
    for field, count, most in (
        ("roles[].resources.gpus", gpus, ground.most_gpus),
        ("roles[].resources.cpu_milli", cores, most_cores),
    ):
        if most is not None:
            kind = "GPU" if field.endswith("gpus") else "CPU"
            yield bound(field, most=most, broken=count > most, key=kind, count=count, limit=most)


def _public_waits(_spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if ground.source is Source.PUBLIC:
        yield tell(SOURCE)


def _billed_by_use(_spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if not ground.is_quota:
        yield tell(SOURCE)


def _billed_ahead(_spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if ground.is_quota:
        yield tell(SOURCE)


def _quota_for_quota(spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if not ground.is_quota:
        yield hide("quota", broken=bool(spec.quota), quota=spec.quota)


def _spot_on_lingjun(_spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if ground.source is Source.PREEMPTIBLE and not ground.lingjun:
        yield tell(SOURCE, broken=True)


def _spot_region(_spec: JobSpec, ground: Ground) -> Iterator[Said]:
    spot = ground.source is Source.PREEMPTIBLE
    if spot and _REGION.fullmatch(ground.region) and ground.region != SPOT_REGION:
        yield tell(SOURCE, broken=True, region=ground.region, where=SPOT_REGION)


def _spot_allowed(_spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if ground.source is Source.PREEMPTIBLE:
        yield tell(SOURCE)


def _spot_may_go(_spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if ground.source is Source.PREEMPTIBLE:
        yield tell(SOURCE)


def _spot_needs_vpc(spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if ground.source is Source.PREEMPTIBLE and ground.lingjun and not spec.network.vpc:
        yield tell("network.vpc", broken=True)


def _priority_for_quota(spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if not ground.is_quota:
        yield off("priority", broken=spec.priority is not None)


def _priority_range(_spec: JobSpec, _ground: Ground) -> Iterator[Said]:
    yield bound("priority", least=limits.PRIORITY_LEAST.value, most=limits.PRIORITY_MOST.value)


# --- framework and roles ---------------------------------------------------------------------------------


def _frameworks(spec: JobSpec, _ground: Ground) -> Iterator[Said]:
    known = spec.framework is None or spec.framework in FRAMEWORKS
    yield offer("framework", tuple(FRAMEWORKS), broken=not known, framework=spec.framework or "")


def _lingjun_frameworks(spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if ground.lingjun:
        known = spec.framework is None or spec.framework in ON_LINGJUN
        yield offer("framework", tuple(ON_LINGJUN), broken=not known, framework=spec.framework or "")


def _slurm_older_page(spec: JobSpec, _ground: Ground) -> Iterator[Said]:
    if spec.framework is Framework.SLURM:
        yield tell("framework")


def _roles(spec: JobSpec, _ground: Ground) -> Iterator[Said]:
    """Which roles the framework has; of MPI and Slurm no page lists them."""
    job_type = job_types.of(spec.framework) if spec.framework else None
    if job_type is None or not job_type.roles:
        return
    wrong = tuple(at for at, role in enumerate(spec.roles) if job_type.role(role.name) is None)
    names = ", ".join(spec.roles[at].name for at in wrong)
    yield offer(
        "roles[].name", job_type.roles, broken=bool(wrong), at=wrong, names=names, job_type=job_type.name
    )


def _ray_roles(spec: JobSpec, _ground: Ground) -> Iterator[Said]:
    if spec.framework is Framework.RAY:
        yield tell("roles")


def _size_by_spec(spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if not ground.is_quota:
        at = tuple(index for index, role in enumerate(spec.roles) if not role.resources.instance_type)
        yield tell("roles[].resources.instance_type", at=at)


def _amounts_on_quota(spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if ground.is_quota:
        at = tuple(index for index, role in enumerate(spec.roles) if role.resources.instance_type)
        yield tell("roles[].resources.instance_type", at=at)


# --- bids ------------------------------------------------------------------------------------------------


def _bidders(spec: JobSpec) -> Iterator[tuple[int, TaskRole]]:
    yield from ((at, role) for at, role in enumerate(spec.roles) if role.bid is not None)


def _bid_for_spot(spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if ground.source is not Source.PREEMPTIBLE:
        at = tuple(index for index, _role in _bidders(spec))
        yield hide("roles[].bid", broken=bool(at), at=at)


def _bid_discount(spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if ground.source is not Source.PREEMPTIBLE:
        return
    wrong = tuple(
        at
        for at, role in _bidders(spec)
        if role.bid and role.bid.discount_percent is not None and role.bid.discount_percent % DISCOUNT_STEP
    )
    yield bound(
        "roles[].bid.discount_percent",
        least=LEAST_DISCOUNT,
        most=MOST_DISCOUNT,
        step=DISCOUNT_STEP,
        broken=bool(wrong),
        at=wrong,
    )


def _bid_price(spec: JobSpec, ground: Ground) -> Iterator[Said]:
    """A bid by price lies within the market's: more than it costs anyway buys nothing."""
    if ground.source is not Source.PREEMPTIBLE:
        return
    for at, role in enumerate(spec.roles):
        market = cost(ground.amounts_of(role.resources), ground.prices)[0]
        if market:
            micro = role.bid.price_micro if role.bid else None
            over = micro is not None and micro > market
            yield bound("roles[].bid.price_micro", least=1, most=market, broken=over, at=(at,), micro=market)


def _bid_reaches(spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if ground.source is not Source.PREEMPTIBLE:
        return
    for at, role in _bidders(spec):
        assert role.bid is not None
        shape = Shape((Part(role.replicas, ground.amounts_of(role.resources)),))
        short = outbid(shape, [Bid(role.bid.discount_percent, role.bid.price_micro)], ground.prices)
        if short is not None:
            yield tell("roles[].bid", at=(at,), micro=int(str(short["price"])), bid=int(str(short["bid"])))


# --- nodes, idle resources, affinity, times --------------------------------------------------------------


def _nodes_for_quota(spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if not ground.is_quota:
        at = tuple(index for index, role in enumerate(spec.roles) if role.nodes.only or role.nodes.never)
        yield off("roles[].nodes", broken=bool(at), at=at)


def _idle_for_quota(spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if not ground.is_quota:
        yield off("idle", broken=spec.idle is not None)


def _idle_goes_back(_spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if ground.is_quota:
        yield tell("idle")


def _affinity_for_quota(spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if not ground.is_quota:
        yield off("cpu_affinity", broken=spec.cpu_affinity)


def _running_time(spec: JobSpec, _ground: Ground) -> Iterator[Said]:
    if spec.time_limit_s is None:
        yield tell("time_limit_s", hours=limits.DEFAULT_RUNNING_MINUTES.value // 60)


def _retention_holds(spec: JobSpec, _ground: Ground) -> Iterator[Said]:
    if spec.reserve_after is not None:
        yield tell("reserve_after", seconds=spec.reserve_after.seconds)


def _retention_deletes(spec: JobSpec, _ground: Ground) -> Iterator[Said]:
    if spec.reserve_after is not None:
        yield tell("reserve_after")


# --- network ---------------------------------------------------------------------------------------------


def _vpc_on_public(spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if ground.is_quota and spec.network.vpc:
        yield tell("network.vpc")


def _slow_without_vpc(spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if not ground.is_quota and not spec.network.vpc:
        yield tell("network.vpc")


def _same_region(spec: JobSpec, _ground: Ground) -> Iterator[Said]:
    if spec.network.vpc:
        yield tell("network.vpc")


def _parts_of_vpc(spec: JobSpec, _ground: Ground) -> Iterator[Said]:
    """Switch, security group, ranges and gateway are those of a virtual network."""
    if not spec.network.vpc:
        for name in ("switch", "security_group", "cidrs", "gateway"):
            yield off(f"network.{name}", broken=bool(getattr(spec.network, name)))


def _public_gateway(spec: JobSpec, _ground: Ground) -> Iterator[Said]:
    if spec.network.gateway == PUBLIC_GATEWAY:
        yield tell("network.gateway")


def _private_gateway(spec: JobSpec, _ground: Ground) -> Iterator[Said]:
    if spec.network.gateway == PRIVATE_GATEWAY:
        yield tell("network.gateway")


_HERE: Final = Section.RESOURCES
_ZH: Final = (Page.CHINESE,)
_JA: Final = (Page.JAPANESE,)

RULES: Final = (
    Rule("kind_where_both", _HERE, _kind_where_both, _ZH),
    Rule("lingjun_regions", _HERE, _lingjun_regions),
    Rule("public_ceiling", _HERE, _public_ceiling, ours=True),
    Rule("public_waits", _HERE, _public_waits),
    Rule("billed_by_use", _HERE, _billed_by_use),
    Rule("billed_ahead", _HERE, _billed_ahead),
    Rule("quota_for_quota", _HERE, _quota_for_quota),
    Rule("spot_on_lingjun", _HERE, _spot_on_lingjun, _ZH),
    Rule("spot_region", _HERE, _spot_region, _ZH),
    Rule("spot_allowed", _HERE, _spot_allowed, _ZH),
    Rule("spot_may_go", _HERE, _spot_may_go, _JA),
    Rule("spot_needs_vpc", _HERE, _spot_needs_vpc, _JA),
    Rule("priority_for_quota", _HERE, _priority_for_quota),
    Rule("priority_range", _HERE, _priority_range, ours=True),
    Rule("frameworks", _HERE, _frameworks),
    Rule("lingjun_frameworks", _HERE, _lingjun_frameworks),
    Rule("slurm_older_page", _HERE, _slurm_older_page, _ZH),
    Rule("roles_of_framework", _HERE, _roles),
    Rule("ray_roles", _HERE, _ray_roles, _JA),
    Rule("size_by_spec", _HERE, _size_by_spec),
    Rule("amounts_on_quota", _HERE, _amounts_on_quota),
    Rule("bid_for_spot", _HERE, _bid_for_spot, BOTH),
    Rule("bid_discount", _HERE, _bid_discount),
    Rule("bid_price", _HERE, _bid_price, _JA),
    Rule("bid_reaches", _HERE, _bid_reaches, ours=True),
    Rule("nodes_for_quota", _HERE, _nodes_for_quota),
    Rule("idle_for_quota", _HERE, _idle_for_quota),
    Rule("idle_goes_back", _HERE, _idle_goes_back, _JA),
    Rule("affinity_for_quota", _HERE, _affinity_for_quota, _JA),
    Rule("running_time", _HERE, _running_time, _ZH),
    Rule("retention_holds", _HERE, _retention_holds, _ZH),
    Rule("retention_deletes", _HERE, _retention_deletes, _ZH),
    Rule("vpc_on_public", _HERE, _vpc_on_public, _ZH),
    Rule("slow_without_vpc", _HERE, _slow_without_vpc),
    Rule("same_region", _HERE, _same_region),
    Rule("parts_of_vpc", _HERE, _parts_of_vpc),
    Rule("public_gateway", _HERE, _public_gateway),
    Rule("private_gateway", _HERE, _private_gateway),
)

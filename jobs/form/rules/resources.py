"""Rules of the section on resources: type, source, quota, framework, roles, bids, times, networks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from jobs.dialects.dlc import conditions, job_types, limits
from jobs.form.rules.base import (
    BOTH,
    Judge,
    Page,
    Rule,
    Section,
    Statement,
    bound,
    disable,
    hide,
    offer,
    tell,
    when,
)
from jobs.form.target import JobTarget
from jobs.spec import Framework, JobSpec, RoleSpec
from quotas.admission import Bid, ResourceShape
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
"""The frameworks of the pages, in their order; only the older page has Slurm."""

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


def _is_quota(_spec: JobSpec, target: JobTarget) -> bool:
    return target.is_quota


def _is_no_quota(_spec: JobSpec, target: JobTarget) -> bool:
    return not target.is_quota


def _is_public(_spec: JobSpec, target: JobTarget) -> bool:
    return target.source is Source.PUBLIC


def _is_spot(_spec: JobSpec, target: JobTarget) -> bool:
    return target.source is Source.PREEMPTIBLE


def _quota_only(field: str, is_set: Callable[[JobSpec], bool]) -> Judge:
    """Return a judge that disables the field beyond resource quotas."""
    return lambda spec, target: () if target.is_quota else (disable(field, broken=is_set(spec)),)


# --- type, source, quota ---------------------------------------------------------------------------------


def _lingjun_regions(_spec: JobSpec, target: JobTarget) -> Iterator[Statement]:
    if target.lingjun and _REGION.fullmatch(target.region) and target.region not in LINGJUN_REGIONS:
        yield tell(KIND, broken=True, region=target.region)


def _bound_public_resources(spec: JobSpec, target: JobTarget) -> Iterator[Statement]:
    if target.source is not Source.PUBLIC:
        return
    gpus, cores = conditions.count_gpus_and_cores(spec)
    most_cores = None if target.most_cpu_milli is None else target.most_cpu_milli // 1000
    for field, count, most in (
        ("roles[].resources.gpus", gpus, target.most_gpus),
        ("roles[].resources.cpu_milli", cores, most_cores),
    ):
        if most is not None:
            kind = "GPU" if field.endswith("gpus") else "CPU"
            yield bound(field, most=most, broken=count > most, key=kind, count=count, limit=most)


def _quota_for_quota(spec: JobSpec, target: JobTarget) -> Iterator[Statement]:
    if not target.is_quota:
        yield hide("quota", broken=bool(spec.quota), quota=spec.quota)


def _spot_region(_spec: JobSpec, target: JobTarget) -> Iterator[Statement]:
    spot = target.source is Source.PREEMPTIBLE
    if spot and _REGION.fullmatch(target.region) and target.region != SPOT_REGION:
        yield tell(SOURCE, broken=True, region=target.region, where=SPOT_REGION)


# --- framework and roles ---------------------------------------------------------------------------------


def _frameworks(spec: JobSpec, _ground: JobTarget) -> Iterator[Statement]:
    known = spec.framework is None or spec.framework in FRAMEWORKS
    yield offer("framework", options=tuple(FRAMEWORKS), broken=not known, framework=spec.framework or "")


def _lingjun_frameworks(spec: JobSpec, target: JobTarget) -> Iterator[Statement]:
    if target.lingjun:
        known = spec.framework is None or spec.framework in ON_LINGJUN
        yield offer("framework", options=tuple(ON_LINGJUN), broken=not known, framework=spec.framework or "")


def _roles(spec: JobSpec, _ground: JobTarget) -> Iterator[Statement]:
    """Offer the roles of the framework; no page lists those of MPI and Slurm."""
    job_type = job_types.find_job_type(spec.framework) if spec.framework else None
    if job_type is None or not job_type.roles:
        return
    wrong = tuple(at for at, role in enumerate(spec.roles) if job_type.role(role.name) is None)
    names = ", ".join(spec.roles[at].name for at in wrong)
    yield offer(
        "roles[].name",
        options=job_type.roles,
        broken=bool(wrong),
        at=wrong,
        names=names,
        job_type=job_type.name,
    )


def _size_by_spec(spec: JobSpec, target: JobTarget) -> Iterator[Statement]:
    if not target.is_quota:
        at = tuple(index for index, role in enumerate(spec.roles) if not role.resources.instance_type)
        yield tell("roles[].resources.instance_type", at=at)


def _amounts_on_quota(spec: JobSpec, target: JobTarget) -> Iterator[Statement]:
    if target.is_quota:
        at = tuple(index for index, role in enumerate(spec.roles) if role.resources.instance_type)
        yield tell("roles[].resources.instance_type", at=at)


# --- bids ------------------------------------------------------------------------------------------------


def _bidders(spec: JobSpec) -> Iterator[tuple[int, RoleSpec]]:
    yield from ((at, role) for at, role in enumerate(spec.roles) if role.bid is not None)


def _bid_for_spot(spec: JobSpec, target: JobTarget) -> Iterator[Statement]:
    if target.source is not Source.PREEMPTIBLE:
        at = tuple(index for index, _role in _bidders(spec))
        yield hide("roles[].bid", broken=bool(at), at=at)


def _bid_discount(spec: JobSpec, target: JobTarget) -> Iterator[Statement]:
    wrong = tuple(
        at
        for at, role in _bidders(spec)
        if role.bid and role.bid.discount_percent is not None and role.bid.discount_percent % DISCOUNT_STEP
    )
    if not _is_spot(spec, target) and not wrong:
        return
    yield bound(
        "roles[].bid.discount_percent",
        least=LEAST_DISCOUNT,
        most=MOST_DISCOUNT,
        step=DISCOUNT_STEP,
        broken=bool(wrong),
        at=wrong,
    )


def _bid_price(spec: JobSpec, target: JobTarget) -> Iterator[Statement]:
    """Bound a bid by the market price: a higher one buys nothing."""
    if not _is_spot(spec, target):
        return
    for at, role in enumerate(spec.roles):
        market = cost(target.amounts_of(role.resources), target.prices)[0]
        if market:
            micro = role.bid.price_micro if role.bid else None
            over = micro is not None and micro > market
            yield bound("roles[].bid.price_micro", least=1, most=market, broken=over, at=(at,), micro=market)


def _bid_reaches(spec: JobSpec, target: JobTarget) -> Iterator[Statement]:
    if not _is_spot(spec, target):
        return
    for at, role in _bidders(spec):
        assert role.bid is not None
        shape = ResourceShape((Part(role.replicas, target.amounts_of(role.resources)),))
        short = outbid(shape, [Bid(role.bid.discount_percent, role.bid.price_micro)], target.prices)
        if short is not None:
            yield tell("roles[].bid", at=(at,), micro=int(str(short["price"])), bid=int(str(short["bid"])))


# --- nodes, idle resources, affinity, times --------------------------------------------------------------


def _nodes_for_quota(spec: JobSpec, target: JobTarget) -> Iterator[Statement]:
    if not target.is_quota:
        at = tuple(index for index, role in enumerate(spec.roles) if role.nodes.only or role.nodes.never)
        yield disable("roles[].nodes", broken=bool(at), at=at)


def _retention_holds(spec: JobSpec, _ground: JobTarget) -> Iterator[Statement]:
    if spec.reserve_after is not None:
        yield tell("reserve_after", seconds=spec.reserve_after.seconds)


# --- network ---------------------------------------------------------------------------------------------


def _parts_of_vpc(spec: JobSpec, _ground: JobTarget) -> Iterator[Statement]:
    """Disable the fields that belong to a virtual network where none is chosen."""
    if not spec.network.vpc:
        for name in ("switch", "security_group", "cidrs", "gateway"):
            yield disable(f"network.{name}", broken=bool(getattr(spec.network, name)))


_HERE: Final = Section.RESOURCES
_ZH: Final = (Page.CHINESE,)
_JA: Final = (Page.JAPANESE,)

RULES: Final = (
    Rule("kind_where_both", _HERE, when(lambda _spec, target: len(target.kinds) < 2, hide(KIND)), _ZH),
    Rule("lingjun_regions", _HERE, _lingjun_regions),
    Rule("public_ceiling", _HERE, _bound_public_resources, ours=True),
    Rule("public_waits", _HERE, when(_is_public, tell(SOURCE))),
    Rule("billed_by_use", _HERE, when(_is_no_quota, tell(SOURCE))),
    Rule("billed_ahead", _HERE, when(_is_quota, tell(SOURCE))),
    Rule("quota_for_quota", _HERE, _quota_for_quota),
    Rule(
        "spot_on_lingjun",
        _HERE,
        when(lambda spec, target: _is_spot(spec, target) and not target.lingjun, tell(SOURCE, broken=True)),
        _ZH,
    ),
    Rule("spot_region", _HERE, _spot_region, _ZH),
    Rule("spot_allowed", _HERE, when(_is_spot, tell(SOURCE)), _ZH),
    Rule("spot_may_go", _HERE, when(_is_spot, tell(SOURCE)), _JA),
    Rule(
        "spot_needs_vpc",
        _HERE,
        when(
            lambda spec, target: _is_spot(spec, target) and target.lingjun and not spec.network.vpc,
            tell("network.vpc", broken=True),
        ),
        _JA,
    ),
    Rule(
        "priority_for_quota",
        _HERE,
        _quota_only("priority", lambda spec: spec.priority is not None),
        ours=True,
    ),
    Rule(
        "priority_range",
        _HERE,
        when(
            lambda *_: True,
            bound("priority", least=limits.PRIORITY_LEAST.value, most=limits.PRIORITY_MOST.value),
        ),
        ours=True,
    ),
    Rule("frameworks", _HERE, _frameworks),
    Rule("lingjun_frameworks", _HERE, _lingjun_frameworks),
    Rule(
        "slurm_older_page",
        _HERE,
        when(lambda spec, _ground: spec.framework is Framework.SLURM, tell("framework")),
        _ZH,
    ),
    Rule("roles_of_framework", _HERE, _roles),
    Rule("ray_roles", _HERE, when(lambda spec, _ground: spec.framework is Framework.RAY, tell("roles")), _JA),
    Rule("size_by_spec", _HERE, _size_by_spec),
    Rule("amounts_on_quota", _HERE, _amounts_on_quota),
    Rule("bid_for_spot", _HERE, _bid_for_spot, BOTH),
    Rule("bid_discount", _HERE, _bid_discount),
    Rule("bid_price", _HERE, _bid_price, _JA),
    Rule("bid_reaches", _HERE, _bid_reaches, ours=True),
    Rule("nodes_for_quota", _HERE, _nodes_for_quota),
    Rule("idle_for_quota", _HERE, _quota_only("idle", lambda spec: spec.idle is not None)),
    Rule("idle_goes_back", _HERE, when(_is_quota, tell("idle")), _JA),
    Rule("affinity_for_quota", _HERE, _quota_only("cpu_affinity", lambda spec: spec.cpu_affinity), _JA),
    Rule(
        "running_time",
        _HERE,
        when(
            lambda spec, _ground: spec.time_limit_s is None,
            tell("time_limit_s", hours=limits.DEFAULT_RUNNING_MINUTES.value // 60),
        ),
        _ZH,
    ),
    Rule("retention_holds", _HERE, _retention_holds, _ZH),
    Rule(
        "retention_deletes",
        _HERE,
        when(lambda spec, _ground: spec.reserve_after is not None, tell("reserve_after")),
        _ZH,
    ),
    Rule(
        "vpc_on_public",
        _HERE,
        when(lambda spec, target: target.is_quota and spec.network.vpc, tell("network.vpc")),
        _ZH,
    ),
    Rule(
        "slow_without_vpc",
        _HERE,
        when(lambda spec, target: not (target.is_quota or spec.network.vpc), tell("network.vpc")),
    ),
    Rule("same_region", _HERE, when(lambda spec, _ground: spec.network.vpc, tell("network.vpc"))),
    Rule("parts_of_vpc", _HERE, _parts_of_vpc),
    Rule(
        "public_gateway",
        _HERE,
        when(lambda spec, _ground: spec.network.gateway == PUBLIC_GATEWAY, tell("network.gateway")),
    ),
    Rule(
        "private_gateway",
        _HERE,
        when(lambda spec, _ground: spec.network.gateway == PRIVATE_GATEWAY, tell("network.gateway")),
    ),
)

"""Rules of the sections on fault tolerance and diagnosis, and on roles and permissions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from jobs.dialects.dlc import conditions, keys
from jobs.form.ground import Ground
from jobs.form.rules.base import Rule, Said, Section, off, tell
from jobs.spec import Framework, JobSpec

WITH_AIMASTER: Final = frozenset(
    {Framework.PYTORCH, Framework.MPI, Framework.TENSORFLOW, Framework.ELASTIC_BATCH}
)
AIMASTER_SIZE: Final = "ecs.c6.large"
STARTS_AIMASTER: Final[frozenset[str]] = frozenset()
"""The backends that start an AIMaster beside the job: only there does it cost anything."""

DEFAULT_ROLE: Final = "default"
_ARN: Final = re.compile(r"acs:ram::\d+:role/[A-Za-z0-9.@_-]+", re.ASCII)


def _aimaster_costs(spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if spec.fault_tolerance.enabled and ground.is_quota:
        yield tell("fault_tolerance.enabled")


def _aimaster_costs_public(spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if spec.fault_tolerance.enabled and not ground.is_quota:
        yield tell("fault_tolerance.enabled", size=AIMASTER_SIZE)


def _aimaster_not_here(spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if spec.fault_tolerance.enabled and ground.backend not in STARTS_AIMASTER:
        yield tell("fault_tolerance.enabled", broken=True)


def _aimaster_frameworks(spec: JobSpec, _ground: Ground) -> Iterator[Said]:
    if spec.framework not in WITH_AIMASTER:
        names = ", ".join(sorted(WITH_AIMASTER))
        yield off("fault_tolerance.enabled", broken=spec.fault_tolerance.enabled, names=names)


def _sanity_check(spec: JobSpec, ground: Ground) -> Iterator[Said]:
    lacking = conditions.lacks_for_sanity_check(spec, quota=ground.is_quota)
    if lacking or not ground.lingjun:
        yield off("sanity_check.enabled", broken=spec.sanity_check.enabled)


def _default_role(spec: JobSpec, _ground: Ground) -> Iterator[Said]:
    if spec.instance_role == DEFAULT_ROLE:
        yield tell("instance_role", role=keys.DEFAULT_ROLE)


def _custom_role(spec: JobSpec, _ground: Ground) -> Iterator[Said]:
    if spec.instance_role not in {"", DEFAULT_ROLE}:
        broken = _ARN.fullmatch(spec.instance_role) is None
        yield tell("instance_role", broken=broken)


def _no_role(spec: JobSpec, _ground: Ground) -> Iterator[Said]:
    if not spec.instance_role:
        yield tell("instance_role")


_HERE: Final = Section.FAULTS

RULES: Final = (
    Rule("aimaster_costs", _HERE, _aimaster_costs),
    Rule("aimaster_costs_public", _HERE, _aimaster_costs_public),
    Rule("aimaster_not_here", _HERE, _aimaster_not_here, pages=(), ours=True),
    Rule("aimaster_frameworks", _HERE, _aimaster_frameworks),
    Rule("sanity_check_where", _HERE, _sanity_check),
    Rule("role_default", Section.ROLES, _default_role),
    Rule("role_custom", Section.ROLES, _custom_role),
    Rule("role_none", Section.ROLES, _no_role),
)

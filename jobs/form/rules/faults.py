"""Rules of the sections on fault tolerance and diagnosis, and on roles and permissions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from jobs.dialects.dlc import conditions, keys
from jobs.form.rules.base import Rule, Section, Statement, disable, tell, when
from jobs.form.target import JobTarget
from jobs.spec import Framework, JobSpec

WITH_AIMASTER: Final = frozenset(
    {Framework.PYTORCH, Framework.MPI, Framework.TENSORFLOW, Framework.ELASTIC_BATCH}
)
AIMASTER_SIZE: Final = "ecs.c6.large"
STARTS_AIMASTER: Final[frozenset[str]] = frozenset()
"""The backends that start an AIMaster beside the job: only there does it cost anything."""

DEFAULT_ROLE: Final = "default"
_ARN: Final = re.compile(
    r"acs:ram::\d+:role/[A-Za-z0-9.@_-]+|arn:aws[a-z-]*:iam::\d{12}:role/[A-Za-z0-9+=,.@_/-]+", re.ASCII
)


def _aimaster_frameworks(spec: JobSpec, _ground: JobTarget) -> Iterator[Statement]:
    if spec.framework not in WITH_AIMASTER:
        names = ", ".join(sorted(WITH_AIMASTER))
        yield disable("fault_tolerance.enabled", broken=spec.fault_tolerance.enabled, names=names)


def _sanity_check(spec: JobSpec, target: JobTarget) -> Iterator[Statement]:
    lacking = conditions.find_unmet_sanity_conditions(spec, quota=target.is_quota)
    if lacking or not target.lingjun:
        yield tell("sanity_check.enabled", broken=spec.sanity_check.enabled)


def _custom_role(spec: JobSpec, _ground: JobTarget) -> Iterator[Statement]:
    if spec.instance_role not in {"", DEFAULT_ROLE}:
        broken = _ARN.fullmatch(spec.instance_role) is None
        yield tell("instance_role", broken=broken)


_HERE: Final = Section.FAULTS

RULES: Final = (
    Rule(
        "aimaster_costs",
        _HERE,
        when(
            lambda spec, target: spec.fault_tolerance.enabled and target.is_quota,
            tell("fault_tolerance.enabled"),
        ),
    ),
    Rule(
        "aimaster_costs_public",
        _HERE,
        when(
            lambda spec, target: spec.fault_tolerance.enabled and not target.is_quota,
            tell("fault_tolerance.enabled", size=AIMASTER_SIZE),
        ),
    ),
    Rule(
        "aimaster_not_here",
        _HERE,
        when(
            lambda spec, target: spec.fault_tolerance.enabled and target.backend not in STARTS_AIMASTER,
            tell("fault_tolerance.enabled"),
        ),
        pages=(),
        ours=True,
    ),
    Rule("aimaster_frameworks", _HERE, _aimaster_frameworks),
    Rule("sanity_check_where", _HERE, _sanity_check),
    Rule(
        "role_default",
        Section.ROLES,
        when(
            lambda spec, _ground: spec.instance_role == DEFAULT_ROLE,
            tell("instance_role", role=keys.DEFAULT_ROLE),
        ),
    ),
    Rule("role_custom", Section.ROLES, _custom_role),
    Rule(
        "role_none", Section.ROLES, when(lambda spec, _ground: not spec.instance_role, tell("instance_role"))
    ),
)

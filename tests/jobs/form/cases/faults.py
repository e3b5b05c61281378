"""Cases of the rules about fault tolerance, and about roles."""

from __future__ import annotations

from jobs.form.rules import Effect, Section
from jobs.spec import Check, FaultTolerance, Framework
from tests.jobs.form.cases.base import BOTH, GPUS, LINGJUN, PUBLIC, QUOTA, Case, job, role

CASES = (
    Case(
        "aimaster_costs",
        BOTH,
        Section.FAULTS,
        job(fault_tolerance=FaultTolerance(enabled=True)),
        QUOTA,
        "fault_tolerance.enabled",
        Effect.TELL,
    ),
    Case(
        "aimaster_costs_public",
        BOTH,
        Section.FAULTS,
        job(fault_tolerance=FaultTolerance(enabled=True)),
        PUBLIC,
        "fault_tolerance.enabled",
        Effect.TELL,
    ),
    Case(
        "aimaster_not_here",
        (),
        Section.FAULTS,
        job(fault_tolerance=FaultTolerance(enabled=True)),
        QUOTA,
        "fault_tolerance.enabled",
        Effect.TELL,
    ),
    Case(
        "aimaster_frameworks",
        BOTH,
        Section.FAULTS,
        job(framework=Framework.XGBOOST, fault_tolerance=FaultTolerance(enabled=True)),
        QUOTA,
        "fault_tolerance.enabled",
        Effect.OFF,
        True,
        less=(job(framework=Framework.PYTORCH, fault_tolerance=FaultTolerance(enabled=True)), QUOTA),
    ),
    Case(
        "sanity_check_where",
        BOTH,
        Section.FAULTS,
        job(role(resources=GPUS), framework=Framework.PYTORCH, sanity_check=Check(enabled=True)),
        QUOTA,
        "sanity_check.enabled",
        Effect.TELL,
        True,
        less=(
            job(role(resources=GPUS), framework=Framework.PYTORCH, sanity_check=Check(enabled=True)),
            LINGJUN,
        ),
    ),
    Case(
        "role_default", BOTH, Section.ROLES, job(instance_role="default"), QUOTA, "instance_role", Effect.TELL
    ),
    Case(
        "role_custom",
        BOTH,
        Section.ROLES,
        job(instance_role="admin"),
        QUOTA,
        "instance_role",
        Effect.TELL,
        True,
        less=(job(instance_role="acs:ram::123:role/trainer"), QUOTA),
    ),
    Case(
        "role_none",
        BOTH,
        Section.ROLES,
        job(),
        QUOTA,
        "instance_role",
        Effect.TELL,
        less=(job(instance_role="default"), QUOTA),
    ),
)

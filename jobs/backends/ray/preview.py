"""Preview and dry run of a submission to Ray."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from typing import Any

from jobs.backends import previews
from jobs.backends.base import (
    MASK,
    DryRunCheck,
    NotSubmitted,
    Refused,
    RenderedJob,
    RenderedRole,
    Submission,
)
from jobs.backends.ray import planner
from jobs.backends.ray.config import RayConfig
from jobs.backends.staging import job_secrets
from jobs.node.supervisor.plan import Plan, PlannedReplica
from jobs.node.wrapper.environment import job_variables, role_variables
from jobs.spec import RoleSpec


def mask_secrets(submission: Submission, config: RayConfig) -> Submission:
    """Return the submission with MASK for every secret."""
    return previews.mask_secrets(submission, job_secrets.list_names(submission, config.code()))


def render(submission: Submission, config: RayConfig) -> RenderedJob:
    """Return what would be submitted.  Raises Refused."""
    hidden = mask_secrets(submission, config)
    mounts = planner.check(hidden, config)
    plan = planner.make_plan(hidden, config, mounts)
    secrets = planner.render_secrets(hidden, config, mounts)["env"]
    spec = hidden.spec
    firsts = {each.ordinal: each for each in reversed(plan.replicas())}
    roles = tuple(_render_role(plan, firsts[place], role, secrets) for place, role in enumerate(spec.roles))
    return RenderedJob(roles, spec.time_limit_s, spec.grace_s)


def _render_role(plan: Plan, place: PlannedReplica, spec: RoleSpec, secrets: dict[str, Any]) -> RenderedRole:
    role = place.role
    known = {
        **job_variables(
            {each.name: each.replicas for each in plan.roles}, plan.user, plan.name, plan.locations
        ),
        **role_variables(role.name, role.replicas, role, role.completion),
        **plan.env,
        **role.env,
        **dict.fromkeys(secrets, MASK),
    }
    env: dict[str, str | None] = {**dict.fromkeys(previews.CHOSEN_AT_START), **known}
    return previews.render_role(
        spec,
        spec.resources,
        shm_mib=role.shm_mib,
        env=dict(sorted(env.items())),
        mounts=previews.list_mounts(plan),
        script="".join(_render_script(env, role.command)),
        contained=False,
    )


def _render_script(env: dict[str, str | None], command: str) -> Iterator[str]:
    yield "#!/bin/bash\n"
    for name, value in sorted(env.items()):
        yield f"export {name}={shlex.quote(value)}\n" if value is not None else f"# at the start: {name}\n"
    yield f"exec /bin/bash -c {shlex.quote(command)}\n"


def run_checks(
    submission: Submission, config: RayConfig, check_room: Callable[[Submission], object]
) -> Iterator[DryRunCheck]:
    """Yield each thing that was tried; the first refusal ends it."""
    hidden = mask_secrets(submission, config)
    try:
        mounts = planner.check(hidden, config)
    except Refused as refused:
        yield DryRunCheck("accepted", False, reason=refused.reason)
        return
    yield DryRunCheck("accepted", True)
    if places := ", ".join(bound.path for bound in mounts.bounds):
        yield DryRunCheck("mounts", None, detail=places)
    try:
        check_room(hidden)
    except NotSubmitted as waits:
        yield DryRunCheck("room", None, reason=waits.reason)
    else:
        yield DryRunCheck("room", True)
    for image in dict.fromkeys(role.image for role in submission.spec.roles if role.image):
        yield DryRunCheck("image_unused", None, detail=image)

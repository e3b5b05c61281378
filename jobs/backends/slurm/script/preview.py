"""Previews of a submission: its script and resources, and a dry run by `sbatch --test-only`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

from jobs.backends import base, previews
from jobs.backends.base import DryRunCheck, NotSubmitted, Refused, Submission, Unreachable
from jobs.backends.slurm.client.programs import ExpectedStart
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.script import container_runtimes, environment, job_script, staging
from jobs.backends.slurm.status.states import round_start
from jobs.backends.staging import job_secrets
from jobs.node.supervisor import checkpoints
from jobs.spec import RoleSpec
from jobs.states import Params, Reason, ReasonCode

SOON_S: Final = 60
"""Slurm starts jobs at its next scheduling pass, not in the second in which it is asked."""


def mask_secrets(submission: Submission) -> Submission:
    """Return the submission with a mask for every secret that it names."""
    return previews.mask_secrets(submission, job_secrets.list_used(submission.spec))


def render_preview(submission: Submission, config: SlurmConfig) -> base.RenderedJob:
    """Return the script for running by hand, and each role's resources.  Raises Refused like `submit`."""
    submission = mask_secrets(submission)
    job_script.check(submission, config)
    spec, text = submission.spec, job_script.render(submission, None, config)
    runtime = container_runtimes.runtime_of(spec, config, alone=job_script.is_alone(spec))
    roles = (
        previews.render_role(
            role,
            job_script.round_resources(role).resources,
            shm_mib=0,
            env=_variables(submission, role, config),
            mounts=staging.list_mounts(submission, config),
            script=text,
            contained=bool(runtime and role.image),
        )
        for role in spec.roles
    )
    return base.RenderedJob(tuple(roles), spec.time_limit_s, spec.grace_s)


def _variables(submission: Submission, role: RoleSpec, config: SlurmConfig) -> dict[str, str | None]:
    spec = submission.spec
    fixed = environment.fixed_variables(submission, role, config)
    secret = {name: submission.secrets[each.name] for name, each in spec.secret_env.items()}
    at_start = dict.fromkeys((*previews.CHOSEN_AT_START, checkpoints.VARIABLE))
    return {**at_start, **fixed, **spec.env, **role.env, **secret}


def dry_run(ask: Callable[[], tuple[str, ExpectedStart | None]]) -> Iterator[DryRunCheck]:
    """Yield the findings.

    `ask` returns the job's user and Slurm's estimate, None where Slurm can't be asked as that user; it raises
    as a submission does.
    """
    try:
        user, expected = ask()
    except Refused as refused:
        yield DryRunCheck("accepted", False, reason=refused.reason)
        return
    except NotSubmitted as not_sent:
        raise Unreachable(str(not_sent.reason.params.get("detail"))) from not_sent
    if expected is None:
        yield DryRunCheck("unable", None)
    else:
        yield DryRunCheck("accepted", True)
        yield _room(expected)
    yield DryRunCheck("user", True, detail=user)


def _room(expected: ExpectedStart) -> DryRunCheck:
    if expected.starts_at <= time.time() + SOON_S:
        return DryRunCheck("room", True, detail=expected.nodes)
    params: Params = {"slurm": "Resources", "start": round_start(expected.starts_at)}
    return DryRunCheck("room", None, reason=Reason(ReasonCode.ENGINE_QUEUE, params))

"""Previews of a submission: its script and resources, and a dry run by `sbatch --test-only`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from jobs.backends import base
from jobs.backends.base import MASK, DryRunCheck, NotSubmitted, Refused, RenderedRole, Submission, Unreachable
from jobs.backends.slurm.client.programs import ExpectedStart
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.script import container_runtimes, environment, job_script, staging
from jobs.backends.slurm.status.states import round_start
from jobs.spec import RoleSpec
from jobs.states import Params, Reason, ReasonCode

SOON_S: Final = 60
"""Slurm starts jobs at its next scheduling pass, not in the second in which it is asked."""


def mask_secrets(submission: Submission) -> Submission:
    """Return the submission with a mask for every secret that it names."""
    hidden = dict.fromkeys(staging.list_secrets(submission.spec), MASK)
    return replace(submission, secrets=hidden, endpoint_token=MASK)


def render_preview(submission: Submission, config: SlurmConfig) -> base.RenderedJob:
    """Return the script for running by hand, and each role's resources.  Raises Refused like `submit`."""
    submission = mask_secrets(submission)
    job_script.check(submission, config)
    text = job_script.render(submission, None, config)
    contained = bool(
        container_runtimes.runtime_of(submission.spec, config, alone=job_script.is_alone(submission.spec))
    )
    return base.RenderedJob(
        tuple(_role(submission, role, text, config, contained=contained) for role in submission.spec.roles),
        submission.spec.time_limit_s,
        submission.spec.grace_s,
    )


def _role(
    submission: Submission, role: RoleSpec, text: str, config: SlurmConfig, *, contained: bool
) -> RenderedRole:
    spec, has = submission.spec, job_script.round_resources(role).resources
    told: dict[str, str | None] = {
        **environment.fixed_variables(submission, role, config),
        **spec.env,
        **role.env,
    }
    chosen = dict.fromkeys(environment.CHOSEN_AT_START)
    secret = {name: submission.secrets[each.name] for name, each in spec.secret_env.items()}
    return RenderedRole(
        role=role.name,
        replicas=role.replicas,
        cpu_milli=has.cpu_milli,
        memory_mib=has.memory_mib,
        gpus=has.gpus,
        gpu_type=has.gpu_type,
        shm_mib=0,
        image=role.image,
        contained=contained and bool(role.image),
        env={**chosen, **told, **secret},
        mounts=tuple(staging.list_mounts(submission, config)),
        ports=tuple((port.label, port.begin_at, port.count) for port in role.ports),
        script=text,
    )


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

"""What will be sent of a job, shown before it is."""

from __future__ import annotations

from dataclasses import replace

from jobs.backends import base
from jobs.backends.base import MASK, RoleSent, Submission
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.script import boxes, environment, script, staging
from jobs.spec import TaskRole


def masked(submission: Submission) -> Submission:
    """The submission with a mask for every secret that it names."""
    names = {each.name for each in submission.spec.secret_env.values()}
    hidden = dict.fromkeys(names | staging.secrets_named(submission.spec), MASK)
    return replace(submission, secrets=hidden, endpoint_token=MASK)


def rendered(submission: Submission, config: SlurmConfig) -> base.Sent:
    """The script, as one can run it by hand, beside what it comes to for each role; raises Refused like
    `submit`.
    """
    submission = masked(submission)
    script.check(submission, config)
    text = script.written(submission, None, config)
    contained = bool(boxes.used(submission.spec, config, alone=script.is_alone(submission.spec)))
    return base.Sent(
        tuple(_role(submission, role, text, contained=contained) for role in submission.spec.roles),
        submission.spec.time_limit_s,
        submission.spec.grace_s,
    )


def _role(submission: Submission, role: TaskRole, text: str, *, contained: bool) -> RoleSent:
    spec, has = submission.spec, script.sized(role).resources
    told: dict[str, str | None] = {**environment.told(submission, role), **spec.env, **role.env}
    chosen = dict.fromkeys(environment.CHOSEN_AT_THE_START)
    secret = {name: submission.secrets[each.name] for name, each in spec.secret_env.items()}
    return RoleSent(
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
        mounts=tuple(staging.shown(submission)),
        ports=tuple((port.label, port.begin_at, port.count) for port in role.ports),
        script=text,
    )

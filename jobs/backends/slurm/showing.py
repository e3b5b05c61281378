"""What will be sent of a job, shown before it is."""

from __future__ import annotations

from pathlib import Path

from jobs.backends import base
from jobs.backends.base import RoleSent, Submission
from jobs.backends.slurm import environment, script
from jobs.backends.slurm.config import SlurmConfig
from jobs.spec import TaskRole


def rendered(submission: Submission, folder: Path, config: SlurmConfig) -> base.Sent:
    """The script, beside what it comes to for each role; raises Refused like `submit`."""
    script.check(submission, config)
    text = script.written(submission, folder, config)
    return base.Sent(
        tuple(_role(submission, role, text) for role in submission.spec.roles),
        submission.spec.time_limit_s,
        submission.spec.grace_s,
    )


def _role(submission: Submission, role: TaskRole, text: str) -> RoleSent:
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
        image="",
        contained=False,
        env={**chosen, **told, **secret},
        mounts=(),
        ports=tuple((port.label, port.begin_at, port.count) for port in role.ports),
        script=text,
    )

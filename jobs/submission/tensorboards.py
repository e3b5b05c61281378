"""TensorBoard after the end of a job that asked for it together with retention: a small job of its own."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

import structlog

from jobs import dialects
from jobs.backends.staging import job_folders, tensorboard
from jobs.dialects.base import Refused
from jobs.models import Job, JobFile
from jobs.node.staging import mount_paths
from jobs.spec import JobSpec, Mount, Resources, RoleSpec, TensorBoard
from jobs.states import State
from jobs.submission.access import Forbidden
from jobs.submission.job_submission import Conflict, submit
from jobs.submission.targets import JobTarget

log = structlog.get_logger(__name__)

DIALECT: Final = "openpai-v2"

AFTER: Final = "tensorboard-after-"
"""The beginning of the idempotency key of such a job."""

_LOCAL: Final = "local"
"""The backend whose jobs can mount the folders of others."""

_NAME: Final = "tensorboard-of-"
_LONGEST: Final = 200
_FOLDER: Final = f"{mount_paths.WORK}/outputs"
_ENDS: Final = {State.SUCCEEDED: "succeeded", State.FAILED: "failed"}


def show_after_end(job: Job) -> None:
    """Submit TensorBoard over the log folder of an ended job, for as long as its files are retained.

    However often it is called, it submits one.  A refusal is logged: people can open TensorBoard themselves.
    """
    if job.cluster.backend != _LOCAL:
        return
    made = _compose(job, JobFile.objects.get(job=job).spec)
    if made is None:
        return
    target = JobTarget(job.workspace.slug, job.cluster.slug, job.quota.slug)
    document = dialects.get(DIALECT).render(made, {}).document
    try:
        submit(job.owner, document, place=target, idempotency_key=f"{AFTER}{job.public_id}")
    except (Refused, Forbidden, Conflict) as error:
        log.warning("tensorboard_refused", job=job.public_id, error=str(error))


def _compose(job: Job, spec: JobSpec) -> JobSpec | None:
    """Return the job that shows the log folder; None where none is wanted or can be."""
    path, kept = tensorboard.log_path(spec), spec.reserve_after
    if path is None or kept is None or job.started_at is None:
        return None
    inner = path.removeprefix(f"{mount_paths.WORK}/")
    if inner == path or kept.when not in ("always", _ENDS.get(State(job.state))):
        return None
    role = spec.roles[tensorboard.leading_role(spec)]
    return JobSpec(
        name=f"{_NAME}{spec.name}"[:_LONGEST],
        roles=(
            RoleSpec(
                name="tensorboard",
                command=f"sleep {kept.seconds}",
                image=role.image,
                resources=Resources(cpu_milli=1000, memory_mib=64),
            ),
        ),
        mounts=(
            Mount(
                uri=f"{job_folders.SCHEME}{job.public_id}/{quote(role.name, safe='')}/0",
                path=_FOLDER,
                read_only=True,
            ),
        ),
        tensorboard=TensorBoard(log_path=f"{_FOLDER}/{inner}"),
        time_limit_s=kept.seconds + 60,
    )

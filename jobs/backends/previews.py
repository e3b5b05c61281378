"""Previews of a submission: what backends show of a job before it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from jobs.backends.base import MASK, RenderedRole, Submission
from jobs.node.staging.mount_paths import WORK
from jobs.node.staging.mount_specs import IN_WORK
from jobs.node.supervisor.plan import Plan
from jobs.node.wrapper.environment import INDEX_VARIABLES
from jobs.spec import Resources, RoleSpec

CHOSEN_AT_START: Final = (
    "CUDA_VISIBLE_DEVICES",
    "JOB_CONSOLE_ENDPOINTS",
    "MASTER_ADDR",
    "MASTER_PORT",
    "PAI_CONTAINER_HOST_IP",
    "PAI_CONTAINER_HOST_PORT",
    "PAI_WORK_DIR",
    "RANK",
    *INDEX_VARIABLES,
)
"""Some of the variables that are known only on the node, or differ between replicas."""


def mask_secrets(submission: Submission, names: Iterable[str]) -> Submission:
    """Return the submission with a mask for every secret, those of these names among them."""
    return replace(submission, secrets=dict.fromkeys(names, MASK), endpoint_token=MASK)


def list_mounts(plan: Plan) -> Iterator[tuple[str, str, bool]]:
    """Yield the path, source and read-only flag of each mount of a plan."""
    yield from ((WORK, code.name, False) for code in plan.codes if code.bound == IN_WORK)
    for index, bound in enumerate(plan.bounds):
        code = next((code.name for code in plan.codes if code.bound == index), "")
        yield bound.path, code or bound.source or bound.kind.value, bound.read_only


def render_role(
    role: RoleSpec,
    resources: Resources,
    *,
    shm_mib: int,
    env: Mapping[str, str | None],
    mounts: Iterable[tuple[str, str, bool]],
    script: str,
    contained: bool,
) -> RenderedRole:
    """Return a role with the resources that its replicas get, and what they find and run."""
    return RenderedRole(
        role=role.name,
        replicas=role.replicas,
        cpu_milli=resources.cpu_milli,
        memory_mib=resources.memory_mib,
        gpus=resources.gpus,
        gpu_type=resources.gpu_type,
        shm_mib=shm_mib,
        image=role.image,
        contained=contained,
        env=env,
        mounts=tuple(mounts),
        ports=tuple((port.label, port.begin_at, port.count) for port in role.ports),
        script=script,
    )

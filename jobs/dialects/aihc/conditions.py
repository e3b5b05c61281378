"""What AIHC asks of jobs for its options to work: told, and binding no job that runs elsewhere."""

from __future__ import annotations

import re
from typing import Final

from jobs.dialects.aihc import keys
from jobs.dialects.request import Request
from jobs.spec import JobSpec, Resources

AIHC: Final = "AIHC"
_BCCL_REPLICAS: Final = 2
_BCCL_CARDS: Final = 8
_BCCL_GPUS: Final = re.compile(r"a800|hpas", re.IGNORECASE)


def remark(spec: JobSpec, job: Request) -> None:
    """Note what BCCL and RDMA lack."""
    if str(job.value.get(keys.ENABLE_BCCL.key)).lower() == "true":
        _note(job, job.at(keys.ENABLE_BCCL.key), keys.ENABLE_BCCL.key, _bccl_lacks(spec))
    without = [role.name for role in spec.roles if role.resources.rdma and not role.resources.gpus]
    if without and any(role.resources != Resources(rdma=True) for role in spec.roles):
        _note(job, job.at(keys.JOB_SPEC.key), keys.ENABLE_RDMA.key, [f"GPU ({name})" for name in without])


def _bccl_lacks(spec: JobSpec) -> list[str]:
    """The conditions of the page: replicas, whole machines of 8 cards, RDMA, A800 or HPAS."""
    every = [role.resources for role in spec.roles]
    conditions = (
        (f"replicas ≥ {_BCCL_REPLICAS}", spec.replicas >= _BCCL_REPLICAS),
        (f"{_BCCL_CARDS} GPUs", all(has.gpus == _BCCL_CARDS for has in every)),
        ("enableRDMA", all(has.rdma for has in every)),
        ("A800/HPAS", all(_BCCL_GPUS.search(has.gpu_type) for has in every)),
    )
    return [what for what, there in conditions if not there]


def _note(job: Request, pointer: str, key: str, lacking: list[str]) -> None:
    if lacking:
        job.findings.note(
            "condition_unmet",
            pointer,
            key=key,
            lacking=", ".join(lacking),
            target=AIHC,
            source=keys.PAGE,
        )

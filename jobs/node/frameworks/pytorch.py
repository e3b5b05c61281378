"""PyTorch: what `torchrun` is told by variables, so that it spans the replicas without any option.

torchrun reads the default of each of its options from `PET_<OPTION>`; Kubeflow's operator sets the same.
A job of which some replicas may fail is elastic: it begins with all of them, and goes on while the minimum
lives.  Its rendezvous is at rank 0, which therefore has to live.
"""

from __future__ import annotations

from typing import Final

from jobs.node.frameworks.job import FrameworkJob

RESTARTS: Final = 3
"""How often the processes of an elastic job that says no number are started again.

Where a replica is lost the processes of the others fail with it.
"""

_ELASTIC: Final = "elasticbatch"


def shared_variables(job: FrameworkJob) -> dict[str, str]:
    """Return the number of replicas, and where they meet."""
    least, address, port = _count_least(job), job.master_address, job.master_port()
    said = [role.restarts for role in job.roles if role.restarts is not None]
    if job.framework != _ELASTIC and least == job.replicas:
        return {
            "PET_NNODES": str(job.replicas),
            "PET_MASTER_ADDR": address,
            "PET_MASTER_PORT": port,
            **({"PET_MAX_RESTARTS": str(max(said))} if said else {}),
        }
    return {
        "PET_NNODES": f"{least}:{job.replicas}",
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ENDPOINT": f"{address}:{port}",
        "PET_RDZV_ID": job.id,
        "PET_MAX_RESTARTS": str(max(said, default=RESTARTS)),
    }


def own_variables(rank: str, is_first: str, processes: str) -> dict[str, str]:
    """Return the replica's rank among the others, whether the others meet there, and its processes.

    By itself torchrun has whoever comes first on the machine of rank 0 be the host of the rendezvous.
    """
    return {
        "PET_NODE_RANK": rank,
        "PET_NPROC_PER_NODE": processes,
        "PET_RDZV_CONF": f"is_host={is_first}",
    }


def _count_least(job: FrameworkJob) -> int:
    """Return the replicas that a role's completion policy leaves when it has not failed yet."""
    tolerated = (role.replicas if role.tolerated is None else role.tolerated for role in job.roles)
    return max(1, job.replicas - sum(tolerated))

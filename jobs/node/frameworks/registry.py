"""Dispatch by framework: the variables of a replica, and the command that it runs.

A job file's own variables win over these.
"""

from __future__ import annotations

from typing import Final

from jobs.node.frameworks import mpi, pytorch, ray, xgboost
from jobs.node.frameworks.job import FrameworkJob, Spec

_PYTORCH: Final = ("pytorch", "elasticbatch")
_MPI: Final = "mpi"
_XGBOOST: Final = "xgboost"
_RAY: Final = "ray"


def shared_variables(job: FrameworkJob) -> dict[str, str]:
    """Return the variables that are the same for all replicas."""
    if job.framework in _PYTORCH:
        return pytorch.shared_variables(job)
    if job.framework == _MPI:
        return mpi.shared_variables(job)
    if job.framework == _XGBOOST:
        return xgboost.shared_variables(job)
    return {}


def own_variables(framework: str | None, rank: str, processes: str) -> dict[str, str]:
    """Return the variables of the replica with a rank; the values may be expressions of a script."""
    if framework in _PYTORCH:
        return pytorch.own_variables(rank, processes)
    if framework == _XGBOOST:
        return xgboost.own_variables(rank)
    return {}


def wrap_command(spec: Spec, position: int) -> str:
    """Return what a replica of the role at a position runs, for the command that the job file gives it."""
    names, command = [role.name for role in spec.roles], spec.roles[position].command
    if spec.framework == _MPI:
        return mpi.wrap_command(names, position, command)
    if spec.framework == _XGBOOST:
        return xgboost.wrap_command(names, position, command)
    if spec.framework == _RAY:
        return ray.wrap_command(spec, position)
    return command


def count_shared_memory_mib(spec: Spec) -> int:
    """Return the MiB of shared memory that a replica needs for its framework; 0 where nothing says so."""
    return ray.count_shared_memory_mib(spec.framework_options) if spec.framework == _RAY else 0


def needs_key(framework: str | None) -> bool:
    """Return whether the replicas know each other by a key, in the variable `mpi.KEY`."""
    return framework == _MPI

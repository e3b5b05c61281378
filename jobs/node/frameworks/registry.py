"""Dispatch by framework: the variables of a replica, and the command that it runs.

A job file's own variables win over these.
"""

from __future__ import annotations

from typing import Final

from jobs.node.frameworks import mpi, pytorch, ray, sanity, xgboost
from jobs.node.frameworks.job import FrameworkJob, Spec

_PYTORCH: Final = ("pytorch", "elasticbatch")
_MPI: Final = "mpi"
_XGBOOST: Final = "xgboost"
_RAY: Final = "ray"


def shared_variables(job: FrameworkJob) -> dict[str, str]:
    """Return the variables that are the same for all replicas."""
    return {**_framework_variables(job), **(sanity.shared_variables(job) if job.checks_nodes else {})}


def _framework_variables(job: FrameworkJob) -> dict[str, str]:
    if job.framework in _PYTORCH:
        return pytorch.shared_variables(job)
    if job.framework == _MPI:
        return mpi.shared_variables(job)
    if job.framework == _XGBOOST:
        return xgboost.shared_variables(job)
    return {}


def own_variables(framework: str | None, rank: str, is_first: str, processes: str) -> dict[str, str]:
    """Return the variables of the replica with a rank; the values may be expressions of a script.

    `is_first` is 1 for rank 0, and 0 for all others.
    """
    if framework in _PYTORCH:
        return pytorch.own_variables(rank, is_first, processes)
    if framework == _XGBOOST:
        return xgboost.own_variables(rank)
    return {}


def wrap_command(spec: Spec, position: int) -> str:
    """Return what a replica of the role at a position runs, for the command that the job file gives it."""
    command = _wrap_for_framework(spec, position)
    if not spec.sanity_check.enabled:
        return command
    offset = sum(role.replicas for role in spec.roles[:position])
    library = "torch" if spec.framework in _PYTORCH else ""
    return sanity.wrap_command(spec.sanity_check, offset, library, command)


def _wrap_for_framework(spec: Spec, position: int) -> str:
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


def ends_by_launcher(framework: str | None) -> bool:
    """Return whether the launcher of a replica ends the rest of it.

    Ray's own processes would end at SIGTERM, before the job's command can use its grace period.
    """
    return framework == _RAY


def needs_key(framework: str | None) -> bool:
    """Return whether the replicas know each other by a key, in the variable `mpi.KEY`."""
    return framework == _MPI

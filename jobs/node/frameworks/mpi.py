"""MPI: one replica runs the command, and mpirun starts its processes in all of them.

As with Kubeflow's MPIJob the launcher alone runs the command.  That is the first replica of the role with
rank 0.  The others run `launch_agent.py`, which starts what mpirun asks for, until the launcher ends.  The
launcher has the files and variables by which a plain `mpirun` of OpenMPI or MPICH finds them.  A role that is
called `launcher` runs none of mpirun's processes where there are other replicas; any other does.

A replica has a slot for each of its processes; more than that may be asked for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from jobs.node.frameworks.job import SHELL, FrameworkJob, find_leader
from jobs.node.network.names import join_name, label_roles

KEY: Final = "JOB_CONSOLE_MPI_KEY"
"""The variable with the key by which replicas know each other; only the first process of each has it."""

HOSTS: Final = "JOB_CONSOLE_MPI_HOSTS"
"""The variable with every replica, in the order of the ranks: `name=address:port:processes,…`."""

END: Final = "END_OF_AGENT"
_PREPARE: Final = """\
_mpi=$(mktemp -d "${TMPDIR:-/tmp}/mpi.XXXXXX") || exit
(umask 077; printf %s "$JOB_CONSOLE_MPI_KEY" >"$_mpi/key") || exit
export PATH="$PATH:$_mpi"
unset JOB_CONSOLE_MPI_KEY"""
_SERVE: Final = """\
exec python3 "$_mpi/mpi-agent" serve"""
_LAUNCH: Final = """\
python3 "$_mpi/mpi-agent" hold $$ || exit
export OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent=mpi-agent OMPI_MCA_plm_rsh_no_tree_spawn=1
export OMPI_MCA_orte_default_hostfile="$_mpi/hostfile" OMPI_MCA_orte_do_not_resolve=1 OMPI_MCA_ras=^slurm
export OMPI_MCA_rmaps_base_oversubscribe=1
[ "$(id -u)" != 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export HYDRA_HOST_FILE="$_mpi/machinefile" HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC="$_mpi/mpi-agent"
unset _mpi"""


def shared_variables(job: FrameworkJob) -> dict[str, str]:
    """Return the variable with all replicas."""
    labels, first = label_roles([role.name for role in job.roles]), job.leader
    spared = job.roles[first].name.lower() == "launcher" and job.replicas > 1
    entries = []
    for at in [first, *(at for at in range(len(job.roles)) if at != first)]:
        role = job.roles[at]
        for index in range(role.replicas):
            reached = f"{job.endpoints.address(at, index)}:{job.endpoints.port(at, index, SHELL)}"
            processes = "0" if spared and (at, index) == (first, 0) else role.processes
            entries.append(f"{join_name('', labels[at], index)}={reached}:{processes}")
    return {HOSTS: ",".join(entries)}


def wrap_command(roles: list[str], position: int, command: str) -> str:
    """Return the launcher's command behind its preparation, or what the other replicas run."""
    program = Path(__file__).with_name("launch_agent.py").read_text(encoding="utf-8").rstrip("\n")
    program = f"#!/usr/bin/env python3\n{program}"
    lines = [
        _PREPARE,
        f"cat >\"$_mpi/mpi-agent\" <<'{END}' || exit",
        program,
        END,
        'chmod 700 "$_mpi/mpi-agent"',
    ]
    if position != find_leader(roles):
        return "\n".join([*lines, _SERVE])
    return "\n".join([*lines, f'if [ "$PAI_TASK_INDEX" != 0 ]; then {_SERVE}; fi', _LAUNCH, command])

"""MPI jobs with Debian's OpenMPI and MPICH: a plain `mpirun` spans all replicas."""

from __future__ import annotations

from typing import Final

from jobs.jobtemplates import SHIPPED
from jobs.jobtemplates.answers import build_spec
from jobs.spec import Framework, Resources
from jobs.states import State
from tests.jobs.backends.benches import Bench, log_of, role, wait_until_over
from tests.required import skip_without

ALL_REDUCE: Final = """
import os
from mpi4py import MPI
world = MPI.COMM_WORLD
print("openmpi", world.rank, world.size, world.allreduce(world.rank + 1), os.environ["PAI_TASK_INDEX"])
"""
IN_MPICH: Final = """
import ctypes, os
mpi, WORLD, INT, SUM = ctypes.CDLL("libmpich.so.12"), 0x44000000, 0x4C000405, 0x58000003
mpi.MPI_Init(None, None)
own, total = ctypes.c_int(1), ctypes.c_int()
mpi.MPI_Allreduce(ctypes.byref(own), ctypes.byref(total), 1, INT, SUM, WORLD)
print("mpich" if total.value == 2 else "wrong", flush=True)
mpi.MPI_Barrier(WORLD)
os._exit(0)
"""
"""MPICH's own library, by the numbers of its mpi.h.

It ends without MPI_Finalize, in which Debian's MPICH (4.0.2, on UCX) now and then waits for ever.
"""

COMMAND: Final = """
mpirun.openmpi /usr/bin/python3 {folder}/openmpi.py
mpirun.mpich /usr/bin/python3 {folder}/mpich.py
mpirun.openmpi -n 2 sh -c 'exit 3'
code=$?
[ -z "$JOB_CONSOLE_MPI_KEY" ] && exit $code
"""


def test_mpi_starter_runs_on_all_nodes(bench: Bench) -> None:
    skip_without("mpirun", "openmpi-bin")
    spec = build_spec(SHIPPED["mpi"], {"nodes": 2, "cpus": 1, "memory": 1, "gpus": 0, "processes": "3"})
    submission = bench.submission(*spec.roles, env=spec.env, framework=spec.framework)
    handle = bench.backend.submit(submission)
    seen = wait_until_over(bench.backend, handle)
    log = log_of(bench.backend, handle, "Worker")
    assert seen.state is State.SUCCEEDED, log
    assert all(log.count(f"process {rank} of 3") == 1 for rank in range(3)), log


def test_mpirun_spans_replicas_and_its_exit_is_jobs(bench: Bench) -> None:
    for program in ("mpirun.openmpi", "mpirun.mpich"):
        skip_without(program, "openmpi-bin mpich")
    for name, text in (("openmpi.py", ALL_REDUCE), ("mpich.py", IN_MPICH)):
        (bench.judge / name).write_text(text)
    command = COMMAND.format(folder=bench.judge)
    two = role(command, replicas=2, resources=Resources(cpu_milli=1000, memory_mib=512))
    handle = bench.backend.submit(bench.submission(two, framework=Framework.MPI))
    seen = wait_until_over(bench.backend, handle)
    log = log_of(bench.backend, handle)
    assert seen.state is State.FAILED, log
    assert seen.reason.params == {"role": "worker", "index": 0, "exit_code": 3}
    counts = {line: log.count(line) for line in ("mpich", "openmpi 0 2 3 0", "openmpi 1 2 3 1")}
    assert list(counts.values()) == [2, 1, 1], log  # mpirun may print one line within another

"""TensorBoard beside a job of a real Slurm, in a step of its own."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from jobs.backends.base import EndpointSeen, Observation, ReplicaRef
from jobs.spec import Resources, TensorBoard
from jobs.states import State
from tests.jobs.backends import curves
from tests.jobs.backends.benches import log_of, replica, role, wait_until_over
from tests.jobs.backends.slurm_bench import SlurmBench
from tests.waiting import wait_for


def test_tensorboard_runs_beside_the_first_replica_until_the_job_ends(on_slurm: SlurmBench) -> None:
    curves.write_curve(on_slurm.judge / "run")
    logs = f"echo $AIHC_TENSORBOARD_LOG_PATH; mkdir -p logs; cp -r {on_slurm.judge}/run logs"
    waits = f"until [ -e {on_slurm.judge}/go ]; do sleep 0.1; done"
    env = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    job = role(f"{logs}\n{waits}", replicas=2, env=env, resources=Resources(memory_mib=1024))
    board = TensorBoard(log_path="logs")
    handle = on_slurm.backend.submit(on_slurm.submission(job, tensorboard=board))

    def find_endpoint() -> EndpointSeen | None:
        seen = on_slurm.backend.observe([handle])[handle]
        assert isinstance(seen, Observation)
        return next((each for each in replica(seen).endpoints if each.ready), None)

    endpoint = wait_for(find_endpoint, 60)
    assert (endpoint.label, endpoint.path) == ("tensorboard", "/")

    def fetch_tags() -> dict[str, object]:
        reached = on_slurm.backend.connect(handle, ReplicaRef("worker", 0), "localhost", endpoint.port)
        return curves.fetch_tags(asyncio.run(reached))

    assert wait_for(fetch_tags) == {"run": {curves.TAG: {"displayName": "", "description": ""}}}
    (on_slurm.judge / "go").touch()
    seen = wait_until_over(on_slurm.backend, handle)
    assert (seen.state, len(seen.replicas)) == (State.SUCCEEDED, 2)
    folder = on_slurm.attempt(handle) / "run-1/work/worker-0/logs"
    assert log_of(on_slurm.backend, handle) == f"{folder}\n"
    wait_for(lambda: not on_slurm.processes())

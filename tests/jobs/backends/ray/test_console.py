"""A whole console beside a Ray on which everything breaks: no job is lost, and no attempt begins twice.

The judge is a file to which each replica appends the name of its attempt when it begins.  What ran when Ray's
head was lost is followed by another attempt.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from jobs.client.python_client import Client
from tests.jobs.backends.whole_console import CLUSTER, add_cluster
from tests.ray_cluster import RayCluster
from tests.stack import ADMIN, running
from tests.waiting import wait_for

pytestmark = pytest.mark.ray

JOBS: Final = int(os.environ.get("RAY_JOBS", "20"))
PATIENCE_S: Final = 240 + 5 * JOBS
ENDS: Final = ("SUCCEEDED", "FAILED", "STOPPED", "LOST")


def make_job(number: int, judge: Path) -> str:
    """Return a job file: every fifth job fails."""
    command = f"echo $APP_ID >>{judge}; sleep 0.{number % 10}; exit {3 if fails(number) else 0}"
    role = {"name": "worker", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 64, "command": command}
    return json.dumps({"jobName": f"job-{number}", "image": "busybox", "taskRoles": [role]})


def fails(number: int) -> bool:
    return number % 5 == 4


@pytest.mark.timeout(1800)
def test_console_loses_no_job_and_runs_none_twice_while_ray_breaks(
    ray_cluster: RayCluster, tmp_path: Path
) -> None:
    judge = tmp_path / "begun"
    judge.touch()
    (tmp_path / "nodes").mkdir()
    with running() as stack:
        config = {
            "url": ray_cluster.url,
            "token": ray_cluster.token,
            "console_url": stack.base_url,
            "nodes_folder": str(tmp_path / "nodes"),
            "allow_plain": True,
            "timeout_s": 5,
        }
        add_cluster(stack, "ray", config)
        token = json.loads(stack.manage("issue_token", ADMIN))["token"]
        with Client(stack.base_url, token) as client:
            made: list[str] = []

            def submit(count: int) -> None:
                numbers = range(len(made), len(made) + count)
                made.extend(client.submit(make_job(each, judge), cluster=CLUSTER).id for each in numbers)

            def begun(more: int) -> None:
                enough = min(len(judge.read_text().splitlines()) + more, JOBS)
                wait_for(lambda: len(judge.read_text().splitlines()) >= enough, PATIENCE_S, 0.3)

            def over() -> bool:
                return all(client.get(job).state in ENDS for job in made)

            submit(JOBS // 2)
            begun(JOBS // 8)
            ray_cluster.kill_dashboard()
            stack.kill("worker-control")
            submit(JOBS // 4)
            ray_cluster.start_dashboard()
            begun(JOBS // 8)
            stack.kill("web")
            ray_cluster.kill_head()
            ray_cluster.restart()
            stack.wait_until("/healthz")
            submit(JOBS - len(made))
            wait_for(over, PATIENCE_S, 0.5)
            ends: list[Any] = [client.get(job) for job in made]
        wrong = [
            (each.name, each.state, each.reason)
            for number, each in enumerate(ends)
            if each.state != ("FAILED" if fails(number) else "SUCCEEDED")
        ]
        assert not wrong, stack.printed()
    counts = Counter(judge.read_text().splitlines())
    assert set(counts.values()) == {1}, "no attempt began twice"
    assert len({key.rpartition("-")[0] for key in counts}) == JOBS, "every job began"

"""Stacks of real ranks, collected beside their replicas and compared."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from jobs.backends.sessions import Enterable
from jobs.fault_tolerance import stacks
from jobs.fault_tolerance.stacks import StackVerdict
from jobs.models import Replica
from jobs.node.sandbox.isolation import Isolation
from jobs.scheduling import stack_dumps
from jobs.spec import PodContainer
from tests.jobs.backends.benches import Bench, LocalBench, role
from tests.jobs.backends.beside import ROOM
from tests.jobs.backends.slurm_bench import SlurmBench
from tests.waiting import wait_for

TRAINING = """
import os, signal, sys, time

LIBRARY = "import time\\ndef all_reduce():\\n time.sleep(600)\\n"
rank = int(os.environ.get("JOB_CONSOLE_REPLICA", os.environ.get("SLURM_PROCID")).rpartition("-")[2])
scope = {}
exec(compile(LIBRARY, "/x/site-packages/torch/distributed/c10d.py", "exec"), scope)
def load_batch():
    time.sleep(600)
open(f"{sys.argv[1]}/{rank}", "w").close()
load_batch() if rank == 2 else scope["all_reduce"]()
"""

LOCAL: dict[str, dict[str, Any]] = {"persons": {}, "none": {"isolation": Isolation.NONE}}


@pytest.fixture(params=[*LOCAL, "slurm"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    made: Bench
    if request.param == "slurm":
        made = SlurmBench(tmp_path, request.getfixturevalue("slurm"))
    elif os.geteuid() != 0 and request.param == "persons":
        pytest.skip("user ids for every person need root")
    else:
        made = LocalBench(tmp_path, LOCAL[request.param])
    yield made
    made.close()


def test_rank_outside_the_collective_of_the_others_is_the_suspect(bench: Bench) -> None:
    script = bench.judge / "train.py"
    script.write_text(TRAINING)
    command = f"exec /usr/bin/python3 {script} {bench.judge}"
    program = ("/usr/bin/python3", "-c", "import time; time.sleep(600)")
    sidecars = (PodContainer(name="beside", command=program),)  # older than the rank, and no rank
    ranks = role(command, replicas=3, resources=ROOM, sidecars=sidecars)
    handle = bench.backend.submit(bench.submission(ranks, grace_s=0))
    wait_for(lambda: len(list(bench.judge.glob("[0-9]"))) == 3, 60)
    replicas = [Replica(pk=n + 1, role="worker", index=n, node=f"n{n}") for n in range(3)]
    backend = cast("Enterable", bench.backend)
    found = asyncio.run(stack_dumps.collect(backend, handle, replicas))
    told = stacks.compare(found)
    assert told.missing == {}
    assert (told.verdict, told.place, told.ranks) == (StackVerdict.SUSPECTS, "all_reduce", 3)
    (suspect,) = told.suspects
    assert (suspect.role, suspect.index, suspect.node) == ("worker", 2, "n2")
    assert suspect.place.startswith("load_batch (")
    assert "all_reduce (torch/distributed/c10d.py:3)" in stacks.render(found)

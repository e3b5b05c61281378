"""The backends on which the frameworks' own libraries are run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jobs.backends.benches import Bench
from tests.jobs.backends.conftest import local, make
from tests.jobs.backends.slurm_bench import SlurmBench

__all__ = ["local"]


@pytest.fixture(params=["local", "slurm"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    made: Bench
    if request.param == "slurm":
        made = SlurmBench(tmp_path, request.getfixturevalue("slurm"))
    else:
        made = make(request.param, tmp_path)
    yield made
    made.close()

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.node.sandbox.isolation import Isolation
from tests.jobs.backends.benches import CONTRACT_BENCHES, Bench, LocalBench
from tests.jobs.backends.ray_bench import RayBench
from tests.jobs.backends.slurm_bench import SlurmBench, by_rest
from tests.ray_cluster import RayCluster
from tests.serving import reserved, web_server
from tests.slurm import Slurm

OUTSIDE = "/srv" if os.geteuid() == 0 else "/var/tmp"
"""Where a folder lies that jobs see; their /tmp and /var/tmp are their own."""

BENCHES = [
    pytest.param(name, marks=pytest.mark.ray if name == "ray" else ())
    for backend in ("local", "slurm", "ray")
    for name in CONTRACT_BENCHES[backend]
]
"""A new backend joins the contract by its name here."""


def make(name: str, folder: Path) -> LocalBench:
    """A bench of this machine by name."""
    settings: dict[str, dict[str, Any]] = {"local": {}, "local-none": {"isolation": Isolation.NONE}}
    return LocalBench(folder, settings[name])


@pytest.fixture(params=BENCHES)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    made: Bench
    if request.param in ("slurm", "slurm-rest"):
        running = request.getfixturevalue("slurm")
        made = SlurmBench(tmp_path, running, by_rest(running) if request.param == "slurm-rest" else {})
    elif request.param == "ray":
        made = request.getfixturevalue("on_ray")
        yield made
        return
    else:
        made = make(request.param, tmp_path)
    yield made
    made.close()


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalBench]:
    made = LocalBench(tmp_path)
    yield made
    made.close()


@pytest.fixture
def on_slurm(tmp_path: Path, slurm: Slurm) -> Iterator[SlurmBench]:
    made = SlurmBench(tmp_path, slurm)
    yield made
    made.close()


@pytest.fixture
def on_ray(tmp_path: Path, ray_cluster: RayCluster, settings: Any) -> Iterator[RayBench]:
    """A bench on Ray, and the console's web server, which its relays reach."""
    port = reserved()
    settings.CONSOLE_SLURM_FOLDER = str(tmp_path / "jobs")
    with port, web_server(port):
        made = RayBench(tmp_path, ray_cluster, f"http://127.0.0.1:{port.getsockname()[1]}")
        yield made
        made.close()


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every job's user can reach; where it is made by root, jobs see it where it is."""
    folder = Path(tempfile.mkdtemp(prefix="job-console-test-", dir=OUTSIDE))
    folder.chmod(0o755)
    for name, mode in (("sets", 0o755), ("out", 0o777), ("store", 0o755)):
        (folder / name).mkdir()
        (folder / name).chmod(mode)
    (folder / "sets" / "file").write_text("of the set\n")
    yield folder
    shutil.rmtree(folder)

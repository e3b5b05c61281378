"""A whole console with a real Ray, as people use it: the vendor's SDK, and a notebook in Chromium."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jobs.backends.whole_console import (
    add_cluster,
    inherited_path,
    run_cell_in_seeds_jupyter,
    run_seed_by_sdk,
)
from tests.ray_cluster import RayCluster
from tests.stack import Stack, running

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def stack(ray_cluster: RayCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A console whose jobs run on Ray, without the images that they name."""
    with running() as started:
        config = {
            "url": ray_cluster.url,
            "token": ray_cluster.token,
            "console_url": started.base_url,
            "nodes_folder": str(tmp_path_factory.mktemp("nodes")),
            "gpu_resources": ["titan"],
            "allow_plain": True,
        }
        add_cluster(started, "ray", config)
        yield started


def test_sample_of_the_page_runs_on_ray_by_the_vendors_sdk(stack: Stack) -> None:
    assert "Hello World" in run_seed_by_sdk(stack, {})


def test_jupyter_job_of_the_page_runs_a_cell_on_ray(stack: Stack) -> None:
    own = inherited_path(str(Path(sys.executable).parent))  # where the tests' own Jupyter is
    run_cell_in_seeds_jupyter(stack, {"jobEnvs": {"PATH": own}}, {"memoryMB": 2048})

"""A whole console with a real Kubernetes, as people use it: the vendor's SDK, and a notebook in Chromium."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.flows.test_jupyter import JUPYTER as SEED
from tests.jobs.backends.kubernetes_bench import IMAGE
from tests.jobs.backends.whole_console import add_cluster, run_cell_in_seeds_jupyter, run_seed_by_sdk
from tests.kubernetes.cluster import Cluster
from tests.stack import Stack, running

JUPYTER: Final = Path(sys.prefix)
"""The folder with the tests' own Jupyter, which the image has not."""

RUN: Final = 'jupyter() { python3 -m "$@"; }\n'
"""By the image's Python, as the programs of that folder name another one."""


@pytest.fixture(scope="module")
def stack(kubernetes: Cluster, namespace: str) -> Iterator[Stack]:
    """A console whose jobs run in a namespace, where they may read the folder with Jupyter."""
    with running() as started:
        config = {
            "url": kubernetes.server,
            "ca": kubernetes.ca,
            "token": kubernetes.token,
            "namespace": namespace,
            "folders": {str(JUPYTER): {"workspaces": ["lab"]}},
        }
        add_cluster(started, "kubernetes", config)
        yield started


def test_sample_of_the_page_runs_in_a_pod_by_the_vendors_sdk(stack: Stack) -> None:
    assert "Hello World" in run_seed_by_sdk(stack, {"Image": IMAGE})


def test_jupyter_job_of_the_page_runs_a_cell_in_a_pod(stack: Stack) -> None:
    found = sorted(JUPYTER.glob("lib/python3*/site-packages"))
    env = {"PYTHONPATH": str(found[0]), "JUPYTER_PATH": str(JUPYTER / "share/jupyter")}
    change = {"image": IMAGE, "jobEnvs": env, "dataDir": str(JUPYTER), "gpuType": ""}
    command = RUN + json.loads(SEED)["taskRoles"][0]["command"]
    run_cell_in_seeds_jupyter(stack, change, {"command": command, "memoryMB": 2048})

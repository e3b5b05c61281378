"""The commands of docs/ray.md, run as they stand: from a Ray that runs to the first job."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from console.home import CHECKOUT
from tests import page_scripts
from tests.page_scripts import MAKE, blocks, mark, with_values
from tests.ray_cluster import NODES, RayCluster

pytestmark = pytest.mark.ray

PAGE: Final = CHECKOUT / "docs" / "ray.md"
SECTION: Final = "From a Ray cluster to the first job"
PROMISED_S: Final = 600
"""What the page says that it takes, for a person."""

PATIENCE_S: Final = 1200
"""Where the machine does much else."""


@pytest.mark.timeout(1500)
def test_ray_page_leads_to_the_first_job(
    ray_cluster: RayCluster, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with page_scripts.console(tmp_path, {}) as console:
        own = {
            "URL": ray_cluster.url,
            "TOKEN": ray_cluster.token,
            "ADDRESS": console.base_url,
            "PORT": console.environ["PORT"],
        }
        script = [MAKE, mark("begun"), *with_values(blocks(PAGE, SECTION), own), mark("ended")]
        done = page_scripts.run("".join(script), console.environ, PATIENCE_S)
    told = done.stdout + done.stderr
    assert re.search(r"^Hello from rank 0 of 2, master \S+$", done.stdout, re.MULTILINE), told
    nodes = re.search(r"^Everything is there\. Tried: (.*)$", done.stdout, re.MULTILINE)
    assert nodes is not None, told
    assert set(NODES) <= set(nodes[1].split(", ")), told
    assert re.search(r"^\w{12}  SUCCEEDED .* All replicas succeeded\.$", done.stdout, re.MULTILINE), told
    began, ended = map(int, re.findall(r"^### .*=(\d+)$", done.stdout, re.MULTILINE))
    record_property("docs/ray.md, to the first job", f"{ended - began} s")
    assert ended - began < PROMISED_S

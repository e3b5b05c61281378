"""The sample program of PAI-DLC's page (seed 000), unchanged but for endpoint and protocol.

A whole console answers it, on this machine and on Slurm.  The page lies beside the checkout.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from console.home import CHECKOUT
from tests.clients import environments
from tests.scenes import MACHINE
from tests.slurm import Slurm
from tests.stack import Stack, running

PAGES: Final = CHECKOUT.parent / "shared" / "seeds"
RELEASES: Final = ("dlc-1.4.0", "dlc-1.4.17", "dlc-1.11.6")
ENDPOINTS: Final = (
    '"aiworkspace.{}.aliyuncs.com".format(region_id)',
    "'pai-dlc.{}.aliyuncs.com'.format(region_id)",
)
STORAGE: Final = "nas://***.cn-hangzhou"
"""The address of the program's dataset, with the page's own placeholder."""


def page() -> str:
    """Return the page's text."""
    found = sorted(PAGES.glob("000_*.txt")) if PAGES.is_dir() else []
    if not found:
        pytest.skip("the vendor's page is not beside the checkout")
    return found[0].read_text(encoding="utf-8")


def program(endpoint: str) -> str:
    """Return the first program of the page, pointed at `endpoint`."""
    text = page()
    start, last = text.index("#!/usr/bin/env python3"), "    main()\n"
    code = text[start : text.index(last, start) + len(last)]
    for address in ENDPOINTS:
        assert code.count(address) == 1
        code = code.replace(address, f"'{endpoint}', protocol='http'")
    return code


def run(stack: Stack, release: str) -> str:
    """Run the program with a release of the SDK; return what it printed."""
    issued = json.loads(stack.manage("issue_access_key", "admin"))
    inherited = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    keys = {
        "ALIBABA_CLOUD_ACCESS_KEY_ID": issued["access_key_id"],
        "ALIBABA_CLOUD_ACCESS_KEY_SECRET": issued["access_key_secret"],
    }
    done = subprocess.run(
        [str(environments.python(release)), "-c", program(f"127.0.0.1:{stack.port}")],
        env={**inherited, **keys},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def storage() -> Iterator[Path]:
    """A folder of this site that stands for the vendor's file system; jobs run as somebody else."""
    with tempfile.TemporaryDirectory(prefix="job-console-test-", dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "a-file-of-the-dataset").touch()
        yield folder


def mapped(storage: Path) -> dict[str, object]:
    """Return the settings of a cluster that lead the dataset's address to a folder."""
    rights = {"workspaces": ["*"], "write": True}
    return {"datasets": {STORAGE: str(storage)}, "folders": {str(storage): rights}}


@pytest.fixture(scope="module")
def stack(storage: Path) -> Iterator[Stack]:
    page()
    local = json.loads(MACHINE["CONSOLE_LOCAL"])
    local |= mapped(storage)
    with running({**MACHINE, "CONSOLE_LOCAL": json.dumps(local)}) as started:
        yield started


@pytest.mark.parametrize("release", RELEASES)
def test_seed_sample_on_this_machine_ends_succeeded(stack: Stack, release: str) -> None:
    printed = run(stack, release)
    assert ") is Succeeded\n" in printed
    listed = printed.partition("-------- List Jobs ----------")[2]
    assert "sample-dlc-job dlc" in listed
    assert "Succeeded TFJob" in listed


def test_seed_sample_on_slurm_ends_succeeded(slurm: Slurm, storage: Path) -> None:
    """The dataset is registered already, at a folder of the cluster: the program takes it as it is."""
    page()
    config = {"configuration": str(slurm.configuration), "allow_plain": True}
    with running(MACHINE) as stack:
        stack.manage("add_cluster", "hpc", "--title", "HPC", "--config", json.dumps(config))
        quota = {"hpc": {"all": {"name": "All of it"}}}
        site = {"version": 1, "workspaces": {"default": {"name": "Default", "quotas": quota}}}
        stack.manage("apply", "-", stdin=json.dumps(site))
        stack.python(
            "from quotas.models import Cluster\nCluster.objects.exclude(slug='hpc').update(enabled=False)\n"
        )
        dataset = {
            "name": "example-nas-data",
            "workspace": "default",
            "source": "host",
            "uri": str(storage),
            "mount_path": "/mnt/data/nas",
        }
        with closing(stack.client()) as client:
            client.post("/api/console/v1/assets/datasets", json=dataset).raise_for_status()
        for release in RELEASES:
            assert ") is Succeeded\n" in run(stack, release), release
        with closing(stack.client()) as client:
            jobs = client.get("/api/console/v1/jobs").raise_for_status().json()["jobs"]
        assert [(job["cluster"], job["name"]) for job in jobs] == [("hpc", "sample-dlc-job")] * len(RELEASES)

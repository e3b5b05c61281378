"""The attacks of hostile jobs over the network fail where jobs have networks of their own, TLS or not.

`python -m tests.jobs.backends.local.hostile FOLDER MODE host` shows what they reach in the machine's network.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import pytest

from jobs.backends.local import machine
from jobs.node.sandbox.isolation import Isolation
from tests.jobs.backends.benches import CHECKOUT
from tests.jobs.backends.local.nobody import find_python

TUNNELS: Final = """
mount -t tmpfs tmpfs /dev/net && mknod -m 666 /dev/net/tun c 10 200 && exec "$@"
"""
"""Root may be the only one who can use tunnels here, and the ordinary user of a test comes from root."""


@pytest.fixture(scope="module", params=[Isolation.PERSONS, Isolation.NAMESPACES])
def reached(request: pytest.FixtureRequest) -> Any:
    """Return what a hostile job, and a browser that is led to it, reached; the network is the job's own."""
    mode: Isolation = request.param
    if mode is Isolation.PERSONS and os.geteuid() != 0:
        pytest.skip("user ids for every person need root")
    if lacking := machine.network_lacks(mode, find_python()):
        pytest.skip(f"networks of jobs' own need {', '.join(lacking)}")
    with tempfile.TemporaryDirectory(prefix="job-console-test-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        tunnels = ["unshare", "--mount", "sh", "-c", TUNNELS, "sh"] if os.geteuid() == 0 else []
        done = subprocess.run(
            [*tunnels, sys.executable, "-m", "tests.jobs.backends.local.hostile", folder, mode, "own"],
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_browser_does_not_get_to_ports_of_jobs_at_any_address_of_the_machine(reached: Any) -> None:
    """No page of a job is therefore sent the cookies of the console's name, which has every port."""
    assert reached["browser"] == []


def test_job_does_not_reach_listeners_of_the_machine_or_of_other_jobs(reached: Any) -> None:
    """Neither the console's /metrics and /healthz, its broker and database nor a cloud's metadata service."""
    assert reached["bob"] == []


def test_connection_to_a_replica_never_ends_at_another_persons_process(reached: Any) -> None:
    assert reached["before"] == "alice"
    assert reached["after"].startswith("no ")


def test_job_gets_its_ports_while_another_one_listens_on_all_of_them(reached: Any) -> None:
    assert reached["carol"].split() == ["23456"]

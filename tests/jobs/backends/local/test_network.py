"""A job's own network, as root and as an ordinary user: what it reaches, and what a kill leaves of it."""

from __future__ import annotations

import ipaddress
import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from ipaddress import IPv4Interface
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.local import machine
from jobs.node.network.namespaces import make_inside
from jobs.node.network.netlink import LOOPBACK, Netlink, open_netlink
from jobs.node.sandbox.isolation import Isolation
from jobs.states import State
from tests.jobs.backends.benches import CHECKOUT

SITE = """
import socket, sys
servers = [socket.create_server(("", port)) for port in (80, 443)]
print("up", flush=True)
sys.stdin.read()
"""
FIRST = ipaddress.IPv4Address("198.18.0.0")
"""Of the range for tests of networks (RFC 2544)."""


@pytest.fixture(params=[Isolation.PERSONS, Isolation.NAMESPACES])
def mode(request: pytest.FixtureRequest) -> Isolation:
    """Return an isolation mode: the first one is root's, the second one an ordinary user's."""
    if os.geteuid() != 0:
        pytest.skip("needs root, also to become another user")
    if lacking := machine.network_lacks(request.param):
        pytest.skip(f"networks of jobs' own need {', '.join(lacking)}")
    mode: Isolation = request.param
    return mode


@pytest.fixture
def site() -> Iterator[str]:
    """Return the address of a machine beside this one, which listens on two ports."""
    number = secrets.randbelow(1 << 14) * 4
    host, address = (IPv4Interface(f"{FIRST + number + end}/30") for end in (1, 2))
    name = f"jt{number:x}"
    with subprocess.Popen(
        ["unshare", "-n", sys.executable, "-c", SITE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        net = os.open(f"/proc/{process.pid}/ns/net", os.O_RDONLY)
        with Netlink() as netlink:
            netlink.add_veth(name, "eth0", net, peer_index=0)
            netlink.add_address(netlink.index_of(name), host)
            (inside,) = make_inside(None, net, lambda: [open_netlink()])
            with Netlink(inside) as there:
                index = there.index_of("eth0")
                for each in (LOOPBACK, index):
                    there.set_up(each)
                there.add_address(index, address)
            yield str(address.ip)
            netlink.remove_link(name)
        os.close(net)
        process.communicate()


def _run(mode: Isolation, **told: Any) -> dict[str, Any]:
    range_ = f"10.{100 + secrets.randbelow(100)}.{secrets.randbelow(256)}.0/24"
    told = {"mode": mode, "range": range_, **told}
    with tempfile.TemporaryDirectory(prefix="job-console-test-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        done = subprocess.run(
            [sys.executable, "-m", "tests.jobs.backends.local.neighbours", folder, json.dumps(told)],
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_replica_reaches_its_job_and_what_its_egress_allows_and_nothing_else(
    mode: Isolation, site: str
) -> None:
    reached = _run(mode, site=site)
    assert reached == {
        "same job": ["10.66.0.2", "10.66.0.3", "127.0.0.1", "worker-0", "worker-1"],
        "internet": ["allowed", "other port"],
        "listed": ["allowed"],
        "none": [],
    }


@pytest.mark.kill
@pytest.mark.parametrize("victims", ["router agent", "wrapper", "pasta"])
def test_network_stays_for_replicas_and_leaves_nothing_after_kill(mode: Isolation, victims: str) -> None:
    if mode is Isolation.PERSONS and victims == "pasta":
        return  # there is none
    seen = _run(mode, victims=victims.split())
    assert seen == {"state": State.FAILED if victims == "wrapper" else State.STOPPED}

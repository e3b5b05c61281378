"""A network of hosts on this machine: each is a network namespace, whose link can be cut and mended.

Processes of a host share all else with this machine.  Needs root.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.required import skip_without
from tests.waiting import wait_for

SUBNET: Final = "198.18.{}"
"""Of the addresses that are reserved for tests of networks (RFC 2544)."""


@dataclass
class Host:
    """One host: `holder` keeps its namespace, `link` is this machine's end of its cable."""

    address: str
    link: str
    holder: subprocess.Popen[bytes]

    def enter(self, command: Sequence[str]) -> list[str]:
        """Return a command that runs another one on the host; the process stays the same."""
        return ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net", "--", *command]

    def cut(self) -> None:
        """Pull the cable: nothing comes or goes, and nobody is told."""
        _call("ip", "link", "set", self.link, "down")

    def mend(self) -> None:
        """Plug it in again."""
        _call("ip", "link", "set", self.link, "up")

    def remove(self) -> None:
        """Remove the namespace once its processes have ended; the cable goes with it."""
        self.holder.kill()
        self.holder.wait()


@dataclass
class Network:
    """A switch, at which this machine is `address`."""

    name: str
    subnet: str
    hosts: list[Host] = field(default_factory=list)

    @property
    def address(self) -> str:
        """The address of this machine."""
        return f"{self.subnet}.1"

    def add(self) -> Host:
        """Add a host."""
        number = len(self.hosts) + 2
        holder = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sleep", "infinity"])
        host = Host(f"{self.subnet}.{number}", f"{self.name}h{number}", holder)
        self.hosts.append(host)
        wait_for(lambda: _network_of(holder.pid) != _network_of(os.getpid()))
        inside = f"/proc/{holder.pid}/ns/net"
        _call(
            "ip", "link", "add", host.link, "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid)
        )
        _call("ip", "link", "set", host.link, "master", self.name, "up")
        for words in (
            ("link", "set", "lo", "up"),
            ("address", "add", f"{host.address}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
        ):
            _call("nsenter", f"--net={inside}", "ip", *words)
        return host


@contextmanager
def network() -> Iterator[Network]:
    """Make a network for the length of a `with`."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    skip_without("ip", "iproute2")
    # Not "jc…": packets from links of such names, which are of jobs' networks, are dropped.
    name, number = f"lan{secrets.token_hex(3)}", secrets.randbelow(254) + 1
    made = Network(name, SUBNET.format(number))
    _call("ip", "link", "add", name, "type", "bridge")
    try:
        _call("ip", "address", "add", f"{made.address}/24", "dev", name)
        _call("ip", "link", "set", name, "up")
        yield made
    finally:
        for host in made.hosts:
            host.remove()
        _call("ip", "link", "delete", name)


def _network_of(pid: int) -> int:
    return Path(f"/proc/{pid}/ns/net").stat().st_ino


def _call(*command: str) -> None:
    subprocess.run(command, check=True, timeout=60)

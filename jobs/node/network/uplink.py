"""The way from a router to the rest of the world.

Root makes a pair of interfaces, one end of which is the host's; an ordinary user has `pasta` carry
connections across.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from typing import Final

from jobs.node import processes
from jobs.node.network import namespaces, router
from jobs.node.network.namespaces import make_inside
from jobs.node.network.netlink import LOOPBACK, Netlink, open_netlink
from jobs.node.network.rules import HOST_LINKS, UPLINK, host_rules

PREFIX: Final = 30
"""Bits of what one router takes of the range: the second address names its link, the third is its own."""

GATEWAY: Final = IPv4Interface("169.254.78.1/32")
"""The host's address at its end of every link."""

_LINK_NAME: Final = re.compile(f"{HOST_LINKS}([0-9a-f]{{8}})")
_PASTA_HOST: Final = IPv4Interface(f"{GATEWAY.ip}/{PREFIX}")
_TIMEOUT_S: Final = 10


def host_addresses() -> list[IPv4Address]:
    """Return the addresses of the caller's network namespace."""
    with Netlink() as netlink:
        return netlink.list_addresses()


# --- root ------------------------------------------------------------------------------------------------


def add_link(address: str, net: int) -> None:
    """Link a router, whose address is the next one, to the host; raises OSError.

    The host's end has a route and no address: browsers on this machine drop their connections whenever its
    addresses change.  `GATEWAY` answers for all links.  The link ends with the router's network namespace.
    """
    own = IPv4Interface(IPv4Address(address) + 1)
    namespaces.write_setting("ipv4/ip_forward", "1")
    router.apply(host_rules())
    make_inside(None, net, _forbid_ipv6)
    with Netlink() as netlink:
        name = link_name(address)
        netlink.remove_link(name)  # of a router that nobody holds any more
        with contextlib.suppress(FileExistsError):
            netlink.add_address(LOOPBACK, GATEWAY)
        netlink.add_veth(name, UPLINK, net)
        namespaces.write_setting(f"ipv6/conf/{name}/disable_ipv6", "1")  # before the other end is up
        netlink.add_route(netlink.index_of(name), own.network)
    (inside,) = make_inside(None, net, lambda: [open_netlink()])
    with Netlink(inside) as netlink:
        index = netlink.index_of(UPLINK)
        netlink.set_up(index)
        netlink.add_address(index, own)
        netlink.add_route(index, GATEWAY.network)
        netlink.add_route(index, router.EVERYWHERE, GATEWAY.ip)


def find_linked() -> set[str]:
    """Return the addresses for which the host has a link to a router."""
    names = (name for _index, name in socket.if_nameindex())
    return {str(IPv4Address(int(found[1], 16))) for name in names if (found := _LINK_NAME.fullmatch(name))}


def _forbid_ipv6() -> list[int]:
    router.forbid_ipv6()
    return []


def remove_link(address: str) -> None:
    """Remove the host's link to a router; none is fine."""
    with Netlink() as netlink:
        netlink.remove_link(link_name(address))


def link_name(address: str) -> str:
    """Return the name of the host's interface with that address."""
    return f"{HOST_LINKS}{int(IPv4Address(address)):08x}"


# --- an ordinary user ------------------------------------------------------------------------------------


class Pasta:
    """The program that connects the router for an attempt; `pid_file` is where it writes its number.

    It is known by that file's path, which its command line has: whoever started it may have been killed
    before he could record more.
    """

    def __init__(self, pid_file: Path) -> None:
        self._pid_file = pid_file

    def ensure(self, holder: int) -> None:
        """Start it for the network namespace of a process, unless it runs; raises OSError."""
        held = self._hold()
        if held is None:
            self._start(holder)
        else:
            processes.send(held, processes.POKE)
            os.close(held)

    def stop(self) -> None:
        """End it; none is fine."""
        held = self._hold()
        if held is not None:
            processes.send(held, processes.KILL)
            processes.wait(held)
            os.close(held)
        self._pid_file.unlink(missing_ok=True)

    def _start(self, holder: int) -> None:
        """Start it so that nothing of the host's can be reached by way of the gateway, and nothing of the
        router's from the host.
        """
        host = _PASTA_HOST
        address, mask = str(host.ip + 1), str(host.network.prefixlen)
        own = ["--ipv4-only", "--address", address, "--netmask", mask, "--gateway", str(host.ip)]
        none = [word for name in ("-t", "-u", "-T", "-U") for word in (name, "none")]
        command = [namespaces.find_program("pasta"), "--config-net", "--no-map-gw", "--quiet", *none, *own]
        command += ["--ns-ifname", UPLINK, "--pid", str(self._pid_file), str(holder)]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise OSError(str(error)) from error
        if done.returncode != 0:
            raise OSError(f"pasta: {done.stderr.decode(errors='replace').strip()}")

    def _hold(self) -> int | None:
        """Return a pidfd of the process; None when there is none."""
        for pid in self._candidates():
            held = processes.hold(pid)
            if held is not None and self._is_mine(pid):
                return held
            if held is not None:
                os.close(held)
        return None

    def _candidates(self) -> Iterable[int]:
        """Return the number that it wrote, or every process when that is gone with the attempt's folder."""
        try:
            return [int(self._pid_file.read_text(encoding="utf-8"))]
        except ValueError:
            return []
        except FileNotFoundError:
            return [] if self._pid_file.parent.exists() else processes.numbers()

    def _is_mine(self, pid: int) -> bool:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            return False
        return os.fsencode(self._pid_file) in words

"""Addresses for the links between this machine and the routers of jobs' own networks."""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import IPv4Network

from jobs.node.network import uplink


class NoUplinkFree(Exception):
    """All addresses of the range are in use."""


def allocate(addresses: str, held: Collection[str]) -> str:
    """Return this machine's address of a free link of the range; raises NoUplinkFree.

    `held` are those of live attempts.  What this machine has in use besides is not free either: another
    console's, or one of an attempt that has just ended.
    """
    taken = {*held, *map(str, uplink.host_addresses())}
    for link in IPv4Network(addresses).subnets(new_prefix=uplink.PREFIX):
        host = str(link[1])
        if host not in taken:
            return host
    raise NoUplinkFree

"""Addresses for the links between this machine and the routers of jobs' own networks."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from ipaddress import IPv4Network
from typing import Final

from jobs.node.network import uplink

_LINK: Final = 1 << (32 - uplink.PREFIX)
"""Addresses of one link."""


class NoUplinkFree(Exception):
    """All addresses of the range are in use."""


def allocate(addresses: str, held: Collection[str]) -> str:
    """Return this machine's address of a free link of the range; raises NoUplinkFree.

    `held` are those of live attempts.  What this machine has in use besides is not free either: another
    console's, or one of an attempt that has just ended.
    """
    taken = {*held, *uplink.find_linked(), *map(str, uplink.host_addresses())}
    network = IPv4Network(addresses)
    count = network.num_addresses // _LINK
    first = secrets.randbelow(count)  # so that two consoles hardly ever choose the same one at once
    for number in (*range(first, count), *range(first)):
        host = str(network[number * _LINK + 1])
        if host not in taken:
            return host
    raise NoUplinkFree

"""Setting up a router: the network namespace between an attempt's replicas and everything else."""

from __future__ import annotations

import os
import subprocess
from ipaddress import IPv4Interface, IPv4Network
from typing import Final

from jobs.node import kernel
from jobs.node.network import namespaces
from jobs.node.network.netlink import LOOPBACK, Netlink
from jobs.node.network.rules import CREDENTIALS, SERVICE

EVERYWHERE: Final = IPv4Network("0.0.0.0/0")

_TIMEOUT_S: Final = 10


def set_up(rules: str) -> None:
    """Make the calling thread's new network namespace a router with these rules; raises OSError."""
    forbid_ipv6()
    for name in ("conf/all/rp_filter", "ip_forward"):
        namespaces.write_setting(f"ipv4/{name}", "1")
    with Netlink() as netlink:
        netlink.set_up(LOOPBACK)
        for address in (SERVICE, CREDENTIALS):  # answered for on every link to a replica
            netlink.add_address(LOOPBACK, IPv4Interface(address))
    apply(rules)


def forbid_ipv6() -> None:
    """Let no interface of the namespace but `lo` have an IPv6 address."""
    namespaces.write_setting("ipv6/conf/default/disable_ipv6", "1")


def apply(rules: str) -> None:
    """Give rules to the packet filter of the calling process's network namespace, all or none; OSError."""
    nft = namespaces.find_program("nft")
    try:
        done = subprocess.run(
            [nft, "-f", "-"],
            input=rules.encode(),
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
            preexec_fn=kernel.keep_network_rights if os.geteuid() != 0 else None,
        )
    except subprocess.TimeoutExpired as error:
        raise OSError(str(error)) from error
    if done.returncode != 0:
        raise OSError(f"nft: {done.stderr.decode(errors='replace').strip()}")

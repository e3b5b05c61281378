"""Packet filter rules, as nft(8) reads them.

Nothing of a plan gets into the text but what `ipaddress` and `int` have read and written again.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Final, Self

INTERNET: Final = "internet"
"""The egress rule for everywhere that is not refused anyway."""

SERVICE: Final = IPv4Address("169.254.77.1")
"""The router's address for its replicas: their gateway, resolver and service address."""

CREDENTIALS: Final = IPv4Address("169.254.170.2")
"""The router's address for credentials: the only one beside loopback where AWS's SDKs take plain HTTP."""

UPLINK: Final = "up"
"""The router's interface to the rest of the world; those to replicas begin with `v`."""

HOST_LINKS: Final = "jc"
"""With this begin the names of the host's interfaces to routers."""

_METADATA: Final = ("100.100.100.200/32", "168.63.129.16/32", "192.0.0.0/24")
"""Clouds' metadata services that are not link-local: Alibaba's gives out the host's own role."""

_NEVER: Final = tuple(
    map(IPv4Network, ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3", *_METADATA))
)
"""This host, link-local addresses such as a cloud's metadata service, multicast and what is reserved."""

_REFUSE: Final = "reject with icmpx type admin-prohibited"
"""So that a program gets an error at once, and does not wait for an answer."""

_EGRESS: Final = re.compile(
    r"(?P<network>[0-9./]+)(:(?P<first>[0-9]{1,5})(-(?P<last>[0-9]{1,5}))?)?", re.ASCII
)
_MOST_PORT: Final = 65535


@dataclass(frozen=True, slots=True)
class EgressRule:
    """A network, and the ports there, of which there are none where every packet may pass."""

    network: IPv4Network
    ports: range

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `CIDR`, `CIDR:port` or `CIDR:first-last`; raises ValueError."""
        found = _EGRESS.fullmatch(text)
        if found is None:
            raise ValueError(text)
        network = IPv4Network(found["network"])
        if found["first"] is None:
            return cls(network, range(0))
        first, last = int(found["first"]), int(found["last"] or found["first"])
        if not 0 < first <= last <= _MOST_PORT:
            raise ValueError(text)
        return cls(network, range(first, last + 1))

    def admits(self, address: str, port: int) -> bool:
        """Tell whether packets to a port of an address may pass; never to an IPv6 address."""
        found = ipaddress.ip_address(address)
        return found in self.network and (not self.ports or port in self.ports)

    def as_match(self) -> str:
        """Return the condition of a rule for the packet filter."""
        match = f"ip daddr {self.network}"
        if not self.ports:
            return match
        return f"{match} meta l4proto {{ tcp, udp }} th dport {self.ports[0]}-{self.ports[-1]}"


def router_rules(addresses: str, egress: Sequence[str], refused: Iterable[IPv4Address]) -> str:
    """Return the rules of a router.

    `addresses` is the range of its replicas, `egress` that of a plan, `refused` are addresses that no replica
    may reach, which are the host's own.  Raises ValueError.
    """
    never = [*_NEVER, IPv4Network(addresses), *map(IPv4Network, refused)]
    forward = [
        "ct state established,related accept",
        'iifname "v*" oifname "v*" accept',
        f"ip daddr {_format_set(never)} {_REFUSE}",
        *_egress(egress),
        f'iifname "v*" {_REFUSE}',
    ]
    service = f'iifname "v*" ip daddr {SERVICE}'
    incoming = [
        'iifname "lo" accept',
        "ct state established,related accept",
        f"{service} udp dport 53 accept",
        f"{service} tcp dport {{ 53, 80 }} accept",
        f'iifname "v*" ip daddr {CREDENTIALS} tcp dport 80 accept',
    ]
    return _table(
        "job",
        _chain("input", "filter hook input priority 0", incoming, policy="drop"),
        _chain("forward", "filter hook forward priority 0", forward, policy="drop"),
        _chain("postrouting", "nat hook postrouting priority 100", [f'oifname "{UPLINK}" masquerade']),
    )


def host_rules() -> str:
    """Return the host's rules about all routers.

    They name interfaces, not addresses, so that they also hold for addresses that the host gets later.  The
    first chain comes before any translation of addresses: a port that a container engine publishes on the
    host's address is the host's.
    """
    link = f'"{HOST_LINKS}*"'
    incoming = [
        f"iifname {link} meta nfproto ipv6 drop",
        f"iifname {link} fib daddr type != unicast drop",
    ]
    forward = [
        f"iifname {link} oifname {link} drop",
        f"oifname {link} ct state established,related accept",
        f"oifname {link} drop",
    ]
    return _table(
        "job_console",
        _chain("prerouting", "filter hook prerouting priority -150", incoming),
        _chain("input", "filter hook input priority 0", [f"iifname {link} drop"]),
        _chain("forward", "filter hook forward priority 0", forward),
        _chain("postrouting", "nat hook postrouting priority 100", [f"iifname {link} masquerade"]),
    )


def _egress(rules: Iterable[str]) -> Iterator[str]:
    way = f'iifname "v*" oifname "{UPLINK}"'
    for rule in rules:
        if rule == INTERNET:
            yield f"{way} accept"
        else:
            yield f"{way} {EgressRule.parse(rule).as_match()} accept"


def _format_set(networks: Iterable[IPv4Network]) -> str:
    """Return a set of networks; nft takes none that overlap."""
    return f"{{ {', '.join(map(str, ipaddress.collapse_addresses(networks)))} }}"


def _table(name: str, *chains: str) -> str:
    """Return a table that replaces the former one of that name in one step."""
    return f"table inet {name} {{\n}}\ndelete table inet {name}\ntable inet {name} {{\n{''.join(chains)}}}\n"


def _chain(name: str, hook: str, rules: Iterable[str], *, policy: str = "accept") -> str:
    lines = "".join(f"    {rule}\n" for rule in rules)
    return f"  chain {name} {{\n    type {hook}; policy {policy};\n{lines}  }}\n"

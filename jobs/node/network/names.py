"""Names of an attempt's replicas in its own network, and the files by which programs look them up.

`<JOB_NAME>-<role>-<index>` is the name by which DLC's page has workers reach each other; it is each replica's
host name.  `<role>-<index>` is short for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from jobs.node.network.rules import SERVICE
from jobs.node.supervisor.plan import Plan, PlannedReplica, address_of

MOST_BYTES: Final = 63
"""Of a label of a host name (RFC 1035)."""

LOCALHOST: Final = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"

_UNSAFE: Final = re.compile(r"[^a-z0-9-]+")


def host_name(plan: Plan, place: PlannedReplica) -> str:
    """Return the name of a replica: `<JOB_NAME>-<role>-<index>`, in lower case and of safe characters."""
    return join_name(plan.job, _labels(plan)[place.ordinal], place.index)


def find_addresses(plan: Plan) -> dict[str, str]:
    """Return the address of every name in the attempt's own network; none in the host's."""
    found: dict[str, str] = {}
    for address, names in _entries(plan):
        for name in names:
            found.setdefault(name, address)
    return found


def hosts_text(plan: Plan) -> str:
    """Return the content of `/etc/hosts`."""
    return LOCALHOST + "".join(f"{address}\t{' '.join(names)}\n" for address, names in _entries(plan))


def resolver_text() -> str:
    """Return the content of `/etc/resolv.conf`."""
    return f"nameserver {SERVICE}\n"


def _entries(plan: Plan) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the address of each replica with its long and its short name."""
    if plan.network is None:
        return
    labels = _labels(plan)
    for place in plan.replicas():
        label = labels[place.ordinal]
        names = join_name(plan.job, label, place.index), join_name("", label, place.index)
        yield address_of(plan.network, place.position), names


def label_roles(roles: Iterable[str]) -> list[str]:
    """Return what stands for each role in a name; a later role whose label is taken gets its number too."""
    labels: list[str] = []
    for ordinal, name in enumerate(roles):
        label = _UNSAFE.sub("-", name.lower()).strip("-")
        while not label or label in labels:
            label = f"{label}-{ordinal}".strip("-")
        labels.append(label)
    return labels


def join_name(job: str, label: str, index: int) -> str:
    """Join the parts, and cut the role's so that the index is always there."""
    begin, end = f"{job}-" if job else "", f"-{index}"
    return begin + label[: max(1, MOST_BYTES - len(begin) - len(end))] + end


def _labels(plan: Plan) -> list[str]:
    return label_roles(role.name for role in plan.roles)

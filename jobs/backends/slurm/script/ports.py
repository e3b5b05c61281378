"""The ports of a job's replicas.

All replicas have to know them before any of them runs, so the script chooses them at its start: derived from
Slurm's number for the job, or others where something listens on the replica's node already.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from jobs.backends import fixed_ports
from jobs.node.wrapper.environment import IMPLICIT_PORTS
from jobs.spec import Port, RoleSpec

STRIDE: Final = 32
"""Jobs with consecutive numbers have so many ports each before they overlap."""


@dataclass(frozen=True, slots=True)
class NumberedPort:
    """One port of every replica of a role: the requested number or 0, and its position in the role."""

    label: str
    at: int
    position: int


def ports_of(role: RoleSpec) -> tuple[NumberedPort, ...]:
    """Return all ports of a replica of the role, the implicit ones first."""
    labels = {port.label for port in role.ports}
    wanted = [*(Port(label=label) for label in IMPLICIT_PORTS if label not in labels), *role.ports]
    each = fixed_ports.number_each(wanted)
    return tuple(NumberedPort(label, at, position) for position, (label, at) in enumerate(each))


def offsets(roles: tuple[RoleSpec, ...]) -> Iterator[int]:
    """Yield the number of ports before each role's."""
    taken = 0
    for role in roles:
        yield taken
        taken += role.replicas * len(ports_of(role))


def port_number(span: tuple[int, int], job: int, which: int) -> int:
    """Return the number of one of the job's ports."""
    first, last = span
    return first + (job * STRIDE + which) % (last - first + 1)

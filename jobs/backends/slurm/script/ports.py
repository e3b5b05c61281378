"""Which ports a job's replicas use.

They are to be known to all replicas before any of them runs, so the script chooses them at its start: worked
out from Slurm's number for the job, and others where something listens there on the replica's node already.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from jobs.spec import Port, TaskRole

IMPLICIT: Final = ("http", "ssh")
"""Every replica has these even if its role asks for none (OpenPAI v0.14)."""

STRIDE: Final = 32
"""Jobs with numbers beside each other have so many ports each before they meet."""


@dataclass(frozen=True, slots=True)
class Numbered:
    """One port of every replica of a role: the number that was asked for, or 0; which of the role's it is."""

    label: str
    at: int
    position: int


def of_role(role: TaskRole) -> tuple[Numbered, ...]:
    """All ports of one replica of the role, those that it always has first."""
    labels = {port.label for port in role.ports}
    wanted = [*(Port(label=label) for label in IMPLICIT if label not in labels), *role.ports]
    each = [
        (port.label, port.begin_at + more if port.begin_at else 0)
        for port in wanted
        for more in range(port.count)
    ]
    return tuple(Numbered(label, at, position) for position, (label, at) in enumerate(each))


def offsets(roles: tuple[TaskRole, ...]) -> Iterator[int]:
    """With which of the job's ports each role begins."""
    taken = 0
    for role in roles:
        yield taken
        taken += role.replicas * len(of_role(role))


def number(span: tuple[int, int], job: int, which: int) -> int:
    """The number of one of the job's ports."""
    first, last = span
    return first + (job * STRIDE + which) % (last - first + 1)


def in_shell(which: str) -> str:
    """The same, as the script has chosen it; `which` is an arithmetic expression of the shell's."""
    return f"${{ports[{which}]}}"

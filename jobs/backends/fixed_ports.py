"""Fixed ports of a job whose replicas share one machine.

A fixed port moves on by its count for each replica, as OpenPAI's runtime has it.  There each replica is on a
node of its own, so that labels with neighbouring ports never meet; on one machine they would, and a replica
then gets the next ports that no replica of its job has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

from jobs.spec import Port, RoleSpec

LAST: Final = 65_535

Begins = Mapping[tuple[int, int], Mapping[str, int]]
"""(number of the role, number of the replica) → label → its first port."""


def assign(roles: Sequence[RoleSpec]) -> Begins:
    """Return where the fixed ports of each replica begin; the first replicas of the roles choose first."""
    fixed = [
        (index, number, port)
        for number, role in enumerate(roles)
        for port in role.ports
        if port.begin_at
        for index in range(role.replicas)
    ]
    taken: set[int] = set()
    found: dict[tuple[int, int], dict[str, int]] = {}
    for index, number, port in sorted(fixed, key=lambda each: each[0] > 0):
        begin = _free(port, first_port(port, index), taken)
        taken.update(range(begin, begin + port.count))
        found.setdefault((number, index), {})[port.label] = begin
    return found


def first_port(port: Port, index: int) -> int:
    """Return where the port of a replica begins on a node of its own."""
    return port.begin_at + index * port.count


def number_each(ports: Iterable[Port]) -> list[tuple[str, int]]:
    """Return the label of each single port and its number for the first replica, 0 for any."""
    return [
        (port.label, port.begin_at + more if port.begin_at else 0)
        for port in ports
        for more in range(port.count)
    ]


def find_moved_label(roles: Sequence[RoleSpec]) -> str:
    """Return the label of the first port that is not where it would be on a node of its own; "" for none."""
    for (number, index), begins in assign(roles).items():
        for port in roles[number].ports:
            if port.begin_at and begins[port.label] != first_port(port, index):
                return port.label
    return ""


def _free(port: Port, wanted: int, taken: set[int]) -> int:
    """Return the first of the wanted ports, or of the next ones that the job does not use."""
    least = range(1, LAST - port.count + 2)
    for begin in chain(range(wanted, least.stop), range(min(wanted, least.stop) - 1, 0, -1)):
        if taken.isdisjoint(range(begin, begin + port.count)):
            return begin
    return wanted

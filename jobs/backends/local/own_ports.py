"""Ports of a job whose replicas have a network of their own: each of them has every port to itself.

Fixed ports are therefore the same for all replicas of a role, as its job file says them, and so are the
others, which count from the start of the cluster's range.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Final

from jobs.backends import fixed_ports
from jobs.backends.local.port_allocator import NoPortFree
from jobs.dialects.dlc import conditions
from jobs.node.wrapper.environment import LONGEST
from jobs.spec import JobSpec, Port, RoleSpec

CUSTOM_PORTS: Final = "CUSTOM_PORTS"

_LEAST_FREE: Final = 1024
"""A job's user can't listen below."""

_MOST_CUSTOM: Final = LONGEST // len("65535;")
"""More ports don't fit into a variable."""

Ports = Mapping[str, tuple[int, ...]]


def assign(role: RoleSpec, implicit: Iterable[Port], span: tuple[int, int], taken: Iterable[int]) -> Ports:
    """Return the ports of each replica of the role, by label; `taken` are not chosen.  Raises NoPortFree."""
    fixed = fixed_ports.assign([role.model_copy(update={"replicas": 1})]).get((0, 0), {})
    found: dict[str, tuple[int, ...]] = {}
    for port in role.ports:
        if port.begin_at:
            found[port.label] = tuple(range(fixed[port.label], fixed[port.label] + port.count))
    free = _free(span, {*taken, *chain.from_iterable(found.values())})
    for port in (*role.ports, *implicit):
        if port.label not in found:
            found[port.label] = tuple(islice(free, port.count))
            if len(found[port.label]) < port.count:
                raise NoPortFree
    return {port.label: found[port.label] for port in (*role.ports, *implicit)}


def custom_ports(spec: JobSpec, span: tuple[int, int], taken: Iterable[int]) -> dict[str, str]:
    """Return the variable with the ports that `customPortList` or `customPortNumPerWorker` request, if any.

    All ports of a replica are open to its job; a number of them only has to be chosen.
    """
    ports = listed_ports(spec)
    ports = ports or list(islice(_free(span, {*taken}), conditions.count_requested_ports(spec)))
    return {CUSTOM_PORTS: ";".join(map(str, ports[:_MOST_CUSTOM]))} if ports else {}


def listed_ports(spec: JobSpec) -> list[int]:
    """Return the ports of `customPortList`, which are not chosen for anything else."""
    return list(islice(conditions.list_requested_ports(spec), fixed_ports.LAST))


def _free(span: tuple[int, int], taken: set[int]) -> Iterator[int]:
    """Yield free ports, from the start of the range upwards, and after the last one those below."""
    ports = chain(range(span[0], fixed_ports.LAST + 1), range(_LEAST_FREE, span[0]))
    return (port for port in ports if port not in taken)

"""A job as its framework sees it: roles, and where their replicas are reached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

LEADERS: Final = ("master", "chief", "launcher", "head")
"""Names of the role with rank 0: DLC's and Kubeflow's, and Ray's head."""

WEB: Final = "http"
SHELL: Final = "ssh"
"""Labels of the ports that every replica has."""

_DIGITS: Final = 6


class Amounts(Protocol):
    """The amounts of each replica of a role."""

    @property
    def cpu_milli(self) -> int: ...
    @property
    def memory_mib(self) -> int: ...
    @property
    def shm_mib(self) -> int: ...
    @property
    def gpus(self) -> int: ...


class Role(Protocol):
    """A role of a `Spec`."""

    @property
    def name(self) -> str: ...
    @property
    def replicas(self) -> int: ...
    @property
    def command(self) -> str: ...
    @property
    def resources(self) -> Amounts: ...


class SanityOptions(Protocol):
    """Whether the job's nodes are checked before it starts, and with which arguments."""

    @property
    def enabled(self) -> bool: ...
    @property
    def arguments(self) -> str: ...


class Spec(Protocol):
    """A job as its file describes it (`jobs.spec.JobSpec`)."""

    @property
    def framework(self) -> str | None: ...
    @property
    def roles(self) -> Sequence[Role]: ...
    @property
    def framework_options(self) -> Mapping[str, str]: ...
    @property
    def sanity_check(self) -> SanityOptions: ...


class Endpoints(Protocol):
    """Addresses and ports of replicas: values, or expressions of a script that knows them when it runs."""

    def address(self, role: int, index: int) -> str:
        """Return the address of a replica of the role at that position."""

    def port(self, role: int, index: int, label: str) -> str:
        """Return the replica's first port with a label."""


@dataclass(frozen=True, slots=True)
class FrameworkRole:
    """One role: its replicas, the processes of each, and how many may fail (None: all of them).

    `restarts` is how often its processes are started again by themselves, None where the job does not say.
    """

    name: str
    replicas: int
    processes: str
    tolerated: int | None = 0
    restarts: int | None = None


@dataclass(frozen=True, slots=True)
class FrameworkJob:
    """One job: `framework` is a value of `jobs.spec.Framework`.

    `checks_nodes` tells whether its replicas check their nodes together before they start.
    """

    framework: str | None
    id: str
    roles: tuple[FrameworkRole, ...]
    endpoints: Endpoints
    checks_nodes: bool = False

    @property
    def replicas(self) -> int:
        """Return the number of replicas of all roles."""
        return sum(role.replicas for role in self.roles)

    @property
    def leader(self) -> int:
        """Return the position of the role with rank 0."""
        return find_leader(role.name for role in self.roles)

    def count_before(self, position: int) -> int:
        """Return the number of replicas with lower ranks than those of the role at a position."""
        leader = self.leader
        if position == leader:
            return 0
        ahead = self.roles[leader].replicas if leader > position else 0
        return ahead + sum(role.replicas for role in self.roles[:position])

    def list_addresses(self, position: int) -> list[str]:
        """Return `address:port` of each replica of the role at a position."""
        found, indexes = self.endpoints, range(self.roles[position].replicas)
        return [f"{found.address(position, index)}:{found.port(position, index, WEB)}" for index in indexes]

    @property
    def master_address(self) -> str:
        """Return the address of the replica with rank 0."""
        return self.endpoints.address(self.leader, 0)

    def master_port(self, label: str = WEB) -> str:
        """Return a port of the replica with rank 0."""
        return self.endpoints.port(self.leader, 0, label)


def find_leader(names: Iterable[str]) -> int:
    """Return the position of the role with rank 0: a leader by its name, else the first (DLC page)."""
    lower = [name.lower() for name in names]
    return next((lower.index(name) for name in LEADERS if name in lower), 0)


def count_tolerated(replicas: int, min_failed: int | None) -> int | None:
    """Return how many replicas of a role may fail; None for all of them."""
    return None if min_failed is None else min(min_failed - 1, replicas)


def count_processes(gpus: int, env: Mapping[str, str]) -> str:
    """Return the number of processes of a replica: one for each GPU, unless the job file has another.

    A script of Slurm's has it unquoted, so that any other text than a number is left out.
    """
    wanted = env.get("NPROC_PER_NODE", "")
    is_number = wanted.isascii() and wanted.isdigit() and len(wanted) < _DIGITS
    return wanted if is_number else str(max(1, gpus))

"""The plan of an attempt: its commands and its share of the machine.  It makes the attempt exist.

Everything the supervisor and the wrappers need, in plain dataclasses, because they start in
milliseconds and pydantic doesn't.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, Final, Self

from jobs.node import files
from jobs.node.staging.mount_specs import CodeSpec, DataMoverRuntime, DataSpec, MountSpec, PackageSpec
from jobs.node.supervisor.layout import (
    FORMAT,
    FORMAT_WITH_COMPANIONS,
    FORMAT_WITH_CONTAINERS,
    FORMAT_WITH_DATA,
    FORMAT_WITH_NETWORK,
    FORMAT_WITH_NODE_CHECKS,
    FORMAT_WITH_PROVISIONS,
    FORMAT_WITH_REPLICA_RESTARTS,
    FORMAT_WITH_RESTARTS,
    FORMAT_WITH_SOURCES,
    FORMAT_WITH_TREES,
    PLAN,
    folder_name,
)

PROVISIONS: Final = ("bounds", "codes", "packages")
"""What a plan may say since FORMAT_WITH_PROVISIONS."""

CARRIED: Final = ("datas", "tools", "cache")
"""What a plan may say since FORMAT_WITH_DATA."""

LIMITS: Final = ("log_mib", "log_mib_s", "keep_free_mib", "work_mib", "most_ports", "port_range")
"""What of its house lies in a file of its own, `layout.LIMITS`: earlier releases run the plan without."""

_FIRST_REPLICA: Final = 2
"""Where replicas' addresses begin in their range: the first one names the network, the second one nobody."""

SOURCES: Final = {"codes": ("submodules", "is_code_dir"), "datas": ("is_code",)}
"""Fields that parts of a plan may have since FORMAT_WITH_SOURCES."""

COMPANIONS: Final = ("tensorboard",)
"""What a plan may say since FORMAT_WITH_COMPANIONS."""

CONTAINERS: Final = ("init_containers", "sidecars")
"""Fields that roles may have since FORMAT_WITH_CONTAINERS."""

RESTARTS: Final = ("restarts",)
"""Fields that roles may have since FORMAT_WITH_RESTARTS."""

NODE_CHECKS: Final = ("checks_nodes",)
"""What a plan may say since FORMAT_WITH_NODE_CHECKS."""

REPLICA_RESTARTS: Final = ("restarts_replicas",)
"""What a plan may say since FORMAT_WITH_REPLICA_RESTARTS."""

_FORMATS: Final = (
    FORMAT,
    FORMAT_WITH_PROVISIONS,
    FORMAT_WITH_TREES,
    FORMAT_WITH_DATA,
    FORMAT_WITH_NETWORK,
    FORMAT_WITH_SOURCES,
    FORMAT_WITH_COMPANIONS,
    FORMAT_WITH_CONTAINERS,
    FORMAT_WITH_NODE_CHECKS,
    FORMAT_WITH_RESTARTS,
    FORMAT_WITH_REPLICA_RESTARTS,
)


class UnknownFormat(Exception):
    """Written by a release that this one does not understand."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One replica's share: GPU indexes, ports by label, and the cores that it is pinned to (() for any).

    `host` is the address of its node, where replicas are on several.
    """

    gpus: tuple[int, ...] = ()
    ports: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    cores: tuple[int, ...] = ()
    host: str = ""

    @classmethod
    def load(cls, value: Mapping[str, Any]) -> Self:
        """Read it from JSON; earlier releases wrote no cores."""
        ports = {label: tuple(ports) for label, ports in value["ports"].items()}
        return cls(tuple(value["gpus"]), ports, tuple(value.get("cores", ())), value.get("host", ""))


@dataclass(frozen=True, slots=True)
class Counts:
    """When a role decides the job (`jobs.spec.CompletionPolicy`)."""

    min_failed: int | None = 1
    min_succeeded: int | None = None


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """A container of a replica besides its main one (`jobs.spec.PodContainer`).

    `name` is safe in file names and log lines.  `folder` is its working directory in the job.
    """

    name: str
    image: str
    command: tuple[str, ...]
    args: tuple[str, ...]
    folder: str
    env: Mapping[str, str]

    @classmethod
    def load(cls, value: Mapping[str, Any]) -> Self:
        """Read it from JSON."""
        return cls(**{**value, "command": tuple(value["command"]), "args": tuple(value["args"])})


@dataclass(frozen=True, slots=True)
class Role:
    """A role.  `labels` are the ports it asked for; the slots may hold more than those.

    `disk_mib` bounds a replica's own folders (0: they have no bound of their own).  `restarts` is how often
    the processes of a replica may be started again; None where the job says no number.
    """

    name: str
    command: str
    image: str
    cpu_milli: int
    memory_mib: int
    shm_mib: int
    gpus: int
    env: Mapping[str, str]
    completion: Counts
    labels: tuple[str, ...]
    slots: tuple[Slot, ...]
    disk_mib: int = 0
    init_containers: tuple[ContainerPlan, ...] = ()
    sidecars: tuple[ContainerPlan, ...] = ()
    restarts: int | None = None

    @property
    def replicas(self) -> int:
        """How many replicas it has."""
        return len(self.slots)

    @classmethod
    def load(cls, value: Mapping[str, Any]) -> Self:
        """Read it from JSON."""
        slots = map(Slot.load, value["slots"])
        counts = Counts(**value["completion"])
        containers = {name: tuple(map(ContainerPlan.load, value.get(name, ()))) for name in CONTAINERS}
        labels = tuple(value["labels"])
        return cls(**{**value, **containers, "completion": counts, "labels": labels, "slots": tuple(slots)})


@dataclass(frozen=True, slots=True)
class EndWarning:
    """A signal sent some seconds before the time limit."""

    signal: str
    seconds_before: int


@dataclass(frozen=True, slots=True)
class MachineSettings:
    """Settings of this machine for jobs; the same for all replicas.

    `isolation` is a value of `isolation.Isolation`; `hide` and `show` are folders that a job can't or
    can see; `limits` is `auto` or `watchdog`; `engine` is what a container engine's command line begins
    with, empty where there is none; `gpu_devices` says that GPUs are real ones.  A replica's log grows to
    `log_mib`, by `log_mib_s` a second, and only while the disk has `keep_free_mib`; its own folders have
    `work_mib`, and it listens on `most_ports` of the `port_range` beside its own (0: no limit).
    """

    node: str
    host_ip: str
    isolation: str
    hide: tuple[str, ...]
    show: tuple[str, ...]
    path: str
    limits: str
    pids: int
    engine: tuple[str, ...] = ()
    gpu_devices: bool = False
    bell: str = ""
    log_mib: int = 0
    log_mib_s: int = 0
    keep_free_mib: int = 0
    work_mib: int = 0
    most_ports: int = 0
    port_range: tuple[int, ...] = ()

    @classmethod
    def load(cls, value: Mapping[str, Any]) -> Self:
        """Read it from JSON."""
        lists = {name: tuple(value.get(name, ())) for name in ("hide", "show", "engine", "port_range")}
        return cls(**{**value, **lists})


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    """The network of an attempt whose replicas don't share the host's.

    `addresses` is the range of its replicas (`10.66.0.0/16`), `uplink` the host side's address of its way
    out ("" where `pasta` makes one).  `egress` says where replicas may connect to: () nowhere,
    (`internet`,), or `192.0.2.0/24:443` and the like.
    """

    addresses: str
    uplink: str
    egress: tuple[str, ...]

    @classmethod
    def load(cls, value: Mapping[str, Any]) -> Self:
        """Read it from JSON."""
        return cls(**{**value, "egress": tuple(value["egress"])})


@dataclass(frozen=True, slots=True)
class TensorBoardPlan:
    """TensorBoard beside the replica at `position`, over the folder `path` of the job.

    `command` is for a shell.  `has_own`: the console's own can be used where the job has none (`Plan.tools`).
    """

    position: int
    path: str
    command: str
    has_own: bool


def address_of(network: NetworkPlan, position: int) -> str:
    """Return the address of the replica at a position of the plan; raises IndexError beyond the range."""
    inner = _parse_range(network.addresses)
    if position >= inner.num_addresses - _FIRST_REPLICA - 1:
        raise IndexError(position)
    return str(inner[position + _FIRST_REPLICA])


@lru_cache(maxsize=16)
def _parse_range(addresses: str) -> IPv4Network:
    return IPv4Network(addresses)


@dataclass(frozen=True, slots=True)
class Plan:
    """One attempt.  Times are seconds; `boot` is the boot it was planned in; `locations` are the job's
    data, output and code places; `bounds` are laid into every replica, and some of them
    filled with `codes` and `datas`, by `tools`; `packages` are installed; `cache` is the person's folder for
    what was fetched before; `network` is None in the host's network; `checks_nodes` says that its commands
    begin with the sanity check; with `restarts_replicas` a failed replica waits for an order whether it is
    started again.  What is secret is not in here.
    """

    key: str
    job: str
    attempt: int
    name: str
    user: str
    uid: int
    gid: int
    virtual_cluster: str
    framework: str | None
    created_at: float
    boot: str
    env: Mapping[str, str]
    locations: Mapping[str, str]
    time_limit_s: int | None
    warned: EndWarning | None
    grace_s: int
    keep_failed_s: int
    house: MachineSettings
    roles: tuple[Role, ...]
    bounds: tuple[MountSpec, ...] = ()
    codes: tuple[CodeSpec, ...] = ()
    packages: PackageSpec | None = None
    datas: tuple[DataSpec, ...] = ()
    tools: DataMoverRuntime | None = None
    cache: str = ""
    network: NetworkPlan | None = None
    tensorboard: TensorBoardPlan | None = None
    checks_nodes: bool = False
    restarts_replicas: bool = False

    @classmethod
    def load(cls, value: Mapping[str, Any], limits: Mapping[str, Any] | None = None) -> Self:
        """Read it from JSON, with what `limits` gave; raises UnknownFormat."""
        rest = dict(value)
        if rest.pop("format", None) not in _FORMATS:
            raise UnknownFormat(value.get("format"))
        rest["house"] = MachineSettings.load({**rest["house"], **(limits or {})})
        rest["roles"] = tuple(Role.load(role) for role in rest["roles"])
        rest["warned"] = rest["warned"] and EndWarning(**rest["warned"])
        rest["bounds"] = tuple(MountSpec.load(bound) for bound in rest.get("bounds", ()))
        rest["packages"] = PackageSpec.load(rest["packages"]) if rest.get("packages") else None
        rest["codes"] = tuple(CodeSpec(**code) for code in rest.get("codes", ()))
        rest["datas"] = tuple(DataSpec.load(data) for data in rest.get("datas", ()))
        rest["tools"] = DataMoverRuntime(**rest["tools"]) if rest.get("tools") else None
        rest["network"] = NetworkPlan.load(rest["network"]) if rest.get("network") else None
        rest["tensorboard"] = TensorBoardPlan(**rest["tensorboard"]) if rest.get("tensorboard") else None
        return cls(**rest)

    @classmethod
    def read(cls, attempt: Path) -> Self | None:
        """Read the plan of the attempt at a path; None when there is none; raises UnknownFormat."""
        value = files.read(attempt / PLAN)
        return cls.load(value) if value else None

    def dump(self) -> dict[str, Any]:
        """Return it as JSON, in the oldest format that knows everything in it."""
        value = asdict(self)
        since = (*PROVISIONS, *CARRIED, "network", *COMPANIONS, *NODE_CHECKS, *REPLICA_RESTARTS)
        more = {name: value.pop(name) for name in since}
        wanted = {name: said for name, said in more.items() if said}
        needs = {
            FORMAT_WITH_PROVISIONS: bool(wanted),
            FORMAT_WITH_TREES: any(code.tree for code in self.codes),
            FORMAT_WITH_DATA: any(name in wanted for name in CARRIED),
            FORMAT_WITH_NETWORK: self.network is not None,
            FORMAT_WITH_SOURCES: _keep_sources(wanted),
            FORMAT_WITH_COMPANIONS: any(name in wanted for name in COMPANIONS),
            FORMAT_WITH_CONTAINERS: _keep_fields(value["roles"], CONTAINERS),
            FORMAT_WITH_NODE_CHECKS: any(name in wanted for name in NODE_CHECKS),
            FORMAT_WITH_RESTARTS: _keep_fields(value["roles"], RESTARTS),
            FORMAT_WITH_REPLICA_RESTARTS: any(name in wanted for name in REPLICA_RESTARTS),
        }
        number = max((each for each, is_needed in needs.items() if is_needed), default=FORMAT)
        for name in LIMITS:
            value["house"].pop(name)
        return {"format": number, **value, **wanted}

    def limits(self) -> dict[str, Any]:
        """Return, as JSON, what `dump` leaves out."""
        return {name: getattr(self.house, name) for name in LIMITS}

    def replicas(self) -> list[PlannedReplica]:
        """Every replica, roles in their order."""
        pairs = [
            (ordinal, index) for ordinal, role in enumerate(self.roles) for index in range(role.replicas)
        ]
        return [
            PlannedReplica(position, ordinal, index, role, folder_name(role.name, ordinal, index))
            for position, (ordinal, index) in enumerate(pairs)
            for role in (self.roles[ordinal],)
        ]

    def address(self, position: int) -> str:
        """Return the address at which the others reach a replica: its own, or the host's."""
        if self.network:
            return address_of(self.network, position)
        return self._slot(position).host or self.house.host_ip

    def _slot(self, position: int) -> Slot:
        """Return a replica's slot without making all replicas: each asks for the addresses of all others."""
        for role in self.roles:
            if position < role.replicas:
                return role.slots[position]
            position -= role.replicas
        raise IndexError

    def replica(self, role: str, index: int) -> PlannedReplica | None:
        """Return a replica by its role's name and its index there; None when there is no such one."""
        return next((one for one in self.replicas() if (one.role.name, one.index) == (role, index)), None)


def _keep_sources(wanted: Mapping[str, Any]) -> bool:
    """Remove the fields of FORMAT_WITH_SOURCES that say nothing; tell whether one is left."""
    is_new = False
    for part, names in SOURCES.items():
        for each in wanted.get(part) or ():
            for name in names:
                is_new |= bool(each[name])
                if not each[name]:
                    del each[name]
    return is_new


def _keep_fields(roles: Sequence[dict[str, Any]], names: Sequence[str]) -> bool:
    """Remove those fields of roles that say nothing; tell whether one is left."""
    is_new = False
    for role in roles:
        for name in names:
            is_said = role[name] not in ((), None)
            is_new |= is_said
            if not is_said:
                del role[name]
    return is_new


@dataclass(frozen=True, slots=True)
class PlannedReplica:
    """One replica of a plan: its position among all, the role's ordinal, its index in the role, and its
    name in file names.
    """

    position: int
    ordinal: int
    index: int
    role: Role
    name: str

    @property
    def slot(self) -> Slot:
        """Return its share of the machine."""
        return self.role.slots[self.index]

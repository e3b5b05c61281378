"""Settings of a cluster that is this machine; what each of them means stands in `labels`."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic.dataclasses import dataclass

from jobs.backends.base import Unreachable
from jobs.backends.local import machine
from jobs.backends.settings import (
    FROZEN,
    InvalidSettings,
    Namenodes,
    Natural,
    Positive,
    SettingProblem,
    Settings,
    Switch,
    check_ports,
    invalid,
)
from jobs.backends.staging import remotes, software
from jobs.backends.staging.code_sources import CodeRules, RegisteredCode
from jobs.backends.staging.mounts import MountSettings
from jobs.facilities import HOST_NETWORK, OWN_NETWORK, Facilities
from jobs.node.sandbox import engine
from jobs.node.sandbox.engine import Detection
from jobs.node.sandbox.folders import Folders, SharedFolderRule
from jobs.node.sandbox.isolation import Isolation

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_PRIVATE: Final = tuple(
    IPv4Network(each) for each in ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16")
)
"""Addresses that nobody has on the internet (RFC 1918, RFC 6598)."""

_LONGEST_PREFIX: Final = 24
"""A smaller range has no addresses for 64 jobs at a time."""


def _read_folders(folders: object) -> object:
    """Return the folders that a JSON object names."""
    if not isinstance(folders, Mapping):
        return folders
    for path, rights in folders.items():
        if not isinstance(rights, Mapping):
            raise invalid("no_folder", path=path)
    try:
        return tuple(SharedFolderRule.from_settings(path, rights) for path, rights in folders.items())
    except (TypeError, ValueError):
        raise invalid("no_folder", path=", ".join(folders)) from None


def _check_range(value: str) -> str:
    """Refuse what is no private IPv4 network that is large enough, written with its first address."""
    try:
        network = IPv4Network(value)
    except ValueError:
        raise invalid("no_range", value=value) from None
    if network.prefixlen > _LONGEST_PREFIX or not any(map(network.subnet_of, _PRIVATE)):
        raise invalid("no_range", value=value)
    return str(network)


AddressRange = Annotated[str, AfterValidator(_check_range)]
NamedFolders = Annotated[
    tuple[SharedFolderRule, ...],
    BeforeValidator(_read_folders, json_schema_input_type=dict[str, dict[str, Any]]),
]


@dataclass(frozen=True, slots=True, kw_only=True, config=FROZEN)
class LocalConfig(Settings):
    """How jobs run on this machine.

    `root` is where attempts live, and `hide` is what no job may see (the console's home).  `bell` is a file
    whose time changes whenever a job changes.  While the disk of `root` has less than `disk_floor_mib` free
    no attempt is accepted, and below half of it what running jobs write is cut short; 0 asks for nothing.
    Where a console `has_several_hosts`, none of them is a cluster: the others know nothing of its jobs.
    """

    CONSOLE: ClassVar[Mapping[str, str]] = {
        "disk_floor_mib": "CONSOLE_DISK_FLOOR_MIB",
        "has_several_hosts": "CONSOLE_HAS_SEVERAL_HOSTS",
    }
    OVERLAY: ClassVar[str] = "CONSOLE_LOCAL"
    tries_assets: ClassVar[bool] = True

    root: Path
    hide: Path
    bell: Path | None = None
    disk_floor_mib: Natural = 0
    has_several_hosts: bool = False
    cpu_milli: Positive | None = None
    memory_mib: Positive | None = None
    gpus: dict[str, Natural] | None = None
    allow_plain: Switch = False
    engine: Literal["auto", "podman", "docker", "none"] = "auto"
    engine_options: tuple[str, ...] = ()
    isolation: Annotated[Isolation | None, BeforeValidator(lambda value: value or None)] = None
    network: Literal["", "own", "host"] = ""
    job_range: AddressRange = "10.66.0.0/16"
    uplink_range: AddressRange = "10.67.0.0/16"
    limits: Literal["auto", "watchdog"] = "auto"
    pids: Positive = 16_384
    log_mib: Natural = 10_240
    log_mib_s: Natural = 20
    work_mib: Natural = 0
    ports: Annotated[tuple[int, int], check_ports(1)] = (20000, 29999)
    most_ports: Natural = 256
    show: tuple[Path, ...] = ()
    folders: NamedFolders = ()
    file_system: Annotated[str, AfterValidator(lambda value: value and os.path.realpath(value))] = ""
    homes: Annotated[str, AfterValidator(lambda value: value and os.path.realpath(value))] = ""
    code_from: tuple[str, ...] = ()
    code_sources: dict[str, RegisteredCode] = Field(default_factory=dict)
    code_mib: Natural = 2048
    data_from: tuple[str, ...] = ()
    data_inside: tuple[str, ...] = ()
    hdfs: Namenodes = Field(default_factory=dict)
    data_mib: Natural = 51_200
    cache_mib: Natural = 20_480
    prepare_s: Positive = 1800
    path: str = PATH
    python: str = sys.executable
    uid_base: Natural = 200_000
    node: str = platform.node()
    host_ip: str = "127.0.0.1"

    @classmethod
    def from_settings(cls, home: Path, settings: Mapping[str, Any]) -> Self:
        """Return the configuration for a cluster's settings and the console's home."""
        own = {"root": home / "jobs", "hide": home, "bell": home / "run" / "local.bell"}
        return cls(**{**settings, **own})

    @model_validator(mode="after")
    def _check_hosts(self) -> Self:
        if self.has_several_hosts:
            raise invalid("several_hosts")
        return self

    @model_validator(mode="after")
    def _check_ranges(self) -> Self:
        """Refuse ranges of which no router could tell the addresses apart."""
        if IPv4Network(self.job_range).overlaps(IPv4Network(self.uplink_range)):
            raise InvalidSettings(SettingProblem("uplink_range", "overlap", {"other": self.job_range}))
        return self

    def exposures(self) -> frozenset[str]:
        """Return what jobs could do here; some only where one of them shares the network of the machine."""
        isolation = self.found_isolation()
        by_isolation = {Isolation.NONE: {"files"}, Isolation.NAMESPACES: {"groups"}}
        own = self.has_own_network(isolation) and self.has_own_network(isolation, self.find_engine().command)
        return frozenset(by_isolation.get(isolation, set()) | (set() if own else {"sign-ins"}))

    def find_engine(self) -> Detection:
        """Return the container engine of this machine."""
        return engine.detect(self.engine, self.engine_options)

    def found_isolation(self) -> Isolation:
        """Return what stands between the jobs and everything else here."""
        return self.isolation or machine.detect_isolation(self.python)

    def has_own_network(self, isolation: Isolation, engine_command: Sequence[str] = ()) -> bool:
        """Tell whether a job's replicas get a network of their own.

        Of container engines only root's podman can join one.
        """
        can_join = not engine_command or (engine_command[0] == "podman" and isolation is Isolation.PERSONS)
        return self.network != HOST_NETWORK and can_join and not machine.network_lacks(isolation, self.python)

    def network_lacks(self) -> tuple[str, ...]:
        """Return nothing where an admin has chosen the machine's network."""
        return (
            () if self.network == HOST_NETWORK else machine.network_lacks(self.found_isolation(), self.python)
        )

    def check_network(self, isolation: Isolation) -> None:
        """Raise Unreachable where jobs have to have networks of their own, and can't."""
        lacking = machine.network_lacks(isolation, self.python) if self.network == OWN_NETWORK else ()
        if lacking:
            raise Unreachable(f"network is own, but this machine lacks {', '.join(lacking)}.")

    def network_of(self, isolation: Isolation, engine_command: Sequence[str] = ()) -> str:
        """Return the network of a job, as `Facilities` has it."""
        if self.has_own_network(isolation, engine_command):
            return OWN_NETWORK
        return HOST_NETWORK if self.network == HOST_NETWORK else ""

    def user_ids(self, last: int) -> range:
        """Return those of people, where each has one."""
        if self.found_isolation() is not Isolation.PERSONS:
            return range(0)
        return range(self.uid_base + 1, self.uid_base + last + 1)

    def uid_of(self, number: int, isolation: Isolation) -> int:
        """Return the user id under which a person's jobs run."""
        return self.uid_base + number if isolation is Isolation.PERSONS else os.geteuid()

    def mount_settings(self) -> MountSettings:
        """Return the settings about locations outside the job."""
        folders = Folders(self.folders, (str(self.hide),))
        code_bytes = self.code_mib << 20
        named = (*self.data_from, *self.hdfs.values())
        inside = (*self.data_inside, *remotes.named_hosts(named))
        data = remotes.DataRules(self.data_from, inside, self.data_mib << 20, self.cache_mib << 20, self.hdfs)
        return MountSettings(
            folders, self.file_system, self.prepare_s, self.root, code_bytes, data, self.homes
        )

    def cache_of(self, number: int) -> str:
        """Return the folder for data that a person's jobs have fetched; '' where nothing is kept."""
        return str(self.root.parent / "cache" / str(number)) if self.cache_mib else ""

    def code(self) -> CodeRules:
        """Return the settings about code that is fetched."""
        return CodeRules(self.code_from, self.code_sources, self.code_mib << 20, self.prepare_s, self.path)

    def facilities(self, found: Detection) -> Facilities:
        """Return the facilities of this machine, with the container engine that was found."""
        isolation = self.found_isolation()
        network = self.network_of(isolation)
        return Facilities(
            images=bool(found.command),
            engines=found.states,
            plain=self.allow_plain,
            modules=software.has_modules(),
            folders=self.mount_settings().folders.shared_folders(),
            data=(*self.data_from, *self.hdfs),
            code=self.code_from,
            code_ids=tuple(self.code_sources),
            file_system=self.file_system,
            one_machine=network != OWN_NETWORK,
            network=network,
            image_network=self.network_of(isolation, found.command),
            network_lacks=self.network_lacks(),
            hdfs=tuple(self.hdfs),
            roles=True,
        )

    def total(self) -> machine.Total:
        """Return the resources of this machine that jobs may use."""
        return machine.total(self.cpu_milli, self.memory_mib, self.gpus)


CONFIG: Final = LocalConfig

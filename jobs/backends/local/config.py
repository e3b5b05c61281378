"""What an admin may say about this machine."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from jobs.backends.local import machine
from jobs.backends.staging import remotes, software
from jobs.backends.staging.coding import Registered, Rules
from jobs.backends.staging.places import Dataset, Known
from jobs.facilities import Facilities
from jobs.node.sandbox import engine
from jobs.node.sandbox.folders import Folders, Named
from jobs.node.sandbox.isolation import Isolation

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class LocalConfig:
    """How jobs run on this machine.

    `root` is where attempts live; `hide` is what no job may see (the console's home), and `show` are
    folders that jobs may see and use although they lie in a hidden or read-only place.

    `cpu_milli`, `memory_mib` and `gpus` (`{"TITANX": 2}`) override what the machine has.  `allow_plain`
    runs a job that names an image as plain processes where there is no container engine; it is marked
    so.  `ports` is the range to choose from.  Person number n has the user id `uid_base` + n.  `bell` is
    a file whose time changes whenever a job changes.

    `folders` are those of this machine that jobs may mount, `datasets` the ids by which job files call them,
    and `file_system` is the folder that stands for OpenPAI's default file system.  `code_from` are the
    addresses from which code may be fetched, `code_sources` the ids by which job files call code,
    `code_mib` its largest size, `prepare_s` the longest time that a step before the command may take.
    `data_from` are the addresses from which data may be fetched, at most `data_mib` at a place, and
    `data_inside` the hosts in this network that may be spoken to for it; `cache_mib` are kept for a person.

    A replica's log has at most `log_mib`, and `log_mib_s` a second for long, its own
    folders `work_mib`, and it listens on `most_ports` of the range beside those that it was given; 0 is no
    limit.
    While the disk of `root` has less than `disk_floor_mib` free no attempt is accepted, and below half of it
    what running jobs write is cut short; 0 asks for nothing.

    `isolation` None takes the best that works; `limits` is `auto` or `watchdog`; `engine` is `auto`,
    `podman`, `docker` or `none`, and `engine_options` go before its subcommands.
    """

    root: Path
    hide: Path
    show: tuple[Path, ...] = ()
    cpu_milli: int | None = None
    memory_mib: int | None = None
    gpus: Mapping[str, int] | None = None
    allow_plain: bool = False
    node: str = platform.node()
    host_ip: str = "127.0.0.1"
    ports: tuple[int, int] = (20000, 29999)
    uid_base: int = 200_000
    pids: int = 16_384
    path: str = PATH
    bell: Path | None = None
    isolation: Isolation | None = None
    limits: str = "auto"
    engine: str = "auto"
    engine_options: tuple[str, ...] = ()
    folders: tuple[Named, ...] = ()
    datasets: Mapping[str, Dataset] = field(default_factory=dict)
    file_system: str = ""
    code_from: tuple[str, ...] = ()
    code_sources: Mapping[str, Registered] = field(default_factory=dict)
    code_mib: int = 2048
    data_from: tuple[str, ...] = ()
    data_inside: tuple[str, ...] = ()
    data_mib: int = 51_200
    cache_mib: int = 20_480
    prepare_s: int = 1800
    log_mib: int = 10_240
    log_mib_s: int = 20
    work_mib: int = 0
    most_ports: int = 256
    disk_floor_mib: int = 0
    python: str = sys.executable

    @classmethod
    def from_settings(cls, home: Path, settings: Mapping[str, Any]) -> LocalConfig:
        """From the console's home and a cluster's settings, which name the fields above.

        TypeError for a name that is none of them, ValueError for a value that makes no sense.
        """
        values = dict(settings)
        if "ports" in values:
            values["ports"] = tuple(values["ports"])
        values["engine_options"] = tuple(values.get("engine_options", ()))
        values["show"] = tuple(Path(path) for path in values.get("show", ()))
        folders: Mapping[str, Any] = values.get("folders", {})
        values["folders"] = tuple(Named.from_settings(path, said) for path, said in folders.items())
        datasets: Mapping[str, Any] = values.get("datasets", {})
        values["datasets"] = {name: Dataset.from_settings(said) for name, said in datasets.items()}
        sources: Mapping[str, Any] = values.get("code_sources", {})
        values["code_sources"] = {name: Registered(**said) for name, said in sources.items()}
        for name in ("code_from", "data_from", "data_inside"):
            if isinstance(values.get(name), str):
                raise TypeError(f"{name} is a list of addresses")
            values[name] = tuple(values.get(name, ()))
        if values.get("file_system"):
            values["file_system"] = os.path.realpath(values["file_system"])
        if values.get("isolation"):
            values["isolation"] = Isolation(values["isolation"])
        return cls(root=home / "jobs", hide=home, bell=home / "run" / "local.bell", **values)

    def uid_of(self, number: int, isolation: Isolation) -> int:
        """The user id under which a person's jobs run."""
        return self.uid_base + number if isolation is Isolation.PERSONS else os.geteuid()

    def places(self) -> Known:
        """What is said about places outside the job."""
        folders = Folders(self.folders, (str(self.hide),))
        code_bytes = self.code_mib << 20
        inside = (*self.data_inside, *remotes.named_hosts(self.data_from))
        data = remotes.Rules(self.data_from, inside, self.data_mib << 20, self.cache_mib << 20)
        return Known(folders, self.datasets, self.file_system, self.prepare_s, self.root, code_bytes, data)

    def cache_of(self, number: int) -> str:
        """The folder for what the person's jobs have fetched; '' where nothing is kept."""
        return str(self.root.parent / "cache" / str(number)) if self.cache_mib else ""

    def code(self) -> Rules:
        """What is said about code that is fetched."""
        return Rules(self.code_from, self.code_sources, self.code_mib << 20, self.prepare_s, self.path)

    def facilities(self, engines: Mapping[str, str]) -> Facilities:
        """What jobs find here; `engines` are the states of container engines (`engine.Detection`)."""
        return Facilities(
            images=engine.USED in engines.values(),
            engines=engines,
            plain=self.allow_plain,
            modules=software.has_modules(),
            folders=self.places().folders.shared(),
            data=self.data_from,
            datasets=tuple(self.datasets),
            code=self.code_from,
            code_ids=tuple(self.code_sources),
            file_system=self.file_system,
            one_machine=True,
        )

    def total(self) -> machine.Total:
        """What jobs may use of this machine."""
        return machine.total(self.cpu_milli, self.memory_mib, self.gpus)

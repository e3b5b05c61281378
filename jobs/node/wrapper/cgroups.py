"""Limits that the kernel holds for a replica's whole tree: cgroup v1, or v2 where it was delegated.

CPU is a quota, not a weight: a replica gets what it asked for, no more, as on Kubernetes.
"""

from __future__ import annotations

import contextlib
import os
import select
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Self

from jobs.node.wrapper import device_program

_PARENT: Final = "job-console"
_PERIOD_US: Final = 100_000
_LEAST_QUOTA_US: Final = 1_000
_CONTROLLERS: Final = ("memory", "cpu", "pids")
_DEVICES: Final = "devices"
"""Version 1 alone has this one; version 2 takes a program instead (`device_program`)."""
_TERMINALS: Final[Sequence[device_program.Rule]] = ((5, 2), (136, None))


@dataclass(frozen=True, slots=True)
class GroupLimits:
    """Amounts that a replica may use, and the paths of the only devices; None for all."""

    cpu_milli: int
    memory_mib: int
    pids: int
    devices: Sequence[str] | None = None

    @property
    def memory(self) -> int:
        """In bytes."""
        return self.memory_mib << 20

    @property
    def quota_us(self) -> int:
        """CPU time in each period of 100 ms."""
        return max(_LEAST_QUOTA_US, self.cpu_milli * _PERIOD_US // 1000)


@dataclass(frozen=True, slots=True)
class Hierarchies:
    """Folders in which groups can be made: one for v2, one for each controller for v1."""

    unified: Path | None
    by_controller: dict[str, Path]
    devices: Path | None = None

    def folders(self, name: str) -> list[Path]:
        """The folders of the group called `name`."""
        parents = [self.unified] if self.unified else list(dict.fromkeys(self.by_controller.values()))
        return [parent / name for parent in parents]


class ControlGroup:
    """One replica's groups, and the kernel's word when it ran out of memory.

    `enter` is called by a child before it runs the command, wherever it sees itself by then.  `files` are the
    descriptors that another process may use as its own group, once it has received them.
    """

    def __init__(self, files: Sequence[int], *, v2: bool) -> None:
        self.files, self.v2 = tuple(files), v2
        self._counts, self._alarm, *self._doors = files

    @classmethod
    def make(cls, places: Hierarchies, name: str, amounts: GroupLimits) -> Self:
        """Make the groups, with these limits."""
        folders = places.folders(name)
        rules = None if amounts.devices is None else [*_TERMINALS, *_rules(amounts.devices)]
        permits = places.devices / name if places.devices and rules is not None else None
        folders += [permits] if permits else []
        for folder in folders:
            folder.mkdir(exist_ok=True)
        doors = [os.open(folder / "cgroup.procs", os.O_WRONLY) for folder in folders]
        if places.unified is not None:
            alarm = counts = _limit_v2(folders[0], amounts)
            if rules is not None and device_program.is_usable():
                device_program.attach(folders[0], rules)
        else:
            by_controller = {controller: path / name for controller, path in places.by_controller.items()}
            counts, alarm = _limit_v1(by_controller, amounts)
        if permits:
            _permit_devices(permits, rules or ())
        return cls([counts, alarm, *doors], v2=places.unified is not None)

    def enter(self) -> None:
        """Bring the calling process in; its children will be born inside."""
        for door in self._doors:
            os.write(door, b"0")

    def register(self, poll: select.poll) -> int:
        """Have `poll` wake up when memory runs out; answers the descriptor that it will name."""
        poll.register(self._alarm, select.POLLPRI if self.v2 else select.POLLIN)
        return self._alarm

    def out_of_memory(self) -> bool:
        """Tell whether the kernel has ended something in here for want of memory, or is about to."""
        if not self.v2:
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self._alarm)
                return True
        counter = "oom_kill"
        for line in os.pread(self._counts, 4096, 0).decode().splitlines():
            name, _, value = line.partition(" ")
            if name == counter:
                return int(value) > 0
        return False


def _limit_v1(folders: dict[str, Path], amounts: GroupLimits) -> tuple[int, int]:
    """Limit a group; return the descriptors of its counts and of its alarm."""
    memory, cpu, pids = folders["memory"], folders["cpu"], folders["pids"]
    _write_value(memory / "memory.limit_in_bytes", amounts.memory)
    with contextlib.suppress(OSError):  # a kernel that does not account for swap
        _write_value(memory / "memory.memsw.limit_in_bytes", amounts.memory)
    _write_value(cpu / "cpu.cfs_period_us", _PERIOD_US)
    _write_value(cpu / "cpu.cfs_quota_us", amounts.quota_us)
    _write_value(pids / "pids.max", amounts.pids)
    counts = os.open(memory / "memory.oom_control", os.O_RDONLY)
    alarm = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
    (memory / "cgroup.event_control").write_text(f"{alarm} {counts}", encoding="utf-8")
    return counts, alarm


def _limit_v2(folder: Path, amounts: GroupLimits) -> int:
    """Limit a group; return the descriptor of its counts, which is its alarm too."""
    _write_value(folder / "memory.max", amounts.memory)
    with contextlib.suppress(OSError):  # a kernel that does not account for swap
        _write_value(folder / "memory.swap.max", 0)
    _write_value(folder / "memory.oom.group", 1)
    (folder / "cpu.max").write_text(f"{amounts.quota_us} {_PERIOD_US}", encoding="utf-8")
    _write_value(folder / "pids.max", amounts.pids)
    return os.open(folder / "memory.events", os.O_RDONLY)


def _permit_devices(folder: Path, rules: Iterable[device_program.Rule]) -> None:
    (folder / "devices.deny").write_text("a", encoding="utf-8")
    for major, minor in rules:
        rule = f"c {major}:{'*' if minor is None else minor} rw"
        (folder / "devices.allow").write_text(rule, encoding="utf-8")


def _rules(paths: Iterable[str]) -> Iterator[device_program.Rule]:
    """Yield the numbers of devices: in the group no other can be opened, by whatever path."""
    for path in paths:
        below = Path(path).iterdir() if Path(path).is_dir() else (Path(path),)
        for node in below:
            found = node.stat()
            if stat.S_ISCHR(found.st_mode):
                yield os.major(found.st_rdev), os.minor(found.st_rdev)


def from_the_top() -> str:
    """Return the path of replicas' groups from the top of every hierarchy; '' when it is not one path."""
    places = usable()
    if places is None:
        return ""
    tops = [mount / _PARENT for mount in dict(_mounts()).values()]
    used = [places.unified] if places.unified else list(places.by_controller.values())
    return f"/{_PARENT}" if all(place in tops for place in used) else ""


def members(places: Hierarchies, name: str) -> set[int]:
    """The processes in a replica's groups, those of groups below them included."""
    found: set[int] = set()
    for folder in places.folders(name):
        for path in folder.rglob("cgroup.procs"):
            with contextlib.suppress(OSError):
                found.update(int(line) for line in path.read_text(encoding="utf-8").split())
    return found


def open_process_lists(pid: int) -> list[int]:
    """Descriptors of the groups that a process is in: whoever writes `0` to each is in them too.

    OSError where there is one that this process may not put anybody into.
    """
    mounts = dict(_mounts())
    of_pid = _groups_of(str(pid))
    return [
        os.open(mount / of_pid[word].lstrip("/") / "cgroup.procs", os.O_WRONLY)
        for controller, mount in mounts.items()
        if (word := "" if controller == "unified" else controller) in of_pid
        and (controller != "unified" or (mount / "cgroup.controllers").exists())
    ]


def remove(places: Hierarchies, name: str) -> None:
    """Remove a replica's empty groups, also those a container engine made; absent is fine."""
    everywhere = (mount / _PARENT / name for mount in dict(_mounts(of_any=True)).values())
    for folder in {*places.folders(name), *everywhere}:
        for below in [*sorted(folder.rglob("*/"), reverse=True), folder]:
            with contextlib.suppress(OSError):
                below.rmdir()


@cache
def usable() -> Hierarchies | None:
    """Return where this process can make groups with all limits; None where it can't."""
    mounts = dict(_mounts())
    own = _groups_of("self")
    by_controller: dict[str, Path] = {}
    for controller in _CONTROLLERS:
        place = _place_v1(mounts[controller], own.get(controller, "/")) if controller in mounts else None
        if place is None:
            break
        by_controller[controller] = place
    else:
        permits = mounts.get(_DEVICES)
        devices = permits and _place_v1(permits, own.get(_DEVICES, "/"))
        return Hierarchies(None, by_controller, devices)
    unified = _place_v2(mounts["unified"], own.get("", "/")) if "unified" in mounts else None
    return Hierarchies(unified, {}) if unified else None


def _mounts(*, of_any: bool = False) -> Iterator[tuple[str, Path]]:
    """Controller (or `unified`) → where its hierarchy is mounted; ours and devices, or those `of_any`."""
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        where = Path(before.split(" ")[4])
        if kind == "cgroup2":
            yield "unified", where
        elif kind == "cgroup":
            for option in options.split(","):
                if of_any or option in (*_CONTROLLERS, _DEVICES):
                    yield option, where


def _groups_of(pid: str) -> dict[str, str]:
    """Controller ('' for v2) → the group that the process is in."""
    found = {}
    for line in Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            found[controller] = path
    return found


def _place_v1(mount: Path, own: str) -> Path | None:
    """As near to the top as we may: there the console's own limits and end don't reach the jobs."""
    return next(
        filter(None, (_make_folder(parent / _PARENT) for parent in (mount, mount / own.lstrip("/")))), None
    )


def _place_v2(mount: Path, own: str) -> Path | None:
    """The topmost group that has the controllers for its children and lets us make some."""
    parts = Path(own.lstrip("/")).parts
    for depth in range(len(parts) + 1):
        parent = mount.joinpath(*parts[:depth])
        if not set(_CONTROLLERS) <= _words(parent / "cgroup.subtree_control"):
            continue
        place = _make_folder(parent / _PARENT)
        if place is not None and _hand_down(place):
            return place
    return None


def _hand_down(place: Path) -> bool:
    """Let the groups below `place` have the controllers."""
    try:
        wanted = " ".join(f"+{controller}" for controller in _CONTROLLERS)
        (place / "cgroup.subtree_control").write_text(wanted, encoding="utf-8")
    except OSError:
        return False
    return True


def _make_folder(place: Path) -> Path | None:
    """`place`, if it is there and groups can be made in it."""
    try:
        place.mkdir(exist_ok=True)
        probe = place / f"probe-{os.getpid()}"
        probe.mkdir()
        probe.rmdir()
    except OSError:
        return None
    return place


def _words(path: Path) -> set[str]:
    try:
        return set(path.read_text(encoding="utf-8").split())
    except OSError:
        return set()


def _write_value(path: Path, value: int) -> None:
    path.write_text(str(value), encoding="utf-8")

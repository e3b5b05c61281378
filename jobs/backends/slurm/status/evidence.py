"""What a job's own script wrote down: how far each replica is, and how it ended."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

from jobs.backends.slurm.script import layout, ports
from jobs.states import Replica, State, TaskState, Verdict, verdict

FORMAT: Final = 1
_REMEMBERED: Final = 16_384
_PID: Final = re.compile(r"[1-9][0-9]{0,9}")


class UnknownFormat(ValueError):
    """It was written by a release that this one does not understand."""


@dataclass(frozen=True, slots=True)
class Counts:
    """When a role decides the job."""

    min_failed: int | None
    min_succeeded: int | None


@dataclass(frozen=True, slots=True)
class Role:
    """A role as its job was sent; `states.verdict` counts by it."""

    name: str
    prefix: str
    replicas: int
    completion: Counts
    memory_mib: int
    image: bool
    contained: bool
    offset: int
    each: int
    ports: tuple[tuple[str, int, int], ...]

    def numbers(self, span: tuple[int, int], job: int, index: int) -> Iterator[tuple[str, int, int]]:
        """The ports that were asked for, of one replica: label, number, and which of the job's it is.

        Where something listens already the script chooses another number, and writes that down.
        """
        for label, at, position in self.ports:
            which = self.offset + index * self.each + position
            yield label, at or ports.number(span, job, which), which


@dataclass(frozen=True, slots=True)
class Kept:
    """What was written down when the job was sent; `user` is as whom it runs, unless as the console, `apart`
    whether its nodes share no folder with it.
    """

    roles: tuple[Role, ...]
    ports: tuple[int, int]
    time_limit_s: int | None = None
    user: str = ""
    apart: bool = False

    def replicas(self) -> Iterator[tuple[Role, int, str]]:
        """Every replica: role, index, name in files."""
        for role in self.roles:
            for index in range(role.replicas):
                yield role, index, f"{role.prefix}-{index}"


@dataclass(frozen=True, slots=True)
class End:
    """How a replica ended: `how` is `itself`, `told`, `lost` for one that could not say so, or what kept its
    command from being started, as `detail` says.
    """

    code: int
    at: float
    how: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is written about one run."""

    begun: bool = False
    steps: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    started: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    ends: Mapping[str, End] = field(default_factory=dict)
    hosts: Mapping[str, str] = field(default_factory=dict)
    ports: tuple[int, ...] = ()
    taken: frozenset[int] = frozenset()
    ending: str = ""
    over: bool = False
    ended_at: float | None = None


def kept(folder: Path) -> Kept | None:
    """What was written down of the attempt in `folder`; None when there is no such attempt."""
    try:
        found = (folder / "job.json").stat()
        return _kept(str(folder), found.st_ino, found.st_mtime_ns)
    except (FileNotFoundError, NotADirectoryError):
        return None


@lru_cache(maxsize=_REMEMBERED)
def _kept(folder: str, _inode: int, _mtime_ns: int) -> Kept:
    value = json.loads(Path(folder, "job.json").read_text(encoding="utf-8"))
    if value["format"] != FORMAT:
        raise UnknownFormat(value["format"])
    first, last = value["ports"]
    roles = tuple(_role(each) for each in value["roles"])
    return Kept(
        roles, (first, last), value.get("time_limit_s"), value.get("user", ""), value.get("apart", False)
    )


def of_run(folder: Path, run: int) -> Evidence:
    """What is written about a run of the attempt in `folder`."""
    place = folder / layout.run_folder(run)
    try:
        there = {path.name for path in place.iterdir()}
    except (FileNotFoundError, NotADirectoryError):
        return Evidence()
    ended_at = _words(place / "end") if "end" in there else []
    ending = _words(place / "ending") if "ending" in there else []
    return Evidence(
        begun=True,
        steps=dict(_steps(place / "steps")),
        started=dict(_started(place / "started")),
        ends=dict(_ends(place / "ends")),
        hosts=dict(_hosts(place / "hosts")) if "hosts" in there else {},
        ports=tuple(map(int, _words(place / "ports"))) if "ports" in there else (),
        taken=frozenset(map(int, _words(place / "taken"))) if "taken" in there else frozenset(),
        ending=ending[0] if ending else "",
        over="end" in there,
        ended_at=float(ended_at[0]) if ended_at else None,
    )


def process(folder: Path, run: int, name: str) -> tuple[str, int] | None:
    """A replica's node, and the number of its process there; None while it has not started, once it has
    ended, and where its job has written something else in its place.
    """
    place = folder / layout.run_folder(run)
    words = (layout.text(place / "started" / name) or "").split()
    if len(words) != 3 or not _PID.fullmatch(words[2]) or layout.text(place / "ends" / name) is not None:
        return None
    return words[0], int(words[2])


def last_run(folder: Path) -> int:
    """The number of the latest run that wrote anything, 1 when none did."""
    names = [path.name.removeprefix("run-") for path in folder.glob("run-*")]
    return max((int(name) for name in names if name.isdigit()), default=1)


def decided(kept_: Kept, found: Evidence) -> tuple[Verdict, str]:
    """What the ends say about the job, and the replica (its name in files) whose end decided it.

    They are looked at one after the other, as they happened; those that were told to end decide nothing.
    """
    names = {name: (role.name, index) for role, index, name in kept_.replicas()}
    ordered = sorted((end.at, name) for name, end in found.ends.items() if name in names)
    seen: list[Replica] = []
    for _at, name in ordered:
        end = found.ends[name]
        seen.append(Replica(*names[name], state_of(end)))
        judged = verdict(kept_.roles, seen)
        if judged.state is not None:
            return judged, name
    return Verdict(None, None, 0, len(names)), ""


def state_of(end: End) -> TaskState:
    """What an end is called."""
    if end.how == "told":
        return TaskState.STOPPED
    return TaskState.FAILED if end.code else TaskState.SUCCEEDED


def job_state(judged: Verdict) -> State:
    """How the job ended, by its replicas."""
    return judged.state or State.FAILED


def _role(value: Mapping[str, object]) -> Role:
    fields = {"contained": False, **value}
    counts = Counts(fields.pop("min_failed"), fields.pop("min_succeeded"))  # type: ignore[arg-type]
    listed = fields.pop("ports")
    assert isinstance(listed, list)
    return Role(**fields, completion=counts, ports=tuple(tuple(each) for each in listed))  # type: ignore[arg-type]


def _started(place: Path) -> Iterator[tuple[str, tuple[str, float]]]:
    for name in _names(place):
        words = _words(place / name)
        if len(words) >= 2:
            yield name, (words[0], float(words[1]))


def _steps(place: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    """What is being done before a replica's command, and with what."""
    for name in _names(place):
        step, _space, about = (layout.text(place / name) or "").strip().partition(" ")
        if step:
            yield name, (step, about)


def _ends(place: Path) -> Iterator[tuple[str, End]]:
    for name in _names(place):
        words = (layout.text(place / name) or "").strip().split(" ", 3)
        if len(words) >= 3:
            yield name, End(int(words[0]), float(words[1]), *words[2:])


def _hosts(path: Path) -> Iterator[tuple[str, str]]:
    """The node of each replica; the address beside it is for the job's own use."""
    for line in (layout.text(path) or "").splitlines():
        name, node, _address = line.split(" ", 2)
        yield name, node


def _names(place: Path) -> list[str]:
    try:
        return [path.name for path in place.iterdir() if path.suffix != ".new"]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _words(path: Path) -> list[str]:
    try:
        with layout.found(path) as file:
            return os.pread(file, layout.MOST_BYTES, 0).decode(errors="replace").split()
    except (FileNotFoundError, NotADirectoryError, layout.Unsafe):
        return []

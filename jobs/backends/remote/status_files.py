"""The files of a run: how far each replica is and how it ended, as the job's script writes it, and logs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from jobs.backends.base import LogSlice, LogState, ReplicaRef
from jobs.backends.remote import attempts
from jobs.backends.remote.records import AttemptRecord, read_record
from jobs.node.supervisor.checkpoints import Checkpoint
from jobs.states import Replica, ReplicaState, Verdict, verdict

_LONGEST_NAME: Final = 255
_PID: Final = re.compile(r"[1-9][0-9]{0,9}")


@dataclass(frozen=True, slots=True)
class ReplicaEnd:
    """How a replica ended.

    `how` is `itself`, `told`, `lost` for one that could not write its end, or what kept its command from
    being started, with `detail`.
    """

    code: int
    at: float
    how: str
    detail: str = ""

    @property
    def state(self) -> ReplicaState:
        """Return the state of the ended replica."""
        if self.how == "told":
            return ReplicaState.STOPPED
        return ReplicaState.FAILED if self.code else ReplicaState.SUCCEEDED


@dataclass(frozen=True, slots=True)
class RunStatus:
    """The status files of one run.

    `steps` has what is done before a replica's command and with what, `started` its node and time, `hosts`
    the node of each replica, `ports` the chosen ports, `taken` the positions of ports in use by others, and
    `resumed` the checkpoint that it resumes from.  `failed` has the failed starts of replicas that wait for
    an order whether there is another: their numbers and ends.
    """

    begun: bool = False
    steps: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    started: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    ends: Mapping[str, ReplicaEnd] = field(default_factory=dict)
    failed: Mapping[str, tuple[int, ReplicaEnd]] = field(default_factory=dict)
    hosts: Mapping[str, str] = field(default_factory=dict)
    ports: tuple[int, ...] = ()
    taken: frozenset[int] = frozenset()
    resumed: Checkpoint | None = None
    ending: str = ""
    over: bool = False
    ended_at: float | None = None

    @property
    def started_at(self) -> float | None:
        """Return when the first replica started."""
        return min((at for _node, at in self.started.values()), default=None)


def read_run(folder: Path, run: int) -> RunStatus:
    """Return the status files of a run of the attempt in `folder`."""
    place = folder / attempts.run_name(run)
    try:
        names = {path.name for path in place.iterdir()}
    except (FileNotFoundError, NotADirectoryError):
        return RunStatus()

    def words(name: str) -> list[str]:
        return _read(place / name).split() if name in names else []

    hosts = (line.split(" ", 2) for line in _read(place / "hosts").splitlines()) if "hosts" in names else ()
    return RunStatus(
        begun=True,
        steps={name: (parts[0], " ".join(parts[1:])) for name, parts in _files(place / "steps", 1, 1)},
        started={name: (parts[0], float(parts[1])) for name, parts in _files(place / "started", 2)},
        ends={
            name: ReplicaEnd(int(parts[0]), float(parts[1]), *parts[2:])
            for name, parts in _files(place / "ends", 3, 3)
        },
        failed={
            name: (int(parts[0]), ReplicaEnd(int(parts[1]), float(parts[2]), "itself"))
            for name, parts in _files(place / "failed", 3)
        },
        hosts={name: node for name, node, _address in hosts},
        ports=tuple(map(int, words("ports"))),
        taken=frozenset(map(int, words("taken"))),
        resumed=_checkpoint(_read(place / "resumed")) if "resumed" in names else None,
        ending=next(iter(words("ending")), ""),
        over="end" in names,
        ended_at=next(map(float, words("end")), None),
    )


def _checkpoint(text: str) -> Checkpoint | None:
    """Return the checkpoint of such a file: when it was saved, and its name."""
    saved_at, _, name = text.rstrip("\n").partition(" ")
    return Checkpoint(name[:_LONGEST_NAME], float(saved_at.replace(",", "."))) if name else None


def find_process(folder: Path, run: int, name: str) -> tuple[str, int] | None:
    """Return the node and process number of a replica.

    None while it has not started, once it has ended, and where its job has written something else there.
    """
    place = folder / attempts.run_name(run)
    words = (attempts.read_text(place / "started" / name) or "").split()
    has_ended = attempts.read_text(place / "ends" / name) is not None
    if len(words) != 3 or not _PID.fullmatch(words[2]) or has_ended:
        return None
    return words[0], int(words[2])


def last_run(folder: Path) -> int:
    """Return the number of the latest run that wrote anything, 1 when none did."""
    names = [path.name.removeprefix("run-") for path in folder.glob("run-*")]
    return max((int(name) for name in names if name.isdigit()), default=1)


def decide(record: AttemptRecord, found: RunStatus) -> tuple[Verdict, str]:
    """Return the verdict of the ends, and the replica (its name in files) whose end decided it.

    Ends count in the order in which they happened; those of replicas that were told to end decide nothing.
    """
    names = {name: (role.name, index) for role, index, name in record.replicas()}
    seen: list[Replica] = []
    for _at, name in sorted((end.at, name) for name, end in found.ends.items() if name in names):
        seen.append(Replica(*names[name], found.ends[name].state))
        judged = verdict(record.roles, seen)
        if judged.state is not None:
            return judged, name
    return Verdict(None, None, 0, len(names)), ""


def read_log(root: Path, folder: Path, replica: ReplicaRef, cursor: str, limit: int) -> LogSlice:
    """Return at most `limit` bytes from `cursor`, which is the number of bytes before it."""
    offset = int(cursor or "0")
    record = read_record(folder)
    name = record.replica_name(replica.role, replica.index) if record else None
    if name is None:
        return LogSlice(b"", cursor, LogState.GONE)
    run = folder / attempts.run_name(replica.run)
    has_ended = attempts.read_text(run / "ends" / name) is not None
    parts = (*(run / "logs").relative_to(root).parts, f"{name}.output")
    with attempts.open_beneath(root, parts) as file:
        size = os.fstat(file).st_size if file is not None else 0
        data = os.pread(file, limit, offset) if file is not None else b""
    if offset > size:
        return LogSlice(b"", str(size), LogState.TRUNCATED)
    end = offset + len(data)
    return LogSlice(data, str(end), LogState.COMPLETE if has_ended and end >= size else LogState.OPEN)


def _files(folder: Path, least: int, splits: int = -1) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and words of each file of a folder that has at least so many words."""
    try:
        names = [path.name for path in folder.iterdir() if path.suffix != ".new"]
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        words = _read(folder / name).strip().split(None if splits < 0 else " ", splits)
        if len(words) >= least and words[0]:
            yield name, words


def _read(path: Path) -> str:
    """Return the text of a file, "" if there is none."""
    try:
        with attempts.open_checked(path) as file:
            return os.pread(file, attempts.MAX_BYTES, 0).decode(errors="replace")
    except (FileNotFoundError, NotADirectoryError, PermissionError, attempts.UnsafeFile):
        return ""

"""The console's end of what couriers carry (`courier`): where nodes share no folder with it.

Each attempt has a token, which is made from a key in the console's own folder and is written down nowhere but
in the attempt's script.  Whoever has it can do for this one attempt, and until it is over, what the job could
do in a folder shared with it, and less: begin a run that has not begun, add bytes to the logs of its own
replicas where those end, put the small files there that its own script writes, and read what its own replicas
need (its secrets and code among them, which are the job's anyway) and what people ask of it.  At worst a
job lies about itself: about its output, when it began and how it ended.

It can't name any other file: names are compared with what the attempt was sent with, and no link is followed.
Nothing that was once brought over is changed: logs only grow, to `MOST_LOG`, and of what says how far the run
is (`FIRST_WINS`) the first word stays.  It can't reach another attempt, nor its own once that is over, nor
the files by which the console itself keeps track of the attempt.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from jobs.backends.slurm.relay import courier
from jobs.backends.slurm.script import layout
from jobs.backends.slurm.sessions import luggage
from jobs.backends.slurm.status import evidence
from jobs.backends.slurm.status.evidence import Kept
from jobs.node.supervisor import announced

T = TypeVar("T")

KEY: Final = ".courier-key"
OVER: Final = "over"
"""In an attempt's folder: the console has seen its end."""

GRACE_S: Final = 120.0
"""So long after that what is on its way is still taken."""

MOST_BODY: Final = 4 << 20
MOST_LOG: Final = 1 << 30
MOST_SMALL: Final = 64 << 10
MOST_OF_RUN: Final = courier.MOST
MOST_PIECES: Final = 20_000
MOST_RUNS: Final = 1000
MOST_COUNTED: Final = 10_000
OFTEN, OFTEN_OF_ONE = 20, 5
"""So often an attempt may ask in a second, in each process of the console, and so often for each replica."""

FREE: Final = 256 << 20
"""So much is left free on the console's disk."""

FIRST_WINS: Final = frozenset({"hosts", "ports", "peers", "before", "ending", "end"})
"""Of a run; and so do `started` and `ends` of each replica."""

_LATEST: Final = frozenset({"taken"})
_START_OF_RUN: Final = "start"
_NEEDED: Final = frozenset(courier.FIRST)
_BY_NODES: Final = re.compile(r"run-[1-9][0-9]{0,3}/(peers|before)")
_START: Final = re.compile(r"[0-9a-f]{16,64}")
_TREE: Final = re.compile(r"trees/[A-Za-z0-9._-]+\.tar")


class NotKnown(Exception):
    """There is no such attempt, or this is not its token."""


class Over(Exception):
    """The attempt, or this start of its run, is over."""


class Nonsense(ValueError):
    """What no courier would send."""


class Full(Exception):
    """There is no room for it now."""


class TooOften(Exception):
    """One attempt asks more often than so many couriers would."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some bytes: of a log those from `at`, else a whole file as it was at the node's time `version`."""

    name: str
    at: int
    data: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Message:
    """What a courier sends."""

    number: int
    run: int
    start: str
    claim: bool
    ends: int
    pieces: tuple[Piece, ...]


def token(root: Path, key: str) -> str:
    """The token of an attempt: always the same, so that a script that is sent again has it too."""
    path = root / KEY
    if layout.text(path) is None:
        layout.publish(path, os.urandom(32).hex(), durable=True)
    secret = layout.text(path) or ""
    return hmac.new(bytes.fromhex(secret), f"courier {key}".encode(), hashlib.sha256).hexdigest()


def receive(root: Path, key: str, given: str, body: bytes) -> dict[str, Any]:
    """Take what a courier brings, and tell what it is to take back.

    Raises NotKnown, Over, Nonsense or Full.
    """
    folder, kept = _admitted(root, key, given)
    message = _read(body)
    if message.claim:
        return {"claim": _claimed(folder, message)}
    if shutil.disk_usage(root).free < FREE:
        raise Full
    with _held(folder, message) as run:
        found = _taken(folder, run, kept, message)
    return {**found, **_homewards(root, folder, run, message)}


def offered(root: Path, key: str, given: str, name: str, at: int) -> bytes | None:
    """A piece of a file that a replica needs; None where there is no such file, nothing behind its end.

    Raises NotKnown, Over or Nonsense.
    """
    folder, _kept = _admitted(root, key, given)
    if name == f"luggage/{luggage.name()}":
        path = luggage.packed(root)
    elif name in _NEEDED or _TREE.fullmatch(name) or _BY_NODES.fullmatch(name):
        path = folder / name
    else:
        raise Nonsense(name)
    with layout.opened(root, path.relative_to(root).parts) as file:
        return None if file is None else os.pread(file, courier.PIECE, max(0, at))


def close(folder: Path) -> None:
    """The attempt is over: nothing is taken for it any more, after a while."""
    if not (folder / OVER).exists():
        with suppress(FileNotFoundError):
            layout.publish(folder / OVER, "")


def _admitted(root: Path, key: str, given: str) -> tuple[Path, Kept]:
    """The attempt that the token is for."""
    try:
        folder = layout.attempt(root, key)
    except layout.NotOurs as error:
        raise NotKnown from error
    kept = evidence.kept(folder)
    if kept is None or not kept.apart:
        raise NotKnown
    if not hmac.compare_digest(token(root, key).encode(), given.encode()):
        raise NotKnown
    with suppress(FileNotFoundError):
        if time.time() > (folder / OVER).stat().st_mtime + GRACE_S:
            raise Over
    _count_asked(key, sum(role.replicas for role in kept.roles))
    return folder, kept


_asked: Final[dict[str, tuple[int, int]]] = {}
"""Which second it is, and how often each attempt has asked in it, in this process."""


def _second() -> int:
    return int(time.monotonic())


def _count_asked(key: str, replicas: int) -> None:
    second = _second()
    at, count = _asked.get(key, (second, 0))
    if at != second:
        count = 0
        if len(_asked) > MOST_COUNTED:
            _asked.clear()
    if count >= OFTEN + OFTEN_OF_ONE * replicas:
        raise TooOften
    _asked[key] = second, count + 1


def _read(body: bytes) -> Message:
    """A message, taken apart; a line of JSON, and the bytes that it speaks of."""
    if len(body) > MOST_BODY:
        raise Nonsense("too long")
    line, _, data = body.partition(b"\n")
    try:
        said = json.loads(line)
        pieces, at = [], 0
        for name, offset, size, version in said.get("pieces", []):
            pieces.append(
                Piece(_of(str, name), _count(offset), data[at : at + _count(size)], _count(version))
            )
            at += size
        found = Message(
            _count(said["number"]),
            _count(said["run"]),
            _of(str, said["start"]),
            bool(said.get("claim", False)),
            _count(said.get("ends", 0)),
            tuple(pieces),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Nonsense(str(error)) from error
    if (
        at != len(data)
        or len(pieces) > MOST_PIECES
        or not 1 <= found.run <= MOST_RUNS
        or not _START.fullmatch(found.start)
    ):
        raise Nonsense("no message")
    return found


def _count(value: object) -> int:
    number = _of(int, value)
    if number < 0 or number >= 1 << 63:
        raise ValueError(number)
    return number


def _of(kind: type[T], value: object) -> T:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(value)
    return value


def _claimed(folder: Path, message: Message) -> str:
    """Whether this job may begin this run: `mine`, however often it asks; else why not."""
    number, run = str(message.number), folder / layout.run_folder(message.run)
    layout.publish(folder / "claim", number, durable=True)
    if (layout.text(folder / "claim") or "").strip() != number:
        return "another"
    if (folder / "rewound").exists():
        return "rewound"
    run.mkdir(mode=0o700, exist_ok=True)
    layout.publish(run / _START_OF_RUN, message.start, durable=True)
    if layout.text(run / _START_OF_RUN) != message.start:  # Slurm forgot that it had begun it
        layout.publish(folder / "rewound", f"{time.time():.3f}")
        return "rewound"
    for name in courier.FOLDERS:
        (run / name).mkdir(mode=0o700, exist_ok=True)
    return "mine"


@contextmanager
def _held(folder: Path, message: Message) -> Iterator[Path]:
    """The run that the courier is of, while no other request changes it."""
    run = folder / layout.run_folder(message.run)
    if (layout.text(folder / "claim") or "").strip() != str(message.number):
        raise Over
    try:
        file = os.open(run / _START_OF_RUN, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Over from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.pread(file, 100, 0) != message.start.encode():
            raise Over
        yield run
    finally:
        os.close(file)


def _taken(folder: Path, run: Path, kept: Kept, message: Message) -> dict[str, Any]:
    """Put everything in its place; how much of each log there is now, and which are full."""
    names = {name for _role, _index, name in kept.replicas()} if message.pieces else set()
    for piece in message.pieces:  # all of them, before the first is put anywhere
        _place(run.name, names, piece)
    sizes: dict[str, int] = {}
    full: list[str] = []
    for piece in message.pieces:
        place = _place(run.name, names, piece)
        if place == "rewound":  # when that was, the console says
            layout.publish(folder / "rewound", f"{time.time():.3f}")
            continue
        with _folder(folder, piece.name) as inside:
            path = inside / piece.name.rpartition("/")[2]
            if place == "log":
                sizes[piece.name] = size = _added(path, piece)
                if size + len(piece.data) > MOST_LOG:
                    full.append(piece.name)
            elif place == "first":
                _put(run, path, piece)
            elif not _is_later(path, piece):
                _put(run, path, piece, instead=True)
    return {"sizes": sizes, "full": full}


def _place(run: str, names: set[str], piece: Piece) -> str:
    """What a name stands for: a `log`, a file of which the `first` word stays, or the `latest`; or that Slurm
    has forgotten to have begun it (`rewound`).

    Raises Nonsense for every other name, and for what is too long.
    """
    kind, most = "", MOST_SMALL
    match piece.name.split("/"):
        case ["rewound"]:
            kind = "rewound"
        case [at, "slurm.output"] if at == run:
            kind = "log"
        case [at, "logs", name] if at == run and name.endswith(".output"):
            kind = "log" if name.removesuffix(".output") in names else ""
        case [at, name] if at == run and name in FIRST_WINS | _LATEST:
            kind, most = ("first" if name in FIRST_WINS else "latest"), MOST_OF_RUN
        case [at, "started" | "ends", name] if at == run and name in names:
            kind = "first"
        case [at, "steps", name] if at == run and name in names:
            kind = "latest"
        case [at, "doors", name] if at == run and name.removesuffix(".said") in names:
            kind = "latest"
        case [at, "work", name, announced.NAME] if at == run and name in names:
            kind = "latest"
    if not kind or (kind != "log" and (piece.at or len(piece.data) > most)):
        raise Nonsense(piece.name[:200])
    return kind


@contextmanager
def _folder(folder: Path, name: str) -> Iterator[Path]:
    """The folder that a file is to lie in, through no link."""
    parts = name.split("/")[:-1]
    if parts[1:2] == ["work"]:
        with suppress(FileExistsError):
            folder.joinpath(*parts).mkdir(mode=0o700)
    try:
        file = layout.folder(folder, parts)
    except OSError as error:
        raise Nonsense(name) from error
    try:
        yield Path(f"/proc/self/fd/{file}")
    finally:
        os.close(file)


def _added(path: Path, piece: Piece) -> int:
    """Add bytes to a log where it ends, and nowhere else; how long it is now."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Nonsense(piece.name) from error
    try:
        size = os.fstat(file).st_size
        if piece.at == size and size + len(piece.data) <= MOST_LOG:
            size += os.pwrite(file, piece.data, size)
        return size
    except OSError as error:
        raise Full from error
    finally:
        os.close(file)


def _is_later(path: Path, piece: Piece) -> bool:
    """Whether what is there was on the node as late as this, or later: it was sent first, or came first."""
    try:
        return path.lstat().st_mtime_ns >= piece.version
    except FileNotFoundError:
        return False


def _put(run: Path, path: Path, piece: Piece, *, instead: bool = False) -> None:
    """Put a file there at one instant, whole: where nothing is yet, or `instead` of what is there."""
    new = run / f".{os.urandom(8).hex()}"
    layout.publish_bytes(new, piece.data)
    try:
        if instead:
            os.utime(new, ns=(piece.version, piece.version))
            new.replace(path)
        else:
            with suppress(FileExistsError):
                os.link(new, path)
    finally:
        new.unlink(missing_ok=True)


def _homewards(root: Path, folder: Path, run: Path, message: Message) -> dict[str, Any]:
    """What a courier takes back: what people ask for, what other nodes wrote down, how to let people in."""
    texts = {"ending": layout.text(run / "ending")}
    ends = [path.name for path in (run / "ends").iterdir()]
    if len(ends) != message.ends:
        texts |= {f"ends/{name}": layout.text(run / "ends" / name) for name in ends}
    asked = ["stop", *(path.name for path in folder.glob("enter-*"))]
    if len(asked) > 1:
        asked.insert(0, "door")
    needed = (*courier.FIRST, f"{run.name}/peers", f"{run.name}/before")
    return {
        "run": _there(texts),
        "asked": _there({name: layout.text(folder / name) for name in asked}),
        "there": [name for name in needed if (folder / name).exists()],
        "luggage": luggage.name(),
    }


def _there(texts: Mapping[str, str | None]) -> dict[str, str]:
    return {name: text for name, text in texts.items() if text is not None}

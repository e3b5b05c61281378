"""Relay ingest: the console's end of the node relay, where nodes share no folder with the console.

Each attempt has a token.  It is derived from a key in the console's own folder, and written only into the
attempt's script; or the attempt makes it on its node, and the console knows its digest alone (`admit`).
Until the attempt is over, its holder can do for this one attempt what the job could do in a shared folder,
and less: begin a run that has not begun, append to the logs of its own replicas, put the small files there
that its own script writes, and read what its own replicas need (its secrets and code among them, which are
the job's anyway) and what users request of it.  At worst a job lies about itself: about its output, when it
began and how it ended.

It can't name any other file: names are compared with the attempt's record, and no link is followed.  Nothing
stored is changed: logs and event files only grow, up to a limit, and the first version of each file in
`WRITTEN_ONCE` stays. It can't reach another attempt, nor its own once that is over, nor the console's own
files about the attempt.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from jobs.backends.remote import attempts, bundle
from jobs.backends.remote.records import AttemptRecord, read_record
from jobs.node import relay
from jobs.node.frameworks import sanity
from jobs.node.supervisor import announced_ports

KEY_FILE: Final = ".courier-key"
DIGEST_FILE: Final = "token-digest"
OVER_FILE: Final = "over"
"""In an attempt's folder: the console has seen its end."""

GRACE_S: Final = 120.0
"""So long after that, files on their way are still accepted."""

MAX_BODY: Final = 4 << 20
MAX_LOG: Final = 1 << 30
MAX_EVENT_FILE: Final = 64 << 20
MAX_SMALL_FILE: Final = 64 << 10
MAX_RUN_FILE: Final = relay.MAX_FILE
MAX_PIECES: Final = 20_000
MAX_RUNS: Final = 1000
MAX_COUNTED: Final = 10_000
REQUESTS_PER_S, REQUESTS_PER_S_AND_REPLICA = 20, 5
"""Limits of an attempt's requests to each process of the console."""

MIN_FREE: Final = 256 << 20
"""So many bytes stay free on the console's disk."""

_GROWING: Final = ("log", "events")
_LONGEST_PATH: Final = 400

WRITTEN_ONCE: Final = frozenset({"hosts", "ports", "peers", "before", "ending", "end"})
"""Of a run; and so are `started` and `ends` of each replica."""

_LATEST: Final = frozenset({"taken"})
_START_OF_RUN: Final = "start"
_FROM_NODES: Final = re.compile(r"run-[1-9][0-9]{0,3}/(peers|before)")
_TREE: Final = re.compile(r"trees/[A-Za-z0-9._-]+\.tar")

Natural = Annotated[int, Field(ge=0, lt=1 << 63)]


class UnknownAttempt(Exception):
    """There is no such attempt, or this is not its token."""


class AttemptOver(Exception):
    """The attempt, or this start of its run, is over."""


class InvalidMessage(ValueError):
    """No node relay would send this."""


class NoSpace(Exception):
    """There is no space for it now."""


class NotAdmitted(Exception):
    """It is not known yet which token the attempt has made."""


class RateLimited(Exception):
    """One attempt sends more requests than so many relays would."""


@dataclass(frozen=True, slots=True)
class RelayPiece:
    """Bytes of a log from offset `at`, or a whole file of the node's time `version` (ns)."""

    name: str
    at: int
    data: bytes
    version: int


class RelayMessage(BaseModel):
    """The JSON line of a request; the bytes of its pieces (name, offset, size, version) follow it."""

    model_config = ConfigDict(strict=True, frozen=True)

    number: Natural
    run: Annotated[int, Field(ge=1, le=MAX_RUNS)]
    start: Annotated[str, Field(pattern=r"^[0-9a-f]{16,64}$")]
    claim: bool = False
    ends: Natural = 0
    pieces: Annotated[list[tuple[str, Natural, Natural, Natural]], Field(max_length=MAX_PIECES)] = []


def attempt_token(root: Path, key: str) -> str:
    """Return the token of an attempt, always the same: a script may be submitted again."""
    path = root / KEY_FILE
    if attempts.read_text(path) is None:
        attempts.create(path, os.urandom(32).hex(), durable=True)
    secret = attempts.read_text(path) or ""
    return hmac.new(bytes.fromhex(secret), f"courier {key}".encode(), hashlib.sha256).hexdigest()


def find_root(roots: Sequence[Path], key: str) -> Path:
    """Return the one of these folders that has the attempt.  Raises UnknownAttempt."""
    with suppress(attempts.InvalidKey):
        for root in roots:
            if read_record(attempts.attempt_folder(root, key)) is not None:
                return root
    raise UnknownAttempt


def admit(folder: Path, digest: str) -> None:
    """Admit who has the token with this SHA-256 digest to the attempt in `folder`; the first one counts."""
    attempts.create(folder / DIGEST_FILE, digest, durable=True)


def _expected_token(root: Path, key: str, folder: Path, record: AttemptRecord) -> bytes:
    """Return what is known of the attempt's token.  Raises NotAdmitted."""
    if not record.makes_token:
        return attempt_token(root, key).encode()
    if (digest := attempts.read_text(folder / DIGEST_FILE)) is None:
        raise NotAdmitted
    return digest.encode()


def _token_form(record: AttemptRecord, given: str) -> bytes:
    """Return a given token in the form of `_expected_token`."""
    return hashlib.sha256(given.encode()).hexdigest().encode() if record.makes_token else given.encode()


def receive(root: Path, key: str, given: str, body: bytes) -> dict[str, Any]:
    """Store what a node relay sends, and return the reply for it.

    Raises UnknownAttempt, NotAdmitted, AttemptOver, InvalidMessage, RateLimited or NoSpace.
    """
    folder, record = _authorize(root, key, given)
    message, pieces = _parse(body)
    if message.claim:
        return {"claim": _claim(folder, message)}
    if shutil.disk_usage(root).free < MIN_FREE:
        raise NoSpace
    with _locked_run(folder, message) as run:
        stored = _store(folder, run, record, pieces)
    return {**stored, **_reply(root, folder, run, message)}


def read_input(root: Path, key: str, given: str, name: str, at: int) -> bytes | None:
    """Return a chunk of a file that a replica needs: None where there is no such file, b"" behind its end.

    Raises UnknownAttempt, NotAdmitted, AttemptOver, InvalidMessage or RateLimited.
    """
    folder, _record = _authorize(root, key, given)
    if name == f"luggage/{bundle.file_name()}":
        path = bundle.publish(root)
    elif name in relay.INPUT_FILES or _TREE.fullmatch(name) or _FROM_NODES.fullmatch(name):
        path = folder / name
    else:
        raise InvalidMessage(name)
    with attempts.open_beneath(root, path.relative_to(root).parts) as file:
        return None if file is None else os.pread(file, relay.CHUNK, max(0, at))


def close_attempt(folder: Path) -> None:
    """Accept nothing for the attempt any more, after `GRACE_S`."""
    if not (folder / OVER_FILE).exists():
        with suppress(FileNotFoundError):
            attempts.create(folder / OVER_FILE, "")


def _authorize(root: Path, key: str, given: str) -> tuple[Path, AttemptRecord]:
    """Return the folder and record of the attempt if the token is its own, and count the request."""
    try:
        folder = attempts.attempt_folder(root, key)
    except attempts.InvalidKey as error:
        raise UnknownAttempt from error
    record = read_record(folder)
    if record is None or not record.apart:
        raise UnknownAttempt
    if not hmac.compare_digest(_expected_token(root, key, folder, record), _token_form(record, given)):
        raise UnknownAttempt
    with suppress(FileNotFoundError):
        if time.time() > (folder / OVER_FILE).stat().st_mtime + GRACE_S:
            raise AttemptOver
    _limit_rate(key, sum(role.replicas for role in record.roles))
    return folder, record


_request_counts: Final[dict[str, tuple[int, int]]] = {}
"""Of each attempt: a second, and its requests to this process in it."""


def _second() -> int:
    return int(time.monotonic())


def _limit_rate(key: str, replicas: int) -> None:
    second = _second()
    at, count = _request_counts.get(key, (second, 0))
    if at != second:
        count = 0
        if len(_request_counts) > MAX_COUNTED:
            _request_counts.clear()
    if count >= REQUESTS_PER_S + REQUESTS_PER_S_AND_REPLICA * replicas:
        raise RateLimited
    _request_counts[key] = second, count + 1


def _parse(body: bytes) -> tuple[RelayMessage, list[RelayPiece]]:
    """Return a request's message and pieces.  Raises InvalidMessage."""
    if len(body) > MAX_BODY:
        raise InvalidMessage("too long")
    line, _, data = body.partition(b"\n")
    try:
        message = RelayMessage.model_validate_json(line)
    except ValueError as error:
        raise InvalidMessage(str(error)) from error
    pieces, at = [], 0
    for name, offset, size, version in message.pieces:
        pieces.append(RelayPiece(name, offset, data[at : at + size], version))
        at += size
    if at != len(data):
        raise InvalidMessage("no message")
    return message, pieces


def _claim(folder: Path, message: RelayMessage) -> str:
    """Return whether this job may begin this run: `mine`, however often it asks; else why not."""
    number, run = str(message.number), folder / attempts.run_name(message.run)
    attempts.create(folder / "claim", number, durable=True)
    if (attempts.read_text(folder / "claim") or "").strip() != number:
        return "another"
    if (folder / "rewound").exists():
        return "rewound"
    run.mkdir(mode=0o700, exist_ok=True)
    attempts.create(run / _START_OF_RUN, message.start, durable=True)
    if attempts.read_text(run / _START_OF_RUN) != message.start:  # Slurm forgot that it had begun it
        attempts.create(folder / "rewound", f"{time.time():.3f}")
        return "rewound"
    for name in relay.RUN_FOLDERS:
        (run / name).mkdir(mode=0o700, exist_ok=True)
    return "mine"


@contextmanager
def _locked_run(folder: Path, message: RelayMessage) -> Iterator[Path]:
    """Lock the relay's run, so that no other request changes it, and yield its folder."""
    run = folder / attempts.run_name(message.run)
    if (attempts.read_text(folder / "claim") or "").strip() != str(message.number):
        raise AttemptOver
    try:
        file = os.open(run / _START_OF_RUN, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise AttemptOver from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.pread(file, 100, 0) != message.start.encode():
            raise AttemptOver
        yield run
    finally:
        os.close(file)


def _store(folder: Path, run: Path, record: AttemptRecord, pieces: Sequence[RelayPiece]) -> dict[str, Any]:
    """Store the pieces; return the size of each log, and which logs are full."""
    names = {name for _role, _index, name in record.replicas()} if pieces else set()
    kinds = [_classify(run.name, names, piece) for piece in pieces]  # all, before the first is stored
    sizes: dict[str, int] = {}
    full: list[str] = []
    for kind, piece in zip(kinds, pieces, strict=True):
        if kind == "rewound":  # by the console's clock
            attempts.create(folder / "rewound", f"{time.time():.3f}")
            continue
        with _open_folder(folder, piece.name) as inside:
            path = inside / piece.name.rpartition("/")[2]
            if kind in _GROWING:
                most = MAX_LOG if kind == "log" else MAX_EVENT_FILE
                if kind == "events" and not path.exists() and _has_event_files(folder, piece.name):
                    most = 0
                sizes[piece.name] = size = _append(path, piece, most) if most else piece.at
                if size + len(piece.data) > most:
                    full.append(piece.name)
            elif kind == "first" or not _is_newer(path, piece):
                _replace_file(run, path, piece, replace=kind == "latest")
    return {"sizes": sizes, "full": full}


def _classify(run: str, names: set[str], piece: RelayPiece) -> str:
    """Return how a piece is stored: as a `log`, or with the `first` or the `latest` version of its file.

    `events` is a part of an event file.  `rewound` says that Slurm has forgotten to have begun the job.
    Raises InvalidMessage for every other name, and for what is too long.
    """
    kind, most = "", MAX_SMALL_FILE
    match piece.name.split("/"):
        case ["rewound"]:
            kind = "rewound"
        case [at, "slurm.output"] if at == run:
            kind = "log"
        case [at, "logs", name] if at == run and name.endswith((".output", ".times")):
            kind = "log" if name.removesuffix(".output").removesuffix(".times") in names else ""
        case [at, name] if at == run and name in WRITTEN_ONCE | _LATEST:
            kind, most = ("first" if name in WRITTEN_ONCE else "latest"), MAX_RUN_FILE
        case [at, "started" | "ends", name] if at == run and name in names:
            kind = "first"
        case [at, "steps" | "failed", name] if at == run and name in names:
            kind = "latest"
        case [at, "doors", name] if at == run and name.removesuffix(".said") in names:
            kind = "latest"
        case [at, "work", name, *inside, file] if at == run and name in names:
            kind = _classify_work(inside, file)
    if not kind or (kind not in _GROWING and (piece.at or len(piece.data) > most)):
        raise InvalidMessage(piece.name[:200])
    return kind


def _classify_work(inside: Sequence[str], file: str) -> str:
    """Return how a file below a replica's work folder is stored, "" for not at all."""
    if not inside and file in (announced_ports.NAME, sanity.FILE):
        return "latest"
    return "events" if _is_event_file(inside, file) else ""


def _is_event_file(inside: Sequence[str], file: str) -> bool:
    """Return whether a path below a work folder is that of an event file, none of it hidden."""
    is_near = len(inside) <= relay.EVENT_DEPTH and len("/".join((*inside, file))) <= _LONGEST_PATH
    is_plain = all(name and not name.startswith(".") for name in inside)
    return is_near and is_plain and file.startswith(relay.EVENT_FILE) and file.isprintable()


def _has_event_files(folder: Path, name: str) -> bool:
    """Return whether a replica has as many event files as are stored."""
    work = folder.joinpath(*name.split("/")[:3])
    return sum(1 for _path in work.rglob(f"{relay.EVENT_FILE}*")) >= relay.EVENT_FILES


@contextmanager
def _open_folder(folder: Path, name: str) -> Iterator[Path]:
    """Open the folder of a file, following no link, and yield its path."""
    parts = name.split("/")[:-1]
    if parts[1:2] == ["work"]:
        for depth in range(3, len(parts) + 1):  # the console alone makes anything there
            with suppress(FileExistsError):
                folder.joinpath(*parts[:depth]).mkdir(mode=0o700)
    try:
        file = attempts.open_folder(folder, parts)
    except OSError as error:
        raise InvalidMessage(name) from error
    try:
        yield Path(f"/proc/self/fd/{file}")
    finally:
        os.close(file)


def _append(path: Path, piece: RelayPiece, most: int) -> int:
    """Append bytes to a file of at most so many, if it ends where they begin; return its size."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InvalidMessage(piece.name) from error
    try:
        size = os.fstat(file).st_size
        if piece.at == size and size + len(piece.data) <= most:
            size += os.pwrite(file, piece.data, size)
        return size
    except OSError as error:
        raise NoSpace from error
    finally:
        os.close(file)


def _is_newer(path: Path, piece: RelayPiece) -> bool:
    """Return whether the stored file is of the piece's time at its node, or of a later one."""
    try:
        return path.lstat().st_mtime_ns >= piece.version
    except FileNotFoundError:
        return False


def _replace_file(run: Path, path: Path, piece: RelayPiece, *, replace: bool) -> None:
    """Write a file atomically: if there is none, or in place of the one that is there."""
    new = attempts.write_temporary(run, piece.data)
    try:
        if replace:
            os.utime(new, ns=(piece.version, piece.version))
            new.replace(path)
        else:
            with suppress(FileExistsError):
                os.link(new, path)
    finally:
        new.unlink(missing_ok=True)


def _reply(root: Path, folder: Path, run: Path, message: RelayMessage) -> dict[str, Any]:
    """Return the reply: what users request, what other nodes wrote, and the node bundle's name."""
    texts = {"ending": attempts.read_text(run / "ending")}
    ends = [path.name for path in (run / "ends").iterdir()]
    if len(ends) != message.ends:
        texts |= {f"ends/{name}": attempts.read_text(run / "ends" / name) for name in ends}
    requests = ["stop", *(path.name for path in folder.glob("enter-*"))]
    if len(requests) > 1:
        requests.insert(0, "door")
    requests += [path.name for path in folder.glob(f"{attempts.RESTART}-*")]
    if (folder / relay.CREDENTIALS).exists():
        requests.append(relay.CREDENTIALS)
    needed = (*relay.INPUT_FILES, f"{run.name}/peers", f"{run.name}/before")
    return {
        "run": _present(texts),
        "asked": _present({name: attempts.read_text(folder / name) for name in requests}),
        "there": [name for name in needed if (folder / name).exists()],
        "luggage": bundle.file_name(),
    }


def _present(texts: Mapping[str, str | None]) -> dict[str, str]:
    return {name: text for name, text in texts.items() if text is not None}

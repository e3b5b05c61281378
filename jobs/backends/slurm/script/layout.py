"""Where an attempt's files lie, in the folder that the console and all nodes see.

<root>/.forgotten/<month>/<key>  keys that must never run again, with the number that each had
<root>/.left/<key>               an attempt whose folder could not be removed yet, and whose it is
<root>/.node/<digest>.pyz        what nodes need of us to let somebody in
<root>/<job id>/<attempt>/
    lock                         held by the worker that hands the attempt over
    begun                        exists = somebody began to hand it over
    job.json                     what the console needs to know to make sense of what it sees
    script                       what sbatch was given
    sent                         Slurm's number for it
    released                     exists = it was let go
    saved                        exists = Slurm has written it down
    again                        the number that it has since Slurm forgot it and it was handed over again
    doubted                      when Slurm first said that it waits although it had begun
    rewound                      since when Slurm no longer knows that it had begun
    missed                       since when neither Slurm's controller nor its accounting knows how it ended
    secrets                      values for the environment, until the end
    door                         by which a door's two sides know each other, for the node's, until the end
    door-key                     the same, with the console's own side, for the console alone
    enter-<name>                 somebody waits for a door beside that replica
    claim                        the number of the one Slurm job that may run it
    stop                         somebody asked for the end: signal, seconds of grace
    slurm.output                 what the script itself has to say
    run-<n>/                     each start by Slurm; the second is after it was requeued
        ports                    the number of each port of its replicas, in order
        taken                    which of them were taken before the job began
        peers                    what all replicas are told of each other
        started/<name>           node, time, and the number of the task's process there
        ends/<name>              exit code, time, and whether it was told to end
        ending                   since when the rest is told to end, and why
        end                      exists = every replica has ended
        doors/<name>             on which port a door is open, by which request; - for one that has closed
        logs/<name>.output       what it wrote
        work/<name>/             where it runs
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jobs.backends.base import Handle

_KEY: Final = re.compile(r"[a-z0-9]+-(?P<job>[a-z0-9]+)-(?P<attempt>[1-9][0-9]*)")
_HANDLE: Final = re.compile(r"(?P<number>[1-9][0-9]*)\.(?P<key>[a-z0-9-]+)")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._]")
_NAME_BYTES: Final = 100


_RUN: Final = re.compile(r"run-[1-9][0-9]*")

MOST_BYTES: Final = 4 << 20
"""No file that is read here is longer."""

THEIRS: Final = ("claim", "rewound", "slurm.output")
"""What a job itself writes into its attempt's folder."""


class Unsafe(OSError):
    """There is something that nobody would put there without a reason."""


class NotOurs(ValueError):
    """A key or handle that this backend can't have given out."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A handle, taken apart: Slurm's number for the job, and the attempt's key."""

    number: int
    key: str

    @classmethod
    def of(cls, handle: Handle) -> Sent:
        """Take a handle apart; NotOurs when it is none of ours."""
        match = _HANDLE.fullmatch(handle)
        if match is None or _KEY.fullmatch(match["key"]) is None:
            raise NotOurs(handle)
        return cls(int(match["number"]), match["key"])

    @property
    def handle(self) -> Handle:
        """The handle."""
        return Handle(f"{self.number}.{self.key}")


def attempt(root: Path, key: str) -> Path:
    """The folder of an attempt; NotOurs when the key is malformed."""
    match = _KEY.fullmatch(key)
    if match is None:
        raise NotOurs(key)
    return root / match["job"] / match["attempt"]


def is_key(name: str) -> bool:
    """Whether an attempt may be called so."""
    return _KEY.fullmatch(name) is not None


def prefix(role: str, ordinal: int) -> str:
    """What the names of a role's replicas begin with in files: safe, and unique whatever it is called."""
    safe = _UNSAFE.sub("_", role)[:_NAME_BYTES]
    return safe if safe == role else f"{safe}.{ordinal}"


def on_nodes(nodes_folder: str, key: str) -> Path:
    """The folder of an attempt on each of its nodes, where they share none with the console."""
    match = _KEY.fullmatch(key)
    if match is None:
        raise NotOurs(key)
    return around_on_nodes(nodes_folder, key) / f"{match['job']}-{match['attempt']}"


def around_on_nodes(nodes_folder: str, key: str) -> Path:
    """The folder around those of all attempts of one console."""
    return Path(nodes_folder) / f"job-console-{key.partition('-')[0]}"


def run_folder(run: int) -> str:
    """The folder of a run, in the attempt's."""
    return f"run-{run}"


def publish(path: Path, text: str, *, durable: bool = False) -> bool:
    """Put a file there if nothing is there yet; whether this call did it.  A durable one outlives a crash of
    the machine from then on.
    """
    return publish_bytes(path, text.encode(), durable=durable)


def publish_bytes(path: Path, data: bytes, *, durable: bool = False) -> bool:
    """The same for what is no text."""
    if not data:
        return _marked(path, durable=durable)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        temporary.unlink()
    if durable:
        _sync(path.parent)
    return True


def _marked(path: Path, *, durable: bool) -> bool:
    """The same for what is nothing but its name, which is there at one instant by itself."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return False
    if durable:
        _sync(path.parent)
    return True


def _sync(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def put(path: Path, text: str, mode: int = 0o600) -> None:
    """Put a file there, in place of what was there."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
        file.write(text)
    temporary.replace(path)


def text(path: Path) -> str | None:
    """What a small file says; None when it is not there, or is none that may be believed.

    Its folder is listed first: a network file system looks again then, and does not say from memory that
    there is no such file.
    """
    try:
        any(path.parent.iterdir())
        with found(path) as file:
            return os.pread(file, MOST_BYTES, 0).decode(errors="replace")
    except (FileNotFoundError, NotADirectoryError, PermissionError, Unsafe):
        return None


@contextmanager
def found(path: Path) -> Iterator[int]:
    """A file of an attempt, to be read.

    Where the attempt's folder is open to its person (`whom`) what lies in it may be meant to harm: a run's
    files are theirs or the console's, the others that the console writes are its own, and no link leads to
    them.  Raises FileNotFoundError or NotADirectoryError, and Unsafe.
    """
    parts = path.parts
    runs = [at for at in range(2, len(parts) - 1) if _RUN.fullmatch(parts[at]) and parts[at - 1].isdigit()]
    folder = Path(*parts[: runs[-1]]) if runs else path.parent
    if not is_shared(folder):
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    else:
        file = _beneath(folder, path.relative_to(folder).parts)
    try:
        yield file
    finally:
        os.close(file)


def is_shared(folder: Path) -> bool:
    """Whether an attempt's folder is open to its person."""
    return bool(folder.stat().st_mode & stat.S_ISVTX)


def _beneath(folder: Path, parts: tuple[str, ...]) -> int:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    trusted = {os.geteuid()}
    at = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            deeper = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = deeper
            trusted.add(os.fstat(at).st_uid)
        file = os.open(parts[-1], flags, dir_fd=at)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            raise
        raise Unsafe(str(folder.joinpath(*parts))) from error
    finally:
        os.close(at)
    seen = os.fstat(file)
    theirs = len(parts) == 1 and parts[0] in THEIRS
    if not stat.S_ISREG(seen.st_mode) or not (theirs or seen.st_uid in trusted):
        os.close(file)
        raise Unsafe(str(folder.joinpath(*parts)))
    return file


def folder(root: Path, parts: Sequence[str]) -> int:
    """A folder beneath `root`, through no link.  OSError where there is none."""
    at = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in parts:
        try:
            deeper = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
        finally:
            os.close(at)
        at = deeper
    return at


@contextmanager
def opened(root: Path, parts: tuple[str, ...]) -> Iterator[int | None]:
    """A regular file beneath `root`, through no link, of our own or of whoever has its folder; None when
    there is none.
    """
    folder: int | None = None
    file: int | None = None
    owners = {os.geteuid()}
    try:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for part in parts[:-1]:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            deeper = os.open(part, flags, dir_fd=folder)
            os.close(folder)
            folder = deeper
        owners.add(os.fstat(folder).st_uid)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        file = os.open(parts[-1], flags, dir_fd=folder)
    except OSError:
        pass
    finally:
        if folder is not None:
            os.close(folder)
    try:
        yield file if file is not None and _is_ours(file, owners) else None
    finally:
        if file is not None:
            os.close(file)


def _is_ours(file: int, owners: set[int]) -> bool:
    seen = os.fstat(file)
    return stat.S_ISREG(seen.st_mode) and seen.st_uid in owners and seen.st_nlink == 1

"""Folders of attempts: keys, paths, and files that are written atomically and read without trust.

The folder lies where the console and all nodes see it under one name; or each node has one of its own, and
the node relay copies between them (`jobs.node.relay`).

<root>/.forgotten/<month>/<key>  keys that must never run again, with the number that each had
<root>/.left/<key>               an attempt whose folder could not be removed yet, and its user
<root>/.node/<digest>.pyz        the node bundle
<root>/<job id>/checkpoints/      what the job saves for its next attempt; goes with its last one
<root>/<job id>/<attempt>/
    lock                         held by the worker that submits the attempt
    begun                        exists = its submission was begun
    job.json                     its record (`records`)
    origin.json                  what it was submitted as (`jobs.backends.origins`)
    script                       the script given to sbatch
    sent                         Slurm's number for it
    released                     exists = it was released
    saved                        exists = Slurm has written it down
    again                        its number since Slurm forgot it and it was submitted again
    doubted                      when Slurm first said that it waits although it had begun
    rewound                      since when Slurm no longer knows that it had begun
    missed                       since when neither Slurm's controller nor its accounting knows how it ended
    secrets                      values for the environment, until the end
    door                         the keys of session listeners, for the node's side, until the end
    door-key                     the same with the console's own side, for the console alone
    enter-<name>                 a request for a session listener beside that replica
    restart-<run>-<name>.<n>     whether a replica whose start number n failed is started again
    claim                        the number of the one Slurm job that may run it
    stop                         a request for its end: signal, seconds of grace
    slurm.output                 the output of the script itself
    run-<n>/                     each start by Slurm; the second is after it was requeued
        ports                    the number of each port of its replicas, in order
        taken                    which of them were taken before the job began
        resumed                  the checkpoint that it resumes from, and when that was saved
        peers                    the environment variables about all replicas
        started/<name>           node, time, and the number of the replica's process there
        failed/<name>            number, exit code and time of its failed start, until it is started again
        ends/<name>              exit code, time, and why
        ending                   why and since when the rest is told to end
        end                      exists = every replica has ended
        doors/<name>             a listener's port (- once it is closed), and the request that it answers
        logs/<name>.output       its output
        logs/<name>.times        when it came (jobs.node.wrapper.log_times)
        work/<name>/             its working folder
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_KEY: Final = re.compile(r"[a-z0-9]+-(?P<job>[a-z0-9]+)-(?P<attempt>[1-9][0-9]*)")
_RUN: Final = re.compile(r"run-[1-9][0-9]*")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._]")
_MAX_NAME: Final = 100

MAX_BYTES: Final = 4 << 20
"""No file that is read here is longer."""

RESTART: Final = "restart"
"""Begins the names of orders about failed replicas."""

WRITTEN_BY_JOB: Final = ("claim", "rewound", "slurm.output")
"""The files of an attempt's folder that the job itself writes."""

_FOLDER: Final = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class UnsafeFile(OSError):
    """The file is a link, no regular file, or of a user who should not have written it."""


class InvalidKey(ValueError):
    """A key or handle that no backend of this kind has given out."""


def attempt_folder(root: Path, key: str) -> Path:
    """Return the folder of an attempt.  Raises InvalidKey."""
    match = _parse(key)
    return root / match["job"] / match["attempt"]


def is_key(name: str) -> bool:
    """Return whether `name` can be an attempt's key."""
    return _KEY.fullmatch(name) is not None


def file_prefix(role: str, ordinal: int) -> str:
    """Return the safe and unique prefix of the names of a role's replicas in files."""
    safe = _NOT_IN_NAMES.sub("_", role)[:_MAX_NAME]
    return safe if safe == role else f"{safe}.{ordinal}"


def restart_order(run: int, name: str, failed_run: int) -> str:
    """Return the file of the order about a replica of a run whose start with that number failed."""
    return f"{RESTART}-{run}-{name}.{failed_run}"


def node_folder(nodes_folder: str, key: str) -> Path:
    """Return an attempt's folder on each of its nodes, where they share none with the console."""
    match = _parse(key)
    return node_root(nodes_folder, key) / f"{match['job']}-{match['attempt']}"


def node_root(nodes_folder: str, key: str) -> Path:
    """Return the folder on a node that holds those of all attempts of one console."""
    return Path(nodes_folder) / f"job-console-{key.partition('-')[0]}"


def run_name(run: int) -> str:
    """Return the name of a run's folder in the attempt's."""
    return f"run-{run}"


def create(path: Path, text: str, mode: int = 0o600, *, durable: bool = False) -> bool:
    """Create a file unless there is one; return whether this call did.

    A durable one outlives a crash of the machine from then on.
    """
    return create_bytes(path, text.encode(), mode, durable=durable)


def create_bytes(path: Path, data: bytes, mode: int = 0o600, *, durable: bool = False) -> bool:
    """Create a file of bytes likewise."""
    try:
        if data:
            temporary = write_temporary(path.parent, data, mode, durable=durable)
            try:
                os.link(temporary, path)
            finally:
                temporary.unlink()
        else:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode))
    except FileExistsError:
        return False
    if durable:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    return True


def first_time(path: Path) -> float:
    """Return when this was first called for a file, which holds that."""
    create(path, repr(time.time()))  # not rounded: it is compared with other times
    return float(read_text(path) or 0)


def write_text(path: Path, text: str, mode: int = 0o600) -> None:
    """Write a file atomically, in place of an earlier one."""
    write_temporary(path.parent, text.encode(), mode).replace(path)


def write_temporary(folder: Path, data: bytes, mode: int = 0o600, *, durable: bool = False) -> Path:
    """Write a new file of a random hidden name, to be linked or renamed; return its path."""
    path = folder / f".{os.getpid()}.{os.urandom(8).hex()}"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    return path


def read_text(path: Path) -> str | None:
    """Return the text of a small file; None where there is none, or none that can be trusted.

    The folder is listed first, so that a network file system does not answer from its cache that there is no
    such file.
    """
    try:
        any(path.parent.iterdir())
        with open_checked(path) as file:
            return os.pread(file, MAX_BYTES, 0).decode(errors="replace")
    except (FileNotFoundError, NotADirectoryError, PermissionError, UnsafeFile):
        return None


@contextmanager
def open_checked(path: Path) -> Iterator[int]:
    """Open a file of an attempt for reading.

    Where the attempt's folder is open to its owner (`is_open_to_owner`) what lies in it may be meant to harm:
    no link is followed, a run's files are the owner's or the console's, and other files that the console
    writes are its own.  Raises FileNotFoundError, NotADirectoryError or UnsafeFile.
    """
    parts = path.parts
    runs = [at for at in range(2, len(parts) - 1) if _RUN.fullmatch(parts[at]) and parts[at - 1].isdigit()]
    folder = Path(*parts[: runs[-1]]) if runs else path.parent
    if not is_open_to_owner(folder):
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    else:
        file = _open_trusted(folder, path.relative_to(folder).parts)
    try:
        yield file
    finally:
        os.close(file)


def is_open_to_owner(folder: Path) -> bool:
    """Return whether an attempt's folder is open to the UNIX user of its job."""
    return bool(folder.stat().st_mode & stat.S_ISVTX)


def open_folder(root: Path, parts: Sequence[str]) -> int:
    """Open a folder beneath `root`, following no link.  Raises OSError."""
    return _descend(root, parts)[0]


@contextmanager
def open_beneath(root: Path, parts: Sequence[str]) -> Iterator[int | None]:
    """Open a regular file beneath `root` of the console or its folder's owner, following no link.

    Yields None where there is none.
    """
    file = None
    try:
        file, owners = _open_file(root, parts)
    except OSError:
        owners = set()
    try:
        seen = None if file is None else os.fstat(file)
        is_safe = seen and stat.S_ISREG(seen.st_mode) and seen.st_uid in owners and seen.st_nlink == 1
        yield file if is_safe else None
    finally:
        if file is not None:
            os.close(file)


def _parse(key: str) -> re.Match[str]:
    if (match := _KEY.fullmatch(key)) is None:
        raise InvalidKey(key)
    return match


def _open_trusted(folder: Path, parts: Sequence[str]) -> int:
    try:
        file, owners = _open_file(folder, parts)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            raise
        raise UnsafeFile(str(folder.joinpath(*parts))) from error
    seen = os.fstat(file)
    is_by_job = len(parts) == 1 and parts[0] in WRITTEN_BY_JOB
    if not stat.S_ISREG(seen.st_mode) or not (is_by_job or seen.st_uid in owners):
        os.close(file)
        raise UnsafeFile(str(folder.joinpath(*parts)))
    return file


def _open_file(root: Path, parts: Sequence[str]) -> tuple[int, set[int]]:
    """Open a file beneath `root`; return it, and the owners that it may have."""
    folder, owners = _descend(root, parts[:-1])
    try:
        return os.open(parts[-1], _FILE, dir_fd=folder), owners
    finally:
        os.close(folder)


def _descend(root: Path, parts: Sequence[str]) -> tuple[int, set[int]]:
    """Open a folder beneath `root`; return it, and the owners of the folders on the way, with the console."""
    folder, owners = os.open(root, _FOLDER), {os.geteuid()}
    for part in parts:
        try:
            deeper = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
        finally:
            os.close(folder)
        folder = deeper
        owners.add(os.fstat(folder).st_uid)
    return folder, owners

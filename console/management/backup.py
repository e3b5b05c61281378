"""The file of a backup: a compressed tar archive of database, keys and stored files.

The database is copied first, so that files which it names are among those that are copied after it.  The
manifest, with a digest of each file, comes last: a file that was cut short has none.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from console.management import database_dump

FORMAT: Final = 1
OWN_FOLDERS: Final = ("keys", "tls")
"""What a backup has of CONSOLE_HOME beside the database."""

SHARED_FOLDERS: Final = ("logs", "uploads")
"""What it has of the folder that all hosts of the console see; of one host that is CONSOLE_HOME too."""

MANIFEST: Final = "manifest.json"
_BLOCK: Final = 1 << 20
_COMPRESSION: Final = 1
"""Logs and uploads are mostly compressed or barely compressible: more would cost time alone."""


class BadBackup(Exception):
    """The file can't be restored; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of a backup: `made_at` in ISO 8601, `files` with the SHA-256 of each."""

    release: str
    made_at: str
    installation: str
    migrations: Sequence[str]
    files: Mapping[str, str]
    format: int = FORMAT


@dataclass(slots=True)
class _Measured:
    """A file that is read up to its size of a moment ago; what is appended meanwhile is left out."""

    stream: IO[bytes]
    digest: Any = field(default_factory=hashlib.sha256)

    def read(self, size: int = -1) -> bytes:
        data = self.stream.read(size)
        self.digest.update(data)
        return data


def write(
    path: Path,
    home: Path,
    database: Mapping[str, Any],
    *,
    shared: Path,
    release: str,
    made_at: str,
    migrations: Sequence[str],
) -> Manifest:
    """Write a backup into the new file `path` (0600), whole or not at all.

    `database` are Django's settings of it, `shared` is the folder that all hosts see.  Raises DumpFailed, and
    OSError: FileExistsError for a taken name.
    """
    if path.exists():
        raise FileExistsError(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    files: dict[str, str] = {}
    installation = (home / "keys" / "installation").read_text(encoding="ascii").strip()
    try:
        with (
            tempfile.TemporaryDirectory(dir=home, prefix="backup-") as folder,
            open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file,  # noqa: PTH123
            tarfile.open(fileobj=file, mode="w:gz", compresslevel=_COMPRESSION) as archive,
        ):
            name = database_dump.name_of(database)
            copy = Path(folder, Path(name).name)
            database_dump.dump(database, copy)
            files[name] = _add(archive, name, copy)
            for name, source in _stored_files(home, shared):
                with suppress(FileNotFoundError):  # its job was deleted meanwhile
                    files[name] = _add(archive, name, source)
            manifest = Manifest(release, made_at, installation, tuple(migrations), files)
            data = json.dumps(asdict(manifest), indent=1).encode()
            member = tarfile.TarInfo(MANIFEST)
            member.size, member.mode = len(data), 0o600
            archive.addfile(member, io.BytesIO(data))
        os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    return manifest


def locate(home: Path, shared: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name and the parent of each folder that a backup has."""
    yield from ((name, home) for name in OWN_FOLDERS)
    yield from ((name, shared) for name in SHARED_FOLDERS)


def _stored_files(home: Path, shared: Path) -> Iterator[tuple[str, Path]]:
    for name, parent in locate(home, shared):
        for path in sorted((parent / name).rglob("*")):
            if path.is_file() and not path.is_symlink():
                yield path.relative_to(parent).as_posix(), path


def _add(archive: tarfile.TarFile, name: str, path: Path) -> str:
    """Add one file; return its digest."""
    with path.open("rb") as stream:
        seen = os.fstat(stream.fileno())
        member = tarfile.TarInfo(name)
        member.size, member.mode, member.mtime = seen.st_size, 0o600, int(seen.st_mtime)
        measured = _Measured(stream)
        archive.addfile(member, measured)
    return str(measured.digest.hexdigest())


def extract(path: Path, to: Path) -> Manifest:
    """Write the files of a backup below the folder `to`, and compare each with the manifest.

    Raises BadBackup, and OSError.
    """
    seen: dict[str, str] = {}
    manifest: Manifest | None = None
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                stream = archive.extractfile(member) if member.isreg() else None
                if stream is None or not _is_ours(member.name):
                    raise BadBackup(f"{path} is no backup: it has {member.name}.")
                if member.name == MANIFEST:
                    manifest = _parse(path, stream.read())
                else:
                    seen[member.name] = _write(to / member.name, stream, member.mtime)
    except (tarfile.TarError, EOFError, ValueError, TypeError) as problem:
        raise BadBackup(f"{path} is no whole backup: {problem}.") from problem
    if manifest is None:
        raise BadBackup(f"{path} is no whole backup: its end is missing.")
    if differing := sorted(set(seen.items()) ^ set(manifest.files.items())):
        raise BadBackup(f"{path} is damaged: {differing[0][0]} is not what was backed up.")
    return manifest


def _is_ours(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return name == MANIFEST or (
        len(parts) > 1 and parts[0] in {*OWN_FOLDERS, *SHARED_FOLDERS, "database"} and ".." not in parts
    )


def _parse(path: Path, data: bytes) -> Manifest:
    value = json.loads(data)
    if value.get("format") != FORMAT:
        raise BadBackup(f"{path} was made by another release: its format is {value.get('format')}.")
    return Manifest(**value)


def _write(path: Path, stream: IO[bytes], modified: float) -> str:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123
        while data := stream.read(_BLOCK):
            digest.update(data)
            file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.utime(path, (modified, modified))
    return digest.hexdigest()

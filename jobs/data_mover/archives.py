"""Archives of code, unpacked by the job's user: zip, and tar by itself or compressed.

No entry leads out of the folder, by its name, by a link in it, or by a link that an earlier entry made; what
is unpacked is as limited as what is fetched.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import IO, Final

SUFFIXES: Final = (".zip", ".tar.gz", ".tgz", ".tar", ".tar.bz2", ".tar.xz")
PIECE: Final = 1 << 20
MOST_ENTRIES: Final = 1_000_000

Around = Callable[[str], AbstractContextManager[tuple[int, str]]]
"""Opens the folder around a path below the target, without following links, and says the file's name."""

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


class BadArchive(Exception):
    """No archive, or one that may not be unpacked; carries the reason."""


@dataclass(frozen=True)
class Member:
    """An entry: a folder, a link to `target`, a second name of the file `same`, or a file."""

    path: str
    is_folder: bool
    is_program: bool
    size: int
    target: str = ""
    same: str = ""
    open: Callable[[], IO[bytes] | None] = lambda: None


def is_archive(name: str) -> bool:
    """Tell whether a file of this name is an archive."""
    return name.lower().endswith(SUFFIXES)


def unpack(file: IO[bytes], name: str, around: Around, most: int) -> tuple[int, int]:
    """Unpack an archive; return how many files it has, and their size.  Raises BadArchive, OSError."""
    members = _list_zip if name.lower().endswith(".zip") else _list_tar
    files = total = 0
    try:
        for count, member in enumerate(members(file)):
            total += member.size
            files += not member.is_folder
            if count >= MOST_ENTRIES or (most and total > most):
                raise BadArchive(f"it holds more than {most:,} bytes" if most else "it holds too many files")
            _make(member, around)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        raise BadArchive(f"it is no archive that can be read: {error}") from error
    return files, total


def _make(member: Member, around: Around) -> None:
    path = member.path.removeprefix("./").rstrip("/")
    if not path or path == ".":
        return
    try:
        if member.is_folder:
            with around(f"{path}/x"):  # made on the way
                return
        with around(path) as (folder, name):
            _make_entry(member, path, folder, name, around)
    except OSError as error:
        raise BadArchive(f"{path}: {error.strerror}") from error


def _make_entry(member: Member, path: str, folder: int, name: str, around: Around) -> None:
    if member.target:
        _check_link(path, member.target)
        os.symlink(member.target, name, dir_fd=folder)
    elif member.same:
        with around(member.same.removeprefix("./")) as (other, known):
            os.link(known, name, src_dir_fd=other, dst_dir_fd=folder, follow_symlinks=False)
    else:
        mode = 0o777 if member.is_program else 0o666
        with os.fdopen(os.open(name, _NEW, mode, dir_fd=folder), "wb") as made:
            _copy(member, made)


def _copy(member: Member, made: IO[bytes]) -> None:
    """Copy the content, which is no longer than the entry said."""
    source, left = member.open(), member.size
    if source is None:
        return
    with contextlib.closing(source):
        while piece := source.read(min(PIECE, left + 1)):
            left -= len(piece)
            if left < 0:
                raise BadArchive(f"{member.path}: longer than it says")
            made.write(piece)


def _check_link(path: str, target: str) -> None:
    """Refuse a link that leads out of the folder."""
    meant = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    if target.startswith("/") or meant == ".." or meant.startswith("../"):
        raise BadArchive(f"{path} is a link to {target}, which is outside")


def _list_tar(file: IO[bytes]) -> Iterator[Member]:
    with tarfile.open(fileobj=file, mode="r:*") as archive:
        for each in archive:
            if not (each.isreg() or each.isdir() or each.issym() or each.islnk()):
                raise BadArchive(f"{each.name} is neither a file, a folder nor a link")
            yield Member(
                each.name,
                each.isdir(),
                bool(each.mode & stat.S_IXUSR),
                each.size if each.isreg() else 0,
                each.linkname if each.issym() else "",
                each.linkname if each.islnk() else "",
                lambda each=each: archive.extractfile(each),  # type: ignore[misc]
            )


def _list_zip(file: IO[bytes]) -> Iterator[Member]:
    with zipfile.ZipFile(file) as archive:
        for each in archive.infolist():
            mode = each.external_attr >> 16
            if stat.S_ISLNK(mode):
                target = archive.read(each)[:4096].decode("utf-8", "surrogateescape")
                yield Member(each.filename, False, False, 0, target)
            else:
                is_program = bool(mode & stat.S_IXUSR)
                yield Member(
                    each.filename,
                    each.is_dir(),
                    is_program,
                    each.file_size,
                    open=lambda each=each: archive.open(each),  # type: ignore[misc]
                )

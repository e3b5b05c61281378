"""A folder, or what was chosen in one, as a zip file that is written as it is read.

Names that would mean something else where it is unpacked are changed; links, special files and folders that
are mounted there are left out, and the last entry says which and why.
"""

from __future__ import annotations

import io
import os
import stat
import time
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from jobs.node.sftp import paths
from jobs.node.sftp.paths import FolderError, decode_name
from jobs.node.sftp.server import Opened
from jobs.node.sftp_packets import LONGEST_DATA

MOST_PACKED: Final = 100_000
"""Each is remembered until the end, in about a KiB of the job's own memory."""

_MOST_NOTES: Final = 10_000
_SQUEEZE: Final = 1
_SQUEEZED: Final = (
    *(b".gz", b".bz2", b".xz", b".zst", b".zip", b".7z", b".npz", b".pt", b".pth", b".safetensors"),
    *(b".png", b".jpg", b".jpeg", b".gif", b".webp", b".mp4", b".mp3", b".parquet", b".whl", b".tgz"),
)
"""What would not become smaller; a checkpoint is mostly noise."""

_FIRST_TIME, _LAST_TIME = (1980, 1, 1, 0, 0, 0), (2107, 12, 31, 23, 59, 58)
_ELSEWHERE: Final = frozenset('\\:*?"<>|')
"""What a path, a drive or a pattern is made of on other systems."""


class Archive(Opened):
    """The zip file of entries of a folder, or of all of them; read in order, whatever offset is named."""

    def __init__(self, folder: int, names: Sequence[bytes], said: Mapping[str, str]) -> None:
        """`said` has the words for what is left out.  Raises Trouble when none of `names` is there."""
        if names and not any(_is_there(folder, name) for name in names):
            raise FolderError("absent", decode_name(names[0]))
        self._said = said
        self._out = _Out()
        self._zip = zipfile.ZipFile(self._out, "w")
        self._left: list[str] = []
        self._count = 0
        self._mount = paths.mount_of(folder)
        self._steps = self._pack(os.dup(folder), names)

    def read(self, offset: int, count: int) -> bytes:
        """See Opened; fewer than `count` at the end alone."""
        while len(self._out.data) < count and next(self._steps, self) is None:
            pass
        taken = bytes(self._out.data[:count])
        del self._out.data[:count]
        return taken

    def _pack(self, fd: int, names: Sequence[bytes]) -> Iterator[None]:
        """Write the zip file, a piece at a step."""
        try:
            yield from self._folder(fd, "", names, 0)
        finally:
            os.close(fd)
        if self._left:
            self._note()
        self._zip.close()

    def _folder(self, fd: int, path: str, chosen: Sequence[bytes], depth: int) -> Iterator[None]:
        taken: set[str] = set()
        for name in sorted(set(chosen) or map(os.fsencode, os.listdir(fd))):
            at = path + _free(_harmless(decode_name(name)), taken)
            try:
                yield from self._entry(fd, name, at, depth)
            except FolderError as trouble:
                self._leave(at, trouble.code)
            except OSError as error:
                self._leave(at, paths.trouble_of(error))

    def _entry(self, fd: int, name: bytes, at: str, depth: int) -> Iterator[None]:
        seen = os.stat(name, dir_fd=fd, follow_symlinks=False)
        if self._count >= MOST_PACKED or depth > paths.DEEPEST:
            raise FolderError("too_many")
        self._count += 1
        if not stat.S_ISDIR(seen.st_mode):
            yield from self._file(fd, name, at)
            return
        inner = paths.enter(fd, name)
        try:
            if paths.mount_of(inner) != self._mount:
                raise FolderError("mounted")
            self._zip.writestr(_info(f"{at}/", seen), b"")
            yield from self._folder(inner, f"{at}/", (), depth + 1)
        finally:
            os.close(inner)

    def _file(self, around: int, name: bytes, at: str) -> Iterator[None]:
        """As many bytes as it has now, or fewer if it has fewer when they are read."""
        fd = paths.open_file(around, name)
        try:
            seen = os.fstat(fd)
            info = _info(at, seen)
            if name.lower().endswith(_SQUEEZED):
                info.compress_type = zipfile.ZIP_STORED
            left = seen.st_size
            with self._zip.open(info, "w", force_zip64=True) as entry:
                while left and (piece := os.read(fd, min(LONGEST_DATA, left))):
                    left -= len(piece)
                    entry.write(piece)
                    yield
        finally:
            os.close(fd)
        if left:
            self._leave(at, "changed")

    def _leave(self, at: str, code: str) -> None:
        if len(self._left) < _MOST_NOTES:
            self._left.append(f"{at}\t{self._said.get(code, code)}")

    def _note(self) -> None:
        taken = {info.filename for info in self._zip.infolist()}
        info = zipfile.ZipInfo(_free(self._said.get("note", "left-out.txt"), taken), _FIRST_TIME)
        info.external_attr = 0o600 << 16
        text = "".join(f"{line}\n" for line in self._left)
        self._zip.writestr(info, text.encode("utf-8", "replace"), zipfile.ZIP_DEFLATED)


class _Out(io.RawIOBase):
    """Bytes of the zip file that were written and not read yet."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: Any) -> int:
        self.data += data
        return len(data)


def _is_there(folder: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _info(at: str, seen: os.stat_result) -> zipfile.ZipInfo:
    when = time.gmtime(max(0, seen.st_mtime))[:6]
    info = zipfile.ZipInfo(at, min(max(when, _FIRST_TIME), _LAST_TIME))
    info.compress_type = zipfile.ZIP_DEFLATED
    info._compresslevel = _SQUEEZE  # type: ignore[attr-defined]  # noqa: SLF001 open() takes no level
    info.external_attr = (seen.st_mode & 0xF1FF) << 16
    if stat.S_ISDIR(seen.st_mode):
        info.compress_type = zipfile.ZIP_STORED
        info.external_attr |= 0x10
    return info


def _harmless(name: str) -> str:
    """A name that is one, and the same one, wherever it is unpacked."""
    text = name.encode("utf-8", "replace").decode()
    return "".join(
        "_" if char in _ELSEWHERE or unicodedata.category(char)[0] == "C" else char for char in text
    )


def _free(name: str, taken: set[str]) -> str:
    """The name, with a number where it is taken; it is taken then."""
    number, free = 2, name
    while free in taken:
        stem, dot, suffix = name.rpartition(".")
        free = f"{stem} ({number}).{suffix}" if dot and stem else f"{name} ({number})"
        number += 1
    taken.add(free)
    return free


_LOADED: Final = (zlib.compressobj, zlib.crc32)
"""What zipfile looks up when it writes; nothing can be loaded any more by then."""

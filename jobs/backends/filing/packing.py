"""A folder, or what was chosen in one, as a zip file that is written as it is read.

Names that would mean something else where it is unpacked are changed; links, special files and folders that
are mounted there are left out, and the last entry says which and why.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from jobs.backends.filing import ways
from jobs.backends.filing.looking import PIECE, Answer
from jobs.backends.filing.ways import Root, Trouble, checked, shown

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


def pack(root: Root, names: Sequence[str], asked: Mapping[str, Any]) -> Answer:
    """The entries `chosen` of a folder, or all of it.  `said` has the words for what is left out."""
    chosen = [checked(name) for name in asked.get("chosen", ())]
    with ways.folder(root, names) as fd:
        for name in chosen:
            with contextlib.suppress(FileNotFoundError):
                os.stat(name, dir_fd=fd, follow_symlinks=False)
                break
        else:
            if chosen:
                raise Trouble("absent", shown(chosen[0]))
        kept = os.dup(fd)
    return {"kind": "zip"}, _Packer(asked.get("said", {})).pieces(kept, chosen)


class _Out:
    """Where the zip file is written to: gathered until somebody takes it."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.size = 0

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        self.size += len(data)
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nor kept open."""

    def take(self) -> bytes:
        taken = b"".join(self._parts)
        self._parts.clear()
        self.size = 0
        return taken


class _Packer:
    def __init__(self, said: Mapping[str, str]) -> None:
        self._said = said
        self._out = _Out()
        self._zip = zipfile.ZipFile(self._out, "w")
        self._left: list[str] = []
        self._count = 0
        self._mount = b""

    def pieces(self, fd: int, chosen: Sequence[bytes]) -> Iterator[bytes]:
        """The zip file, a piece at a time."""
        try:
            self._mount = ways.mount_of(fd)
            yield from self._folder(fd, "", chosen, 0)
        finally:
            os.close(fd)
        if self._left:
            yield from self._note()
        self._zip.close()
        yield self._out.take()

    def _folder(self, fd: int, path: str, chosen: Sequence[bytes], depth: int) -> Iterator[bytes]:
        taken: set[str] = set()
        for name in sorted(set(chosen) or map(os.fsencode, os.listdir(fd))):
            at = path + _free(_harmless(shown(name)), taken)
            try:
                yield from self._entry(fd, name, at, depth)
            except Trouble as trouble:
                self._leave(at, trouble.code)
            except OSError as error:
                self._leave(at, ways.trouble_of(error))

    def _entry(self, fd: int, name: bytes, at: str, depth: int) -> Iterator[bytes]:
        seen = os.stat(name, dir_fd=fd, follow_symlinks=False)
        if self._count >= MOST_PACKED or depth > ways.DEEPEST:
            raise Trouble("too_many")
        self._count += 1
        if not stat.S_ISDIR(seen.st_mode):
            yield from self._file(fd, name, at)
            return
        inner = ways.enter(fd, name)
        try:
            if ways.mount_of(inner) != self._mount:
                raise Trouble("mounted")
            self._zip.writestr(_info(f"{at}/", seen), b"")
            yield from self._folder(inner, f"{at}/", (), depth + 1)
        finally:
            os.close(inner)

    def _file(self, around: int, name: bytes, at: str) -> Iterator[bytes]:
        """As many bytes as it has now, or fewer if it has fewer when they are read."""
        fd, seen = ways.open_file(around, name)
        try:
            info = _info(at, seen)
            if name.lower().endswith(_SQUEEZED):
                info.compress_type = zipfile.ZIP_STORED
            left = seen.st_size
            with self._zip.open(info, "w", force_zip64=True) as entry:
                while left and (piece := os.read(fd, min(PIECE, left))):
                    left -= len(piece)
                    entry.write(piece)
                    if self._out.size >= PIECE:
                        yield self._out.take()
        finally:
            os.close(fd)
        if left:
            self._leave(at, "changed")

    def _leave(self, at: str, code: str) -> None:
        if len(self._left) < _MOST_NOTES:
            self._left.append(f"{at}\t{self._said.get(code, code)}")

    def _note(self) -> Iterator[bytes]:
        taken = {info.filename for info in self._zip.infolist()}
        info = zipfile.ZipInfo(_free(self._said.get("note", "left-out.txt"), taken), _FIRST_TIME)
        info.external_attr = 0o600 << 16
        text = "".join(f"{line}\n" for line in self._left)
        self._zip.writestr(info, text.encode("utf-8", "replace"), zipfile.ZIP_DEFLATED)
        yield self._out.take()


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

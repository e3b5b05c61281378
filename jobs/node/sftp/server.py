"""Requests on stdin, answers on stdout, one after the other."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from jobs.node import frames
from jobs.node import sftp_packets as packets
from jobs.node.sftp_packets import (
    LONGEST_DATA,
    LONGEST_REQUEST,
    Attributes,
    Malformed,
    PacketReader,
    byte,
    number,
    status,
    text,
)

MOST_HANDLES: Final = 1024
_NAMES: Final = 128
_FILE_MODE: Final = 0o666
_FOLDER_MODE: Final = 0o777

_CODES: Final = {
    errno.ENOENT: packets.NO_FILE,
    errno.ENOTDIR: packets.NO_FILE,
    errno.ELOOP: packets.NO_FILE,
    errno.EBADF: packets.NO_FILE,
    errno.EPERM: packets.DENIED,
    errno.EACCES: packets.DENIED,
    errno.EROFS: packets.DENIED,
    errno.EINVAL: packets.BAD_MESSAGE,
    errno.ENAMETOOLONG: packets.BAD_MESSAGE,
    errno.ENOSYS: packets.UNSUPPORTED,
}
"""As OpenSSH's server says it; everything else is a FAILURE."""

_FLAGS: Final = (
    (packets.APPENDING, os.O_APPEND),
    (packets.CREATED, os.O_CREAT),
    (packets.TRUNCATED, os.O_TRUNC),
    (packets.EXCLUSIVE, os.O_EXCL),
)

EXTENSIONS: Final = (
    (b"posix-rename@openssh.com", b"1"),
    (b"statvfs@openssh.com", b"2"),
    (b"hardlink@openssh.com", b"1"),
    (b"fsync@openssh.com", b"1"),
    (b"lsetstat@openssh.com", b"1"),
    (b"limits@openssh.com", b"1"),
    (b"expand-path@openssh.com", b"1"),
)


def serve(server: Server | None = None) -> None:
    """Until stdin ends, nobody reads stdout any more, or something comes that is no SFTP."""
    server, read = server or Server(), partial(os.read, 0)
    try:
        with contextlib.suppress(frames.BrokenFrame, Malformed, BrokenPipeError):
            while True:
                frames.write_all(
                    1, frames.encode_frame(server.answer(frames.read_frame(read, LONGEST_REQUEST)))
                )
    finally:
        server.abandon()


class Opened:
    """An open handle; an operation that it lacks fails as with an unknown handle."""

    def read(self, offset: int, count: int) -> bytes:
        """At most so many bytes; none at the end."""
        raise _bad_handle()

    def write(self, offset: int, data: bytes) -> None:
        """All of `data`."""
        raise _bad_handle()

    def close(self) -> None:
        """The client closes it."""

    def abandon(self) -> None:
        """The client is gone without having closed it."""
        self.close()


@dataclass(slots=True)
class ServedFile(Opened):
    """An open file."""

    fd: int

    def read(self, offset: int, count: int) -> bytes:
        """See Opened."""
        return os.pread(self.fd, count, offset)

    def write(self, offset: int, data: bytes) -> None:
        """See Opened."""
        rest = memoryview(data)
        while rest:
            written = os.pwrite(self.fd, rest, offset)
            rest, offset = rest[written:], offset + written

    def close(self) -> None:
        """See Opened."""
        os.close(self.fd)


@dataclass(slots=True)
class Listing(Opened):
    """An open folder: what of it has not been told yet."""

    path: bytes
    names: Iterator[bytes]


class Server:
    """One connection's open files."""

    def __init__(self) -> None:
        self._open: dict[bytes, Opened] = {}
        self._serial = 0
        self._extensions: Sequence[tuple[bytes, bytes]] = EXTENSIONS
        self._answers: dict[int | bytes, Callable[[PacketReader], bytes]] = {
            packets.OPEN: self._open_file,
            packets.READ: self._read,
            7: lambda r: _attrs(os.lstat(r.path())),
            8: lambda r: _attrs(os.fstat(self._file(r))),
            11: self._open_folder,
            12: self._list,
            16: lambda r: _name(os.path.realpath(r.path())),
            17: lambda r: _attrs(os.stat(r.path())),
            19: lambda r: _name(os.readlink(r.path())),
            b"statvfs@openssh.com": lambda r: extended_reply(packets.file_system(os.statvfs(r.path()))),
            b"limits@openssh.com": lambda _: _limits(),
            b"expand-path@openssh.com": lambda r: _name(os.path.realpath(os.path.expanduser(r.path()))),
        }
        self._acts: dict[int | bytes, Callable[[PacketReader], None]] = {
            packets.CLOSE: self._close,
            packets.WRITE: self._write,
            9: lambda r: _change(r.path(), r.attributes()),
            10: lambda r: _change(self._file(r), r.attributes()),
            13: lambda r: os.unlink(r.path()),
            packets.MKDIR: _make_folder,
            15: lambda r: os.rmdir(r.path()),
            packets.RENAME: lambda r: _rename(r.path(), r.path()),
            20: lambda r: os.symlink(r.text(), r.path()),
            b"posix-rename@openssh.com": lambda r: os.rename(r.path(), r.path()),
            b"hardlink@openssh.com": lambda r: os.link(r.path(), r.path(), follow_symlinks=False),
            b"fsync@openssh.com": lambda r: os.fsync(self._file(r)),
            b"lsetstat@openssh.com": lambda r: _change(r.path(), r.attributes(), follow=False),
        }

    def answer(self, packet: bytes) -> bytes:
        """The whole answer to one request.  Malformed when it is none."""
        reader = PacketReader(packet)
        kind = reader.byte()
        if kind == packets.INIT:
            extensions = b"".join(text(name) + text(value) for name, value in self._extensions)
            return byte(packets.VERSION) + number(packets.PROTOCOL) + extensions
        request = reader.number()
        try:
            answer = self._do(reader.text() if kind == packets.EXTENDED else kind, reader)
        except OSError as error:
            answer = status(_CODES.get(error.errno or 0, packets.FAILURE), error.strerror or "")
        except Malformed:
            answer = status(packets.BAD_MESSAGE, "Bad message")
        return answer[:1] + number(request) + answer[1:]

    def _do(self, verb: int | bytes, reader: PacketReader) -> bytes:
        if verb in self._answers:
            return self._answers[verb](reader)
        if verb in self._acts:
            self._acts[verb](reader)
            return status(packets.OK)
        return status(packets.UNSUPPORTED, "Operation unsupported")

    def abandon(self) -> None:
        """The client is gone."""
        for opened in self._open.values():
            opened.abandon()

    def _keep(self, opened: Opened) -> bytes:
        if len(self._open) >= MOST_HANDLES:
            opened.abandon()
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        self._serial += 1
        name = b"%x" % self._serial
        self._open[name] = opened
        return byte(packets.HANDLE) + text(name)

    def _find_opened(self, reader: PacketReader) -> Opened:
        return self._open.get(reader.text()) or Opened()

    def _file(self, reader: PacketReader) -> int:
        found = self._find_opened(reader)
        if not isinstance(found, ServedFile):
            raise _bad_handle()
        return found.fd

    def _open_file(self, reader: PacketReader) -> bytes:
        path, wanted, attributes = reader.path(), reader.number(), reader.attributes()
        reading, writing = wanted & packets.FOR_READING, wanted & packets.FOR_WRITING
        flags = os.O_RDWR if reading and writing else os.O_WRONLY if writing else os.O_RDONLY
        flags |= sum(flag for bit, flag in _FLAGS if wanted & bit)
        mode = _FILE_MODE if attributes.mode is None else stat.S_IMODE(attributes.mode)
        return self._keep(ServedFile(os.open(path, flags | os.O_NOCTTY, mode & 0o777)))

    def _open_folder(self, reader: PacketReader) -> bytes:
        path = reader.path()
        return self._keep(Listing(path, iter([b".", b"..", *os.listdir(path)])))

    def _close(self, reader: PacketReader) -> None:
        found = self._open.pop(reader.text(), None)
        if found is None:
            raise _bad_handle()
        found.close()

    def _read(self, reader: PacketReader) -> bytes:
        opened, offset, count = self._find_opened(reader), reader.long(), reader.number()
        data = opened.read(offset, min(count, LONGEST_DATA))
        return byte(packets.DATA) + text(data) if data else status(packets.END)

    def _write(self, reader: PacketReader) -> None:
        self._find_opened(reader).write(reader.long(), reader.text())

    def _list(self, reader: PacketReader) -> bytes:
        found = self._find_opened(reader)
        if not isinstance(found, Listing):
            raise _bad_handle()
        told = []
        for name in found.names:
            try:
                seen = os.lstat(os.path.join(found.path, name))
            except OSError:
                continue  # it was there a moment ago
            told.append(text(name) + text(packets.long_name(name, seen)) + packets.attributes(seen))
            if len(told) == _NAMES:
                break
        return byte(packets.NAME) + number(len(told)) + b"".join(told) if told else status(packets.END)


def extended_reply(data: bytes) -> bytes:
    """The answer to an extended request, without its number."""
    return byte(packets.EXTENDED_ANSWER) + data


def _bad_handle() -> OSError:
    return OSError(errno.EBADF, os.strerror(errno.EBADF))


def _attrs(found: os.stat_result) -> bytes:
    return byte(packets.ATTRS) + packets.attributes(found)


def _name(path: bytes) -> bytes:
    return byte(packets.NAME) + number(1) + text(path) + text(path) + number(0)


def _limits() -> bytes:
    limits = (LONGEST_REQUEST, LONGEST_DATA, LONGEST_DATA, MOST_HANDLES)
    return extended_reply(b"".join(map(packets.long, limits)))


def _make_folder(reader: PacketReader) -> None:
    path, attributes = reader.path(), reader.attributes()
    os.mkdir(path, _FOLDER_MODE if attributes.mode is None else stat.S_IMODE(attributes.mode))


def _rename(old: bytes, new: bytes) -> None:
    """Version 3 never replaces what is there."""
    if os.path.lexists(new):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    os.rename(old, new)


def _change(what: bytes | int, wanted: Attributes, *, follow: bool = True) -> None:
    """Everything the client names; an owner only if it differs, as nobody may give files away."""
    follow = follow or isinstance(what, int)
    if wanted.size is not None and follow:
        os.truncate(what, wanted.size)
    if wanted.mode is not None:
        os.chmod(what, stat.S_IMODE(wanted.mode), follow_symlinks=follow)
    if wanted.owner is not None:
        found = os.stat(what, follow_symlinks=follow)
        if (found.st_uid, found.st_gid) != wanted.owner:
            os.chown(what, *wanted.owner, follow_symlinks=follow)
    if wanted.times is not None:
        os.utime(what, wanted.times, follow_symlinks=follow)

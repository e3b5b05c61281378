"""Requests on stdin, answers on stdout, one after the other."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from jobs.backends.sftp import packets
from jobs.backends.sftp.packets import Attributes, Malformed, Reader, byte, number, text

VERSION: Final = 3
EXTENDED: Final = 200
MOST_HANDLES: Final = 1024
LONGEST_DATA: Final = 255 * 1024
LONGEST_PACKET: Final = 256 * 1024 + 1024
_NAMES: Final = 128
_FILE_MODE: Final = 0o666
_FOLDER_MODE: Final = 0o777

INIT, VERSION_ANSWER = 1, 2
STATUS, HANDLE, DATA, NAME, ATTRS, EXTENDED_ANSWER = 101, 102, 103, 104, 105, 201
OK, END, NO_FILE, DENIED, FAILURE, BAD_MESSAGE, UNSUPPORTED = 0, 1, 2, 3, 4, 5, 8

_READ, _WRITE, _APPEND, _CREATE, _TRUNCATE, _NEW = 1, 2, 4, 8, 16, 32

_CODES: Final = {
    errno.ENOENT: NO_FILE,
    errno.ENOTDIR: NO_FILE,
    errno.ELOOP: NO_FILE,
    errno.EBADF: NO_FILE,
    errno.EPERM: DENIED,
    errno.EACCES: DENIED,
    errno.EROFS: DENIED,
    errno.EINVAL: BAD_MESSAGE,
    errno.ENAMETOOLONG: BAD_MESSAGE,
    errno.ENOSYS: UNSUPPORTED,
}
"""As OpenSSH's server says it; everything else is a FAILURE."""

EXTENSIONS: Final = (
    (b"posix-rename@openssh.com", b"1"),
    (b"statvfs@openssh.com", b"2"),
    (b"hardlink@openssh.com", b"1"),
    (b"fsync@openssh.com", b"1"),
    (b"lsetstat@openssh.com", b"1"),
    (b"limits@openssh.com", b"1"),
    (b"expand-path@openssh.com", b"1"),
)


def serve() -> None:
    """Until stdin ends, or something comes that is no SFTP."""
    server = Server()
    while (packet := _packet(0)) is not None:
        try:
            answer = server.answer(packet)
        except Malformed:
            return
        _send(1, number(len(answer)) + answer)


def _packet(fd: int) -> bytes | None:
    head = _exactly(fd, 4)
    length = int.from_bytes(head, "big")
    if len(head) < 4 or not 0 < length <= LONGEST_PACKET:
        return None
    packet = _exactly(fd, length)
    return packet if len(packet) == length else None


def _exactly(fd: int, count: int) -> bytes:
    parts = []
    while count and (part := os.read(fd, count)):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _send(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


@dataclass(slots=True)
class Listing:
    """An open folder: what of it has not been told yet."""

    path: bytes
    names: Iterator[bytes]


class Server:
    """One connection's open files."""

    def __init__(self) -> None:
        self._open: dict[bytes, int | Listing] = {}
        self._serial = 0
        self._answers: dict[int | bytes, Callable[[Reader], bytes]] = {
            3: self._open_file,
            5: self._read,
            7: lambda r: _attrs(os.lstat(r.path())),
            8: lambda r: _attrs(os.fstat(self._file(r))),
            11: self._open_folder,
            12: self._list,
            16: lambda r: _name(os.path.realpath(r.path())),
            17: lambda r: _attrs(os.stat(r.path())),
            19: lambda r: _name(os.readlink(r.path())),
            b"statvfs@openssh.com": lambda r: _extended(packets.file_system(os.statvfs(r.path()))),
            b"limits@openssh.com": lambda _: _limits(),
            b"expand-path@openssh.com": lambda r: _name(os.path.realpath(os.path.expanduser(r.path()))),
        }
        self._acts: dict[int | bytes, Callable[[Reader], None]] = {
            4: self._close,
            6: self._write,
            9: lambda r: _change(r.path(), r.attributes()),
            10: lambda r: _change(self._file(r), r.attributes()),
            13: lambda r: os.unlink(r.path()),
            14: _make_folder,
            15: lambda r: os.rmdir(r.path()),
            18: lambda r: _rename(r.path(), r.path()),
            20: lambda r: os.symlink(r.text(), r.path()),
            b"posix-rename@openssh.com": lambda r: os.rename(r.path(), r.path()),
            b"hardlink@openssh.com": lambda r: os.link(r.path(), r.path(), follow_symlinks=False),
            b"fsync@openssh.com": lambda r: os.fsync(self._file(r)),
            b"lsetstat@openssh.com": lambda r: _change(r.path(), r.attributes(), follow=False),
        }

    def answer(self, packet: bytes) -> bytes:
        """The whole answer to one request.  Malformed when it is none."""
        reader = Reader(packet)
        kind = reader.byte()
        if kind == INIT:
            return byte(VERSION_ANSWER) + number(VERSION) + b"".join(text(n) + text(v) for n, v in EXTENSIONS)
        request = reader.number()
        try:
            answer = self._do(reader.text() if kind == EXTENDED else kind, reader)
        except OSError as error:
            answer = status(_CODES.get(error.errno or 0, FAILURE), error.strerror or "")
        except Malformed:
            answer = status(BAD_MESSAGE, "Bad message")
        return answer[:1] + number(request) + answer[1:]

    def _do(self, verb: int | bytes, reader: Reader) -> bytes:
        if verb in self._answers:
            return self._answers[verb](reader)
        if verb in self._acts:
            self._acts[verb](reader)
            return status(OK)
        return status(UNSUPPORTED, "Operation unsupported")

    def _keep(self, opened: int | Listing) -> bytes:
        if len(self._open) >= MOST_HANDLES:
            if isinstance(opened, int):
                os.close(opened)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        self._serial += 1
        name = b"%x" % self._serial
        self._open[name] = opened
        return byte(HANDLE) + text(name)

    def _file(self, reader: Reader) -> int:
        found = self._open.get(reader.text())
        if not isinstance(found, int):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return found

    def _open_file(self, reader: Reader) -> bytes:
        path, wanted, attributes = reader.path(), reader.number(), reader.attributes()
        reading, writing = wanted & _READ, wanted & _WRITE
        flags = os.O_RDWR if reading and writing else os.O_WRONLY if writing else os.O_RDONLY
        pairs = (_APPEND, os.O_APPEND), (_CREATE, os.O_CREAT), (_TRUNCATE, os.O_TRUNC), (_NEW, os.O_EXCL)
        flags |= sum(flag for bit, flag in pairs if wanted & bit)
        mode = _FILE_MODE if attributes.mode is None else stat.S_IMODE(attributes.mode)
        return self._keep(os.open(path, flags | os.O_NOCTTY, mode & 0o777))

    def _open_folder(self, reader: Reader) -> bytes:
        path = reader.path()
        return self._keep(Listing(path, iter([b".", b"..", *os.listdir(path)])))

    def _close(self, reader: Reader) -> None:
        found = self._open.pop(reader.text(), None)
        if found is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        if isinstance(found, int):
            os.close(found)

    def _read(self, reader: Reader) -> bytes:
        fd, offset, count = self._file(reader), reader.long(), reader.number()
        data = os.pread(fd, min(count, LONGEST_DATA), offset)
        return byte(DATA) + text(data) if data else status(END)

    def _write(self, reader: Reader) -> None:
        fd, offset, rest = self._file(reader), reader.long(), memoryview(reader.text())
        while rest:
            written = os.pwrite(fd, rest, offset)
            rest, offset = rest[written:], offset + written

    def _list(self, reader: Reader) -> bytes:
        found = self._open.get(reader.text())
        if not isinstance(found, Listing):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        told = []
        for name in found.names:
            try:
                seen = os.lstat(os.path.join(found.path, name))
            except OSError:
                continue  # it was there a moment ago
            told.append(text(name) + text(packets.listed(name, seen)) + packets.attributes(seen))
            if len(told) == _NAMES:
                break
        return byte(NAME) + number(len(told)) + b"".join(told) if told else status(END)


def status(code: int, said: str = "") -> bytes:
    """How a request went, without its number."""
    return byte(STATUS) + number(code) + text(said.encode()) + text(b"")


def _attrs(found: os.stat_result) -> bytes:
    return byte(ATTRS) + packets.attributes(found)


def _name(path: bytes) -> bytes:
    return byte(NAME) + number(1) + text(path) + text(path) + number(0)


def _extended(data: bytes) -> bytes:
    return byte(EXTENDED_ANSWER) + data


def _limits() -> bytes:
    limits = (LONGEST_PACKET, LONGEST_DATA, LONGEST_DATA, MOST_HANDLES)
    return _extended(b"".join(map(packets.long, limits)))


def _make_folder(reader: Reader) -> None:
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

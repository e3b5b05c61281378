"""Listening TCP sockets of a network namespace, by the kernel's own protocol (sock_diag(7)).

The tables below /proc/net are made by a walk through all connections of the machine, which takes some
milliseconds; here the kernel looks only at sockets that listen.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from typing import Final

_NETLINK_SOCK_DIAG: Final = 4
_BY_FAMILY: Final = 20
_REQUEST: Final = 0x301
_IS_ERROR, _DONE = 2, 3
_LISTENING: Final = 1 << 10
_ADDRESS_BYTES: Final = {socket.AF_INET: 4, socket.AF_INET6: 16}

_HEADER: Final = struct.Struct("=IHHII")
_QUESTION: Final = struct.Struct("=BBBBI48x")
_SOCKET: Final = struct.Struct("=4xH2x16s16x24xII")
_ERROR: Final = struct.Struct("=i")
_REPLY_BYTES: Final = 1 << 17


def open_diag() -> socket.socket:
    """Return a socket to the kernel, which tells it of the network namespace in which it was made."""
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG)


def list_listening(diag: socket.socket) -> Iterator[tuple[bytes, int, int, int]]:
    """Yield the packed address, port, user id and inode number of each; OSError in a kernel without it."""
    for family, length in _ADDRESS_BYTES.items():
        for body in _dump(diag, _QUESTION.pack(family, socket.IPPROTO_TCP, 0, 0, _LISTENING)):
            port, address, uid, inode = _SOCKET.unpack_from(body)
            yield address[:length], socket.ntohs(port), uid, inode


def _dump(diag: socket.socket, question: bytes) -> Iterator[bytes]:
    """Yield the answers to a question."""
    diag.send(_HEADER.pack(_HEADER.size + len(question), _BY_FAMILY, _REQUEST, 1, 0) + question)
    while True:
        data = diag.recv(_REPLY_BYTES)
        while data:
            length, answer, *_rest = _HEADER.unpack_from(data)
            if answer == _DONE:
                return
            if answer == _IS_ERROR:
                (number,) = _ERROR.unpack_from(data, _HEADER.size)
                raise OSError(-number, os.strerror(-number))
            yield data[_HEADER.size : length]
            data = data[(length + 3) & ~3 :]

"""Links, addresses and routes of a network namespace, by the kernel's own protocol (rtnetlink(7)).

A socket belongs to the network namespace in which it was made, wherever it is used later, so that one process
can set up several namespaces, and without a program for each step.
"""

from __future__ import annotations

import errno
import ipaddress
import itertools
import os
import socket
import struct
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from types import TracebackType
from typing import Final, Self

LOOPBACK: Final = 1
"""The index of `lo` in every network namespace."""

_HEADER: Final = struct.Struct("=IHHII")
_LINK: Final = struct.Struct("=BxHiII")
_ADDRESS: Final = struct.Struct("=BBBBI")
_ROUTE: Final = struct.Struct("=BBBBBBBBI")
_ATTRIBUTE: Final = struct.Struct("=HH")
_ERROR: Final = struct.Struct("=i")
_NUMBER: Final = struct.Struct("=I")

_NEW_LINK, _DELETE_LINK, _GET_LINK, _NEW_ADDRESS, _GET_ADDRESS, _NEW_ROUTE = 16, 17, 18, 20, 22, 24
_IS_ERROR, _DONE = 2, 3
_REQUEST, _ACK, _EXCLUSIVE, _CREATE, _DUMP = 0x1, 0x4, 0x200, 0x400, 0x300
_UP: Final = 0x1
_IF_NAME, _IF_INFO, _IF_NAMESPACE = 3, 18, 28
_INFO_KIND, _INFO_DATA, _VETH_PEER = 1, 2, 1
_IP_LOCAL: Final = 2
_TO, _OVER, _GATEWAY = 1, 4, 5
_MAIN_TABLE, _BY_BOOT, _UNICAST, _LINK_SCOPE = 254, 3, 1, 253
_REPLY_BYTES: Final = 1 << 18


def open_netlink() -> int:
    """Return the descriptor of a new socket for the calling thread's network namespace."""
    kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
    made = socket.socket(socket.AF_NETLINK, kind, socket.NETLINK_ROUTE)
    made.bind((0, 0))
    return made.detach()


class Netlink:
    """A socket to the routing part of the kernel: a new one, or the one given as a descriptor.

    Every change raises OSError with the kernel's errno.
    """

    def __init__(self, fd: int | None = None) -> None:
        self._socket = socket.socket(fileno=open_netlink() if fd is None else fd)
        self._serials = itertools.count(1)

    def add_veth(self, name: str, peer: str, namespace: int, *, index: int = 0, peer_index: int = 0) -> None:
        """Make two linked interfaces: `name` here, up, and `peer` in the namespace of a descriptor, down.

        An index of 0 is the kernel's choice.
        """
        other = _LINK.pack(0, 0, peer_index, 0, 0)
        other += _attribute(_IF_NAME, _text(peer)) + _attribute(_IF_NAMESPACE, _NUMBER.pack(namespace))
        info = _attribute(_INFO_KIND, b"veth") + _attribute(_INFO_DATA, _attribute(_VETH_PEER, other))
        body = _LINK.pack(0, 0, index, _UP, _UP) + _attribute(_IF_NAME, _text(name))
        self._change(_NEW_LINK, body + _attribute(_IF_INFO, info), _CREATE | _EXCLUSIVE)

    def remove_link(self, name: str) -> None:
        """Remove an interface, and thereby its peer; none of that name is fine."""
        try:
            self._change(_DELETE_LINK, _LINK.pack(0, 0, 0, 0, 0) + _attribute(_IF_NAME, _text(name)))
        except OSError as error:
            if error.errno != errno.ENODEV:
                raise

    def index_of(self, name: str) -> int:
        """Return the index of an interface."""
        body = _LINK.pack(0, 0, 0, 0, 0) + _attribute(_IF_NAME, _text(name))
        for kind, answer in self._ask(_GET_LINK, body, _ACK):
            if kind == _NEW_LINK:
                return int(_LINK.unpack_from(answer)[2])
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV), name)

    def set_up(self, index: int) -> None:
        """Turn an interface on."""
        self._change(_NEW_LINK, _LINK.pack(0, 0, index, _UP, _UP))

    def add_address(self, index: int, address: IPv4Interface) -> None:
        """Give an interface an address; the prefix length says what is on its link."""
        body = _ADDRESS.pack(socket.AF_INET, address.network.prefixlen, 0, 0, index)
        self._change(_NEW_ADDRESS, body + _attribute(_IP_LOCAL, address.ip.packed), _CREATE | _EXCLUSIVE)

    def add_route(self, index: int, to: IPv4Network, gateway: IPv4Address | None = None) -> None:
        """Send what goes to a network out of an interface, by a gateway or straight."""
        scope = 0 if gateway else _LINK_SCOPE
        body = _ROUTE.pack(socket.AF_INET, to.prefixlen, 0, 0, _MAIN_TABLE, _BY_BOOT, scope, _UNICAST, 0)
        body += _attribute(_TO, to.network_address.packed) if to.prefixlen else b""
        body += _attribute(_OVER, _NUMBER.pack(index))
        body += _attribute(_GATEWAY, gateway.packed) if gateway else b""
        self._change(_NEW_ROUTE, body, _CREATE | _EXCLUSIVE)

    def list_addresses(self) -> list[IPv4Address]:
        """Return every IPv4 address of the namespace."""
        found = []
        for kind, answer in self._ask(_GET_ADDRESS, _ADDRESS.pack(socket.AF_INET, 0, 0, 0, 0), _DUMP):
            if kind == _NEW_ADDRESS:
                values = dict(_attributes(answer[_ADDRESS.size :]))
                found.append(ipaddress.IPv4Address(values[_IP_LOCAL]))
        return found

    def close(self) -> None:
        """Close it."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _change(self, kind: int, body: bytes, flags: int = 0) -> None:
        for _ in self._ask(kind, body, flags | _ACK):
            continue

    def _ask(self, kind: int, body: bytes, flags: int) -> Iterator[tuple[int, bytes]]:
        """Send a request; yield the kinds and bodies of the answers, up to the last one."""
        serial = next(self._serials)
        header = _HEADER.pack(_HEADER.size + len(body), kind, flags | _REQUEST, serial, 0)
        self._socket.send(header + body)
        while True:
            for kind_, serial_, answer in _messages(self._socket.recv(_REPLY_BYTES)):
                if serial_ != serial:  # of a request that was given up
                    continue
                if kind_ == _DONE:
                    return
                if kind_ == _IS_ERROR:
                    _raise_error(answer)
                    return
                yield kind_, answer


def _messages(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    while len(data) >= _HEADER.size:
        length, kind, _flags, serial, _port = _HEADER.unpack_from(data)
        yield kind, serial, data[_HEADER.size : length]
        data = data[_align(length) :]


def _raise_error(answer: bytes) -> None:
    (number,) = _ERROR.unpack_from(answer)
    if number:
        raise OSError(-number, os.strerror(-number))


def _attribute(kind: int, value: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(value)
    return (_ATTRIBUTE.pack(length, kind) + value).ljust(_align(length), b"\0")


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(data)
        yield kind, data[_ATTRIBUTE.size : length]
        data = data[_align(length) :]


def _align(length: int) -> int:
    return (length + 3) & ~3


def _text(name: str) -> bytes:
    return name.encode() + b"\0"

"""DNS messages (RFC 1035), as far as a resolver needs them that knows a few names and forwards the rest."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from ipaddress import IPv4Address
from typing import Final

MOST_BYTES: Final = 4096
"""Of a query that is understood: a question takes at most 271, and options some hundreds."""

TTL_S: Final = 30

_HEADER: Final = struct.Struct(">HHHHHH")
_QUESTION: Final = struct.Struct(">HH")
_RECORD: Final = struct.Struct(">HHHIH")
_NAME_OF_QUESTION: Final = 0xC000 | _HEADER.size
_LONGEST_LABEL: Final = 63
_LONGEST_NAME: Final = 255
_IN: Final = 1
_REVERSE: Final = ".in-addr.arpa"

_IS_RESPONSE: Final = 0x8000
_OPCODE: Final = 0x7800
_AUTHORITATIVE: Final = 0x0400
_RECURSION_DESIRED: Final = 0x0100
_RECURSION_AVAILABLE: Final = 0x0080


class Kind(IntEnum):
    """Types of records."""

    A = 1
    PTR = 12
    ANY = 255


class Result(IntEnum):
    """Response codes."""

    OK = 0
    MALFORMED = 1
    FAILED = 2
    UNKNOWN_OPERATION = 4
    REFUSED = 5


class Unanswerable(ValueError):
    """No query at all, which deserves no answer."""


class MalformedQuery(ValueError):
    """A query that says nothing; the answer is Result.MALFORMED."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query: `name` is lower case and has no dot at its end, `question` the section as it was sent."""

    number: int
    flags: int
    name: str
    kind: int
    is_internet: bool
    question: bytes

    @property
    def is_standard(self) -> bool:
        """Tell whether it asks for records."""
        return not self.flags & _OPCODE


def parse_query(packet: bytes) -> Query:
    """Read a query with one question.  Raises Unanswerable or MalformedQuery."""
    if not _HEADER.size <= len(packet) <= MOST_BYTES or packet[2] & _IS_RESPONSE >> 8:
        raise Unanswerable
    number, flags, questions, *_counts = _HEADER.unpack_from(packet)
    if questions != 1:
        raise MalformedQuery
    name, end = _read_name(packet)
    if len(packet) < end + _QUESTION.size:
        raise MalformedQuery
    kind, group = _QUESTION.unpack_from(packet, end)
    question = packet[_HEADER.size : end + _QUESTION.size]
    return Query(number, flags, name, kind, group == _IN, question)


def _read_name(packet: bytes) -> tuple[str, int]:
    """Return the name of the question, which nothing comes before that it could point to, and its end."""
    labels: list[str] = []
    at = _HEADER.size
    while at < len(packet):
        size = packet[at]
        label = packet[at + 1 : at + 1 + size]
        at += 1 + size
        if size > _LONGEST_LABEL or len(label) < size or at - _HEADER.size > _LONGEST_NAME:
            raise MalformedQuery
        if not size:
            return ".".join(labels), at
        labels.append(label.decode("latin-1").lower())
    raise MalformedQuery


def reject(packet: bytes) -> bytes:
    """Return the answer to a malformed query."""
    number, flags = struct.unpack_from(">HH", packet)
    return _HEADER.pack(number, _answer_flags(flags) | Result.MALFORMED, 0, 0, 0, 0)


def answer(query: Query, result: Result, records: Iterable[bytes] = (), *, is_own: bool = False) -> bytes:
    """Return an answer; without records and with Result.OK: there are none of that kind."""
    found = list(records)
    flags = _answer_flags(query.flags) | (_AUTHORITATIVE if is_own else 0) | result
    return _HEADER.pack(query.number, flags, 1, len(found), 0, 0) + query.question + b"".join(found)


def address_record(address: str) -> bytes:
    """Return a record with an IPv4 address for the name of the question."""
    return _record(Kind.A, IPv4Address(address).packed)


def name_record(name: str) -> bytes:
    """Return a record with a name for the address of the question."""
    labels = (label.encode("ascii") for label in name.split("."))
    return _record(Kind.PTR, b"".join(bytes([len(label)]) + label for label in labels) + b"\0")


def reverse_name(address: str) -> str:
    """Return the name under which the name of an address is looked up."""
    return ".".join(reversed(address.split("."))) + _REVERSE


def renumber(packet: bytes, number: int) -> bytes:
    """Return the message with another number."""
    return struct.pack(">H", number) + packet[2:]


def is_answer(packet: bytes, query: Query, number: int) -> bool:
    """Tell whether a message answers the query that was sent with that number."""
    end = _HEADER.size + len(query.question)
    if len(packet) < end or not packet[2] & _IS_RESPONSE >> 8:
        return False
    found, _flags, questions, *_counts = _HEADER.unpack_from(packet)
    same = packet[_HEADER.size : end].lower() == query.question.lower()
    return bool(found == number and questions == 1 and same)


def _answer_flags(flags: int) -> int:
    return _IS_RESPONSE | flags & (_OPCODE | _RECURSION_DESIRED) | _RECURSION_AVAILABLE


def _record(kind: Kind, value: bytes) -> bytes:
    return _RECORD.pack(_NAME_OF_QUESTION, kind, _IN, TTL_S, len(value)) + value

"""Scalars of TensorBoard event files, read without its library.

A file is a row of TFRecords: length (8 bytes), its checksum (4), a message `Event`, its checksum (4); see
tensorflow/core/lib/io/record_writer.h, event.proto, summary.proto and tensor.proto.  Checksums are skipped,
and a message that can't be read has no scalars.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Final

from jobs.training_metrics.output import Sample

AXIS: Final = "step"
LONGEST_TAG: Final = 250
LARGEST: Final = 64 * 1024
"""Bytes of a record that may have scalars; larger ones hold images, graphs and the like."""

IMPOSSIBLE: Final = 1 << 31
"""No record has so many bytes: the file is broken."""

_HEADER: Final = struct.Struct("<QI")
_TRAILER: Final = 4

_VARINT: Final = 0
_FIXED64: Final = 1
_BYTES: Final = 2
_FIXED32: Final = 5

_EVENT_STEP: Final = 2
_EVENT_SUMMARY: Final = 5
_SUMMARY_VALUE: Final = 1
_VALUE_TAG: Final = 1
_VALUE_SIMPLE: Final = 2
_VALUE_TENSOR: Final = 8
_TENSOR_TYPE: Final = 1
_TENSOR_CONTENT: Final = 4
_TENSOR_FLOATS: Final = 5
_TENSOR_DOUBLES: Final = 6
_FORMATS: Final = {1: "<f", 2: "<d"}
"""How one number of a tensor is packed, by its type (DT_FLOAT, DT_DOUBLE)."""

_HYPERPARAMETERS: Final = "_hparams_/"


class BrokenFile(Exception):
    """The file is none of TensorBoard's, or its framing is lost."""


def read_records(data: bytes) -> tuple[list[Sample], int]:
    """Return the scalars of the whole records at the beginning of `data`, and how many bytes to go on.

    These may be more than `data` has: a record that is too large is passed over unread.  Raises BrokenFile.
    """
    samples: list[Sample] = []
    offset = 0
    while offset + _HEADER.size <= len(data):
        length, _checksum = _HEADER.unpack_from(data, offset)
        if length >= IMPOSSIBLE:
            raise BrokenFile
        begin = offset + _HEADER.size
        if length <= LARGEST:
            if begin + length + _TRAILER > len(data):
                break
            samples += _read_event(data[begin : begin + length])
        offset = begin + length + _TRAILER
    return samples, offset


def _read_event(data: bytes) -> list[Sample]:
    try:
        return list(_list_scalars(data))
    except (ValueError, IndexError, struct.error):
        return []


def _list_scalars(data: bytes) -> Iterator[Sample]:
    step, summaries = 0, []
    for field, value in _fields(data):
        if field == _EVENT_STEP and isinstance(value, int):
            step = value
        elif field == _EVENT_SUMMARY and isinstance(value, bytes):
            summaries.append(value)
    if step >= 1 << 63:  # negative
        return
    for summary in summaries:
        for field, value in _fields(summary):
            if field == _SUMMARY_VALUE and isinstance(value, bytes):
                yield from _read_value(value, step)


def _read_value(data: bytes, step: int) -> Iterator[Sample]:
    tag, number = "", None
    for field, value in _fields(data):
        if not isinstance(value, bytes):
            continue
        if field == _VALUE_TAG:
            tag = value.decode()
        elif field == _VALUE_SIMPLE:
            (number,) = struct.unpack("<f", value)
        elif field == _VALUE_TENSOR:
            number = _read_tensor(value)
    is_name = 0 < len(tag) <= LONGEST_TAG and tag.isprintable() and not tag.startswith(_HYPERPARAMETERS)
    if is_name and number is not None and math.isfinite(number):
        yield Sample(tag, AXIS, float(step), number)


def _read_tensor(data: bytes) -> float | None:
    """Return the number of a tensor of one float; None for any other."""
    found = dict(_fields(data))
    form = _FORMATS.get(kind) if isinstance(kind := found.get(_TENSOR_TYPE), int) else None
    if form is None:
        return None
    for field in (_TENSOR_CONTENT, _TENSOR_FLOATS, _TENSOR_DOUBLES):
        packed = found.get(field)
        if isinstance(packed, bytes) and len(packed) == struct.calcsize(form):
            return float(struct.unpack(form, packed)[0])
    return None


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a message: numbers of varints, bytes of all others.

    Raises ValueError, IndexError.
    """
    offset = 0
    while offset < len(data):
        key, offset = _varint(data, offset)
        kind = key & 7
        if kind == _VARINT:
            number, offset = _varint(data, offset)
            yield key >> 3, number
            continue
        if kind == _BYTES:
            length, offset = _varint(data, offset)
        elif kind in (_FIXED32, _FIXED64):
            length = 4 if kind == _FIXED32 else 8
        else:
            raise ValueError(kind)
        if offset + length > len(data):
            raise ValueError(length)
        yield key >> 3, data[offset : offset + length]
        offset += length


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        byte = data[offset]
        offset += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, offset
    raise ValueError(offset)

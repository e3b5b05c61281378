"""A text inside of another one, and where each part of it stands there.

Whatever wraps a job file is taken off without moving a place: of every position in the job file it is known
where it stands in the text that was pasted.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from jobs.dialects.base import Note, Position
from jobs.dialects.document import Document
from jobs.dialects.source import position

_LINE_END: Final = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Segment:
    """From `inner` on, the text stands at `outer`; `verbatim` tells that it goes on there as it is."""

    inner: int
    outer: int
    verbatim: bool = True


@dataclass(frozen=True, slots=True)
class Remark:
    """A note about what stands at the offset `outer`."""

    code: str
    outer: int
    params: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Layer:
    """A text found in another: `text` is the inner one, `kind` tells how it was wrapped.

    `segments` are in the order of the inner text.
    """

    kind: str
    text: str = field(repr=False)
    segments: tuple[Segment, ...]
    remarks: tuple[Remark, ...] = ()

    def outer(self, offset: int) -> int:
        """Return the outer text's offset of the inner text's `offset`."""
        at = max(bisect_right(self.segments, offset, key=lambda each: each.inner) - 1, 0)
        segment = self.segments[at]
        return segment.outer + (max(offset - segment.inner, 0) if segment.verbatim else 0)


@dataclass(frozen=True, slots=True)
class Opened:
    """A pasted text with the job file `document` inside; `layers` from the outermost to the innermost."""

    pasted: str = field(repr=False)
    layers: tuple[Layer, ...]
    document: Document

    @property
    def text(self) -> str:
        """Return the text of the job file."""
        return self.document.text

    def at(self, place: Position) -> Position:
        """Return the position in the pasted text of a position in the job file."""
        return self._outer_position(_offset(self.text, place), len(self.layers))

    def notes(self) -> tuple[Note, ...]:
        """Return a note on each layer that was recognised, and the remarks made on the way."""
        found = []
        for depth, layer in enumerate(self.layers, 1):
            line, column = self._outer_position(0, depth)
            found.append(Note(f"read_from_{layer.kind}", line=line, column=column))
            for remark in layer.remarks:
                line, column = self._position(depth - 1, remark.outer)
                found.append(Note(remark.code, params=remark.params, line=line, column=column))
        return tuple(found)

    def _outer_position(self, offset: int, depth: int) -> Position:
        """Return the position of an offset of the text inside of `depth` layers."""
        return self._position(depth - 1, self.layers[depth - 1].outer(offset))

    def _position(self, depth: int, offset: int) -> Position:
        for layer in reversed(self.layers[:depth]):
            offset = layer.outer(offset)
        return position(self.pasted, offset)


def _offset(text: str, place: Position) -> int:
    """Return the offset of a line and column."""
    line, column = place
    start = 0
    for _number in range(line - 1):
        found = _LINE_END.search(text, start)
        if found is None:
            break
        start = found.end()
    return min(start + column - 1, len(text))


def closing_end(brackets: re.Pattern[str], text: str, start: int) -> int:
    """Return where the first bracket behind `start` is closed; the end of the text where it is not.

    `brackets` finds them, and skips what is quoted.
    """
    depth = 0
    for found in brackets.finditer(text, start):
        if found[0] in "([{":
            depth += 1
        elif found[0] in ")]}":
            depth -= 1
            if depth <= 0:
                return found.end()
    return len(text)


def cut_out(kind: str, text: str, start: int, end: int) -> Layer:
    """Return the part of `text` between two offsets."""
    return Layer(kind, text[start:end], (Segment(0, start),))


def dedent(kind: str, text: str, start: int, end: int) -> Layer:
    """Return the lines between two offsets, without the blanks that all of them begin with."""
    lines = text[start:end].splitlines(keepends=True)
    indents = [len(line) - len(line.lstrip(" ")) for line in lines if line.strip()]
    least = min(indents, default=0)
    parts, segments, inner, outer = [], [], 0, start
    for line in lines:
        taken = min(least, len(line) - len(line.lstrip(" ")))
        segments.append(Segment(inner, outer + taken))
        parts.append(line[taken:])
        inner, outer = inner + len(line) - taken, outer + len(line)
    return Layer(kind, "".join(parts), tuple(segments) or (Segment(0, start),))


@dataclass(frozen=True, slots=True)
class ValueAt:
    """A value that is to be written, and the offset at which it was said."""

    value: Value
    at: int
    key_at: int | None = None


Value: TypeAlias = str | int | float | bool | Mapping[str, ValueAt] | Sequence[ValueAt] | None


def write_layer(kind: str, piece: ValueAt, remarks: Sequence[Remark] = ()) -> Layer:
    """Return the value as JSON, each part with its place."""
    writer = _Writer()
    writer.add(piece, "\n")
    return Layer(kind, "".join(writer.parts) + "\n", tuple(writer.segments), tuple(remarks))


class _Writer:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self.segments: list[Segment] = []
        self._length = 0

    def add(self, piece: ValueAt, gap: str) -> None:
        value = piece.value
        self.segments.append(Segment(self._length, piece.at, verbatim=False))
        if isinstance(value, Mapping) and value:
            self._append("{")
            for number, (key, inner) in enumerate(value.items()):
                self._append("," * bool(number) + gap + "  ")
                at = inner.at if inner.key_at is None else inner.key_at
                self.segments.append(Segment(self._length, at, verbatim=False))
                self._append(json.dumps(key, ensure_ascii=False) + ": ")
                self.add(inner, gap + "  ")
            self._append(gap + "}")
        elif isinstance(value, Sequence) and not isinstance(value, str) and value:
            self._append("[")
            for number, inner in enumerate(value):
                self._append("," * bool(number) + gap + "  ")
                self.add(inner, gap + "  ")
            self._append(gap + "]")
        else:
            empty: object = {} if isinstance(value, Mapping) else []
            is_scalar = value is None or isinstance(value, (str, int, float))
            plain = value if is_scalar else empty
            self._append(json.dumps(plain, ensure_ascii=False))

    def _append(self, text: str) -> None:
        self.parts.append(text)
        self._length += len(text)

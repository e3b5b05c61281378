"""Changing single values of a JSON text: every other character, comments included, stays as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from jobs.dialects import spans
from jobs.dialects.base import Fix
from jobs.dialects.document import Document
from jobs.dialects.patterns import compile_pattern
from jobs.dialects.source import Source, read
from jobs.dialects.spans import Node
from jobs.dialects.tidy import without_line_numbers

_KEY: Final = compile_pattern(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_COMMA: Final = re.compile(r"\s*+,")
_BREAK: Final = re.compile(r"\r\n|\r|\n")
_REST_OF_LINE: Final = re.compile(r"[ \t]*+(?:\r\n|\r|\n)")
_BLANKS: Final = re.compile(r"[ \t]*+")
_UNIT: Final = "  "


@dataclass(frozen=True, slots=True)
class Put:
    """Set the value at `pointer`; a last token that names nothing is added (`-` adds to a list)."""

    pointer: str
    value: object


@dataclass(frozen=True, slots=True)
class Drop:
    """Remove the member or element at `pointer`."""

    pointer: str


@dataclass(frozen=True, slots=True)
class Rename:
    """Give the member at `pointer` another key; its value, its place and its comments stay."""

    pointer: str
    key: str


Change: TypeAlias = Put | Drop | Rename


def change_of(fix: Fix) -> Change:
    """Return the edit that makes `fix`."""
    if fix.key is not None:
        return Rename(fix.pointer, fix.key)
    return Drop(fix.pointer) if fix.value is None else Put(fix.pointer, fix.value)


@dataclass(slots=True)
class _Container:
    """What is to happen inside one object or list."""

    node: Node
    dropped: set[int] = field(default_factory=set)
    added: list[tuple[str | None, object]] = field(default_factory=list)


Splice = tuple[int, int, str]


def apply_fixes(document: Document, fixes: Iterable[Fix]) -> str:
    """The text with `fixes` made; of two at one place the last counts.  Raises Refused on unreadable text."""
    last = {fix.pointer: fix for fix in fixes}
    return edit(document, map(change_of, last.values()))


def edit(document: Document, edits: Iterable[Change]) -> str:
    """The text with `edits` made; those whose place does not exist are left out.

    A pasted listing loses its line numbers, which an added line would make wrong.
    """
    wanted = list(edits)
    if not wanted:
        return document.text
    source = read(document, repeats=True)
    if source.tidied.numbered:
        source = read(Document(without_line_numbers(document.text)), repeats=True)
    editor = _Editor(source)
    for one in wanted:
        editor.take(one)
    return editor.text()


class _Editor:
    """Collects what changes, then cuts it into the text."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._original = source.text
        self._bare = source.tidied.bare
        found = _BREAK.search(source.text)
        self._break = found[0] if found else ""
        self._containers: dict[int, _Container] = {}
        self._splices: list[Splice] = []

    def take(self, change: Change) -> None:
        """Note one change."""
        tokens = spans.split(change.pointer)
        if not tokens:
            return
        parent, found = spans.find(self._source.tree, tokens[:-1])
        if not found or (parent.members is None and parent.items is None):
            return
        node = parent.child(tokens[-1])
        if isinstance(change, Rename):
            self._rename(parent, node, change.key)
            return
        container = self._containers.setdefault(parent.start, _Container(parent))
        if isinstance(change, Drop):
            if node is not None:
                container.dropped.add(node.start)
                self._splices += [
                    self._whole_line(old.key_start, self._after_comma(old.end))
                    for key, _offset, old in parent.repeats
                    if key == tokens[-1]
                ]
        elif node is not None:
            value = self._render(change.value, self._line_indent(node.key_start))
            self._splices.append((node.start, node.end, value))
        elif parent.members is not None:
            container.added.append((tokens[-1], change.value))
        elif tokens[-1] == "-":
            container.added.append((None, change.value))

    def _rename(self, parent: Node, node: Node | None, key: str) -> None:
        """Write another key, unless the object has that one already."""
        if node is None or parent.members is None or key in parent.members:
            return
        old = _KEY.match(self._source.tidied.strict, node.key_start)
        if old:
            self._splices.append((*old.span(), json.dumps(key, ensure_ascii=False)))

    def text(self) -> str:
        """The changed text."""
        for container in self._containers.values():
            self._splices.extend(self._drops(container))
            self._splices.extend(self._additions(container))
        parts, done = [], 0
        for start, stop, new in sorted(self._splices, key=lambda splice: splice[:2]):
            if start >= done:  # inside of something that is dropped nothing else changes
                parts += [self._original[done:start], new]
                done = stop
        return "".join(parts) + self._original[done:]

    def _drops(self, container: _Container) -> list[Splice]:
        children = [child for _token, child in container.node.children()]
        splices = [
            self._whole_line(child.key_start, self._after_comma(child.end))
            for child in children
            if child.start in container.dropped
        ]
        kept = [child for child in children if child.start not in container.dropped]
        if kept and container.dropped and kept[-1] is not children[-1]:
            comma = self._after_comma(kept[-1].end)
            following = children[children.index(kept[-1]) + 1].key_start
            blank = not self._original[comma:following].strip(" \t")
            splices.append((comma - 1, following if blank else comma, ""))
        return splices

    def _additions(self, container: _Container) -> list[Splice]:
        if not container.added:
            return []
        children = [child for _token, child in container.node.children()]
        kept = [child for child in children if child.start not in container.dropped]
        indent = (
            self._own_line_indent(children[0].key_start) if children else self._new_indent(container.node)
        )
        written = [self._member(key, value, indent) for key, value in container.added]
        if indent is None:
            joined = ", ".join(written)
            if kept:
                return [(kept[-1].end, kept[-1].end, f", {joined}")]
            return [(container.node.start + 1, container.node.start + 1, joined)]
        gap = self._break + indent
        if kept:
            return [(kept[-1].end, kept[-1].end, "".join(f",{gap}{one}" for one in written))]
        start = container.node.start + 1
        closing = "" if children else self._break + self._line_indent(container.node.start)
        return [(start, start, f"{gap}" + f",{gap}".join(written) + closing)]

    def _member(self, key: str | None, value: object, indent: str | None) -> str:
        written = self._render(value, indent)
        return written if key is None else f"{json.dumps(key, ensure_ascii=False)}: {written}"

    def _render(self, value: object, indent: str | None) -> str:
        if indent is None or not self._break or not isinstance(value, (dict, list)) or not value:
            return json.dumps(value, ensure_ascii=False)
        pretty = json.dumps(value, ensure_ascii=False, indent=_UNIT)
        return pretty.replace("\n", self._break + indent)

    def _after_comma(self, offset: int) -> int:
        """Where the comma behind `offset` ends, or `offset` when none follows."""
        comma = _COMMA.match(self._bare, offset)
        return comma.end() if comma else offset

    def _whole_line(self, start: int, end: int) -> Splice:
        """The span from `start` to `end`, with its whole line when nothing else stands there."""
        line = self._line_start(start)
        if not self._original[line:start].strip() and (rest := _REST_OF_LINE.match(self._original, end)):
            return line, rest.end(), ""
        blanks = _BLANKS.match(self._original, end)
        return start, blanks.end() if blanks else end, ""

    def _line_start(self, offset: int) -> int:
        return max(self._original.rfind("\n", 0, offset), self._original.rfind("\r", 0, offset)) + 1

    def _line_indent(self, offset: int) -> str:
        """The blanks at the beginning of the line."""
        line = self._original[self._line_start(offset) : offset]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _own_line_indent(self, offset: int) -> str | None:
        """The blanks before `offset`, or None when something else stands before it on its line."""
        line = self._original[self._line_start(offset) : offset]
        return line if self._break and not line.strip(" \t") else None

    def _new_indent(self, node: Node) -> str | None:
        """What members of an empty container are indented with."""
        return self._line_indent(node.start) + _UNIT if self._break else None

"""Changing single values of a YAML text: every other character, comments included, stays as it is.

What was cut in is compared with what was meant; where that fails (a change inside of what an alias shows,
say) the whole document is written anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from jobs.dialects import spans
from jobs.dialects.base import Refused
from jobs.dialects.edit import Change, Drop, Put, Rename
from jobs.dialects.yaml_text import writing
from jobs.dialects.yaml_text.changes import Insert, changed, finer
from jobs.dialects.yaml_text.source import Pick, YamlSource, read
from jobs.dialects.yaml_text.tree import YamlNode

_BREAK: Final = re.compile(r"\r\n|\r|\n")
_COLON: Final = re.compile(r"\s*:")
_COMMENT: Final = re.compile(r"[ \t]+#[^\r\n]*")
_TO_COMMENT: Final = re.compile(r"[ \t]*(?:(?<=[ \t])#[^\r\n]*)?")
_REST_OF_LINE: Final = re.compile(r"[ \t]*(?:\r\n|\r|\n|\Z)")

Splice = tuple[int, int, str]


def edit(source: YamlSource, edits: Iterable[Change], pick: Pick | None = None) -> str:
    """The text of `source` with `edits` made; those whose place does not exist are left out."""
    text, rules = source.text, source.rules
    wanted = [each for each in edits if each.pointer]
    if not wanted:
        return text
    meant = changed(source.value, wanted)
    if meant == source.value:
        return text
    editor = _Editor(source)
    for one in finer(source.value, wanted):
        editor.take(one)
    new = editor.text()
    try:
        if read(new, rules, pick).value == meant:
            return new
    except Refused:
        pass  # written anew below
    top = source.tree
    return f"{text[: top.start]}{writing.write(meant)}{text[top.end :].lstrip()}"


@dataclass(slots=True)
class _Container:
    """What is to happen inside one object or list."""

    node: YamlNode
    dropped: set[int] = field(default_factory=set)
    added: list[tuple[str, object]] = field(default_factory=list)


class _Editor:
    """Collects what changes, then cuts it into the text."""

    def __init__(self, source: YamlSource) -> None:
        self._source = source
        self._text = source.text
        found = _BREAK.search(source.text)
        self._break = found[0] if found else "\n"
        self._containers: dict[int, _Container] = {}
        self._splices: list[Splice] = []

    def take(self, change: Change | Insert) -> None:
        """Note one change; one that leads through an alias is left to whoever compares."""
        tokens = spans.split(change.pointer)
        parent = self._source.tree
        for token in tokens[:-1]:
            inner = parent.child(token)
            if parent.alias or not isinstance(inner, YamlNode):
                return
            parent = inner
        if parent.alias or (parent.members is None and parent.items is None):
            return
        node = parent.child(tokens[-1])
        container = self._containers.setdefault(id(parent), _Container(parent))
        if isinstance(change, Drop):
            container.dropped.add(id(node))
        elif isinstance(node, YamlNode):
            self._take_at(node, parent, change, tokens[-1])
        elif isinstance(change, Put) and (parent.members is not None or tokens[-1] == "-"):
            container.added.append((tokens[-1], change.value))

    def _take_at(self, node: YamlNode, parent: YamlNode, change: Put | Rename | Insert, token: str) -> None:
        """Note a change of what is there already; merged members (`<<`) are written anew beside the merge."""
        if isinstance(change, Insert):
            self._insert(node, change.value)
        elif isinstance(change, Rename):
            if node.parent is parent:
                new = writing.key_of(change.key, in_flow=parent.flow)
                self._splices.append((node.key_start, node.key_end, new))
        elif node.parent is parent:
            self._replace(node, change.value)
        elif parent.members is not None:
            self._containers[id(parent)].added.append((token, change.value))

    def text(self) -> str:
        """The changed text."""
        for container in self._containers.values():
            self._change(container)
        parts, done = [], 0
        for start, stop, new in sorted(
            self._splices, key=lambda splice: (splice[0], splice[0] != splice[1], -splice[1])
        ):
            if start >= done:  # inside of something that is replaced nothing else changes
                parts += [self._text[done:start], new]
                done = stop
        return "".join(parts) + self._text[done:]

    def _change(self, container: _Container) -> None:
        """Drop and add members; a container that loses all of them, or had none, is written anew."""
        node = container.node
        own = node.own()
        kept = [child for child in own if id(child) not in container.dropped]
        if kept:
            drops, additions = (
                (self._flow_drops, self._flow_additions) if node.flow else (self._drops, self._additions)
            )
            self._splices += drops(own, kept)
            self._splices += additions(kept[-1], container)
        elif own or container.added:
            added = [value for _key, value in container.added]
            self._replace(node, added if node.members is None else dict(container.added))

    def _replace(self, node: YamlNode, value: object) -> None:
        """Cut `value` in where `node` stands, in the style of what stands around it."""
        parent = node.parent
        if parent is not None and parent.flow:
            self._splices.append((node.start, node.end, writing.flow(value)))
            return
        if parent is None:
            self._splices.append((node.start, node.end, writing.write(value).rstrip("\n")))
            return
        after = self._after_mark(node)
        gap = self._text[after : node.start]
        indent = self._column(parent)
        written = (writing.item if parent.items is not None else writing.block)(value, indent)
        if isinstance(value, str) and node.style in ("'", '"') and "\n" not in written:
            written = " " + writing.quoted(value, node.style)
        if gap.strip():  # a comment stands there
            start, written = node.start, self._below(value, node, indent)
        elif gap.strip(" \t") == gap.strip(" \t\r\n") and gap and not written.startswith("\n"):
            start, written = node.start, written.lstrip(" ")
        else:
            start = after
        end = node.end
        comment = _COMMENT.match(self._text, end)
        first, newline, rest = written.partition("\n")
        if comment and newline:
            end = comment.end()
            written = f"{first}{comment[0]}\n{rest}"
        self._splices.append((start, end, written.replace("\n", self._break)))

    def _insert(self, node: YamlNode, value: object) -> None:
        """Put an element before `node`, if that one begins its line."""
        parent = node.parent
        line = self._line_start(node.key_start)
        if parent is not None and parent.flow:
            self._splices.append((node.start, node.start, f"{writing.flow(value)}, "))
        elif parent is not None and not self._text[line : node.key_start].strip():
            written = f"{self._text[line : node.key_start]}-{writing.item(value, self._column(parent))}\n"
            self._splices.append((line, line, written.replace("\n", self._break)))

    def _below(self, value: object, node: YamlNode, indent: int) -> str:
        """`value` where its own lines begin, behind a comment."""
        if isinstance(value, (dict, list)) and value:
            column = max(self._column_of(node.start), indent + 1)
            return writing.block(value, column - writing.STEP).lstrip("\n").lstrip(" ")
        return writing.scalar(value, indent)

    def _drops(self, own: list[YamlNode], kept: list[YamlNode]) -> Iterator[Splice]:
        """The lines of what goes; what follows moves up behind a dash."""
        staying = {id(child) for child in kept}
        for index, child in enumerate(own):
            if id(child) in staying:
                continue
            line = self._line_start(child.key_start)
            rest = _REST_OF_LINE.match(self._text, child.end)
            if self._text[line : child.key_start].strip():
                following = next((each for each in own[index + 1 :] if id(each) in staying), None)
                if following:
                    yield child.key_start, following.key_start, ""
            elif rest:
                yield line, rest.end(), ""
            else:
                blanks = self._text[child.end :]
                yield child.key_start, child.end + len(blanks) - len(blanks.lstrip(" \t")), ""

    def _additions(self, last: YamlNode, container: _Container) -> Iterator[Splice]:
        """New lines after the last one that stays."""
        if not container.added:
            return
        found = _TO_COMMENT.match(self._text, last.end)
        place = found.end() if found else last.end
        indent = self._column(container.node)
        lines = [self._line(key, value, indent, container.node) for key, value in container.added]
        gap = "\n" + " " * indent
        yield place, place, (gap + gap.join(lines)).replace("\n", self._break)

    def _line(self, key: str, value: object, indent: int, parent: YamlNode) -> str:
        if parent.members is None:
            return "-" + writing.item(value, indent)
        return f"{writing.key_of(key)}:{writing.block(value, indent)}"

    def _flow_drops(self, own: list[YamlNode], kept: list[YamlNode]) -> Iterator[Splice]:
        staying = {id(child) for child in kept}
        for child, following in zip(own, [*own[1:], None], strict=True):
            if id(child) in staying:
                continue
            if following is None:
                yield kept[-1].end, child.end, ""
            else:
                yield child.key_start, following.key_start, ""

    def _flow_additions(self, last: YamlNode, container: _Container) -> Iterator[Splice]:
        if not container.added:
            return
        line = self._text[self._line_start(last.key_start) : last.key_start]
        gap = f",{self._break}{line}" if not line.strip() else ", "
        is_list = container.node.members is None
        written = [
            writing.flow(value) if is_list else f"{writing.key_of(key, in_flow=True)}: {writing.flow(value)}"
            for key, value in container.added
        ]
        yield last.end, last.end, gap + gap.join(written)

    def _after_mark(self, node: YamlNode) -> int:
        """Where the colon or dash before a value ends."""
        if node.parent is not None and node.parent.items is not None:
            return node.key_end
        colon = _COLON.match(self._text, node.key_end)
        return colon.end() if colon else node.start

    def _column(self, node: YamlNode) -> int:
        """The indentation of the members of a list or object in block style."""
        own = node.own()
        return self._column_of(own[0].key_start if own else node.start)

    def _column_of(self, offset: int) -> int:
        return offset - self._line_start(offset)

    def _line_start(self, offset: int) -> int:
        start = max(self._text.rfind("\n", 0, offset), self._text.rfind("\r", 0, offset)) + 1
        return start + int(start == 0 and self._text.startswith("\ufeff"))

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
from jobs.dialects.edit import Change, RemoveValue, RenameKey, SetValue
from jobs.dialects.spans import Splice, escape, split
from jobs.dialects.yaml_text import emitter
from jobs.dialects.yaml_text.source import Pick, YamlSource, read
from jobs.dialects.yaml_text.values import YamlNode, copy_value

_BREAK: Final = re.compile(r"\r\n|\r|\n")
_COLON: Final = re.compile(r"\s*:")
_COMMENT: Final = re.compile(r"[ \t]+#[^\r\n]*")
_TO_COMMENT: Final = re.compile(r"[ \t]*(?:(?<=[ \t])#[^\r\n]*)?")
_REST_OF_LINE: Final = re.compile(r"[ \t]*(?:\r\n|\r|\n|\Z)")


def edit(source: YamlSource, edits: Iterable[Change], pick: Pick | None = None) -> str:
    """Return the text of `source` with `edits` made; those whose place does not exist are left out."""
    text, rules = source.text, source.rules
    wanted = [each for each in edits if each.pointer]
    if not wanted:
        return text
    meant = apply_changes(source.value, wanted)
    if meant == source.value:
        return text
    editor = _Editor(source)
    for one in refine(source.value, wanted):
        editor.take(one)
    new = editor.text()
    try:
        if read(new, rules, pick).value == meant:
            return new
    except Refused:
        pass  # written anew below
    top = source.tree
    return f"{text[: top.start]}{emitter.write(meant)}{text[top.end :].lstrip()}"


@dataclass(slots=True)
class _Container:
    """The changes inside one object or list."""

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
        if isinstance(change, RemoveValue):
            container.dropped.add(id(node))
        elif isinstance(node, YamlNode):
            self._take_at(node, parent, change, tokens[-1])
        elif isinstance(change, SetValue) and (parent.members is not None or tokens[-1] == "-"):
            container.added.append((tokens[-1], change.value))

    def _take_at(
        self, node: YamlNode, parent: YamlNode, change: SetValue | RenameKey | Insert, token: str
    ) -> None:
        """Note a change of what is there already; merged members (`<<`) are written anew beside the merge."""
        if isinstance(change, Insert):
            self._insert(node, change.value)
        elif isinstance(change, RenameKey):
            if node.parent is parent:
                new = emitter.key_of(change.key, in_flow=parent.flow)
                self._splices.append((node.key_start, node.key_end, new))
        elif node.parent is parent:
            self._replace(node, change.value)
        elif parent.members is not None:
            self._containers[id(parent)].added.append((token, change.value))

    def text(self) -> str:
        """Return the changed text."""
        for container in self._containers.values():
            self._change(container)
        ordered = sorted(self._splices, key=lambda splice: (splice[0], splice[0] != splice[1], -splice[1]))
        return spans.splice(self._text, ordered)

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
            self._splices.append((node.start, node.end, emitter.flow(value)))
            return
        if parent is None:
            self._splices.append((node.start, node.end, emitter.write(value).rstrip("\n")))
            return
        after = self._after_mark(node)
        gap = self._text[after : node.start]
        indent = self._column(parent)
        written = (emitter.item if parent.items is not None else emitter.block)(value, indent)
        if isinstance(value, str) and node.style in ("'", '"') and "\n" not in written:
            written = " " + emitter.quote(value, node.style)
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
            self._splices.append((node.start, node.start, f"{emitter.flow(value)}, "))
        elif parent is not None and not self._text[line : node.key_start].strip():
            written = f"{self._text[line : node.key_start]}-{emitter.item(value, self._column(parent))}\n"
            self._splices.append((line, line, written.replace("\n", self._break)))

    def _below(self, value: object, node: YamlNode, indent: int) -> str:
        """Return `value` where its own lines begin, behind a comment."""
        if isinstance(value, (dict, list)) and value:
            column = max(self._column_of(node.start), indent + 1)
            return emitter.block(value, column - emitter.STEP).lstrip("\n").lstrip(" ")
        return emitter.scalar(value, indent)

    def _drops(self, own: list[YamlNode], kept: list[YamlNode]) -> Iterator[Splice]:
        """Yield the lines of what goes; what follows moves up behind a dash."""
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
        lines = [self._write_member(key, value, indent, container.node) for key, value in container.added]
        gap = "\n" + " " * indent
        yield place, place, (gap + gap.join(lines)).replace("\n", self._break)

    def _write_member(self, key: str, value: object, indent: int, parent: YamlNode) -> str:
        if parent.members is None:
            return "-" + emitter.item(value, indent)
        return f"{emitter.key_of(key)}:{emitter.block(value, indent)}"

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
            emitter.flow(value) if is_list else f"{emitter.key_of(key, in_flow=True)}: {emitter.flow(value)}"
            for key, value in container.added
        ]
        yield last.end, last.end, gap + gap.join(written)

    def _after_mark(self, node: YamlNode) -> int:
        """Return the offset behind the colon or dash before a value."""
        if node.parent is not None and node.parent.items is not None:
            return node.key_end
        colon = _COLON.match(self._text, node.key_end)
        return colon.end() if colon else node.start

    def _column(self, node: YamlNode) -> int:
        """Return the indentation of the members of a list or object in block style."""
        own = node.own()
        return self._column_of(own[0].key_start if own else node.start)

    def _column_of(self, offset: int) -> int:
        return offset - self._line_start(offset)

    def _line_start(self, offset: int) -> int:
        start = spans.line_start(self._text, offset)
        return start + int(start == 0 and self._text.startswith("\ufeff"))


_GONE: Final = object()


def apply_changes(value: object, edits: Iterable[Change]) -> object:
    """`value` with `edits` made: all places are those from before, and outer edits win over inner ones."""
    new = copy_value(value)
    for edit in sorted(edits, key=lambda each: each.pointer.count("/"), reverse=True):
        tokens = split(edit.pointer)
        where: object = new
        for token in tokens[:-1]:
            where = _child(where, token)
        if isinstance(edit, RemoveValue):
            if _child(where, tokens[-1]) is not _GONE:
                _put_at(where, tokens[-1], _GONE)
        elif isinstance(edit, RenameKey):
            _rename(where, tokens[-1], edit.key)
        else:
            _put_at(where, tokens[-1], edit.value)
    return _remove_gone(new)


def _child(where: object, token: str) -> object:
    if isinstance(where, dict):
        return where.get(token, _GONE)
    if isinstance(where, list) and token.isdigit() and int(token) < len(where):
        return where[int(token)]
    return _GONE


def _put_at(where: object, name: str, value: object) -> None:
    if isinstance(where, dict):
        where[name] = value
    elif isinstance(where, list) and name == "-":
        where.append(value)
    elif isinstance(where, list) and name.isdigit() and int(name) < len(where):
        where[int(name)] = value


def _rename(where: object, name: str, key: str) -> None:
    """Give a member another name, in its place, unless the object has that one already."""
    if isinstance(where, dict) and name in where and key not in where:
        members = [(key if each == name else each, value) for each, value in where.items()]
        where.clear()
        where.update(members)


def _remove_gone(value: object) -> object:
    """Return `value` without what is gone."""
    if isinstance(value, dict):
        return {key: _remove_gone(inner) for key, inner in value.items() if inner is not _GONE}
    if isinstance(value, list):
        return [_remove_gone(inner) for inner in value if inner is not _GONE]
    return value


@dataclass(frozen=True, slots=True)
class Insert:
    """Put an element before the one at `pointer`."""

    pointer: str
    value: object


def refine(value: object, edits: Iterable[Change]) -> list[Change | Insert]:
    """Return `edits` of `value` with those that replace a list or object taken apart into what differs."""
    found: list[Change | Insert] = []
    for edit in edits:
        where = value
        for token in split(edit.pointer):
            where = _child(where, token)
        found += _list_differences(edit.pointer, where, edit.value) if isinstance(edit, SetValue) else [edit]
    return found


def _list_differences(pointer: str, old: object, new: object) -> Iterator[SetValue | RemoveValue | Insert]:
    """Yield the edits that make `old` say `new`."""
    if isinstance(old, dict) and isinstance(new, dict) and old and new:
        for key, value in new.items():
            if key not in old or old[key] != value:
                yield from _list_differences(f"{pointer}/{escape(key)}", old.get(key, _GONE), value)
        yield from (RemoveValue(f"{pointer}/{escape(key)}") for key in old if key not in new)
    elif isinstance(old, list) and isinstance(new, list) and old and new:
        yield from _list_list_differences(pointer, old, new)
    else:
        yield SetValue(pointer, new)


def _list_list_differences(
    pointer: str, old: list[object], new: list[object]
) -> Iterator[SetValue | RemoveValue | Insert]:
    """Elements that stay at both ends are kept, those between changed in their order."""
    before = _count_same(old, new)
    after = _count_same(old[before:][::-1], new[before:][::-1])
    gone, come = len(old) - before - after, len(new) - before - after
    both = min(gone, come)
    for index in range(before, before + both):
        yield from _list_differences(f"{pointer}/{index}", old[index], new[index])
    for index in range(before + both, before + gone):
        yield RemoveValue(f"{pointer}/{index}")
    for index in range(before + both, before + come):
        yield (
            Insert(f"{pointer}/{before + gone}", new[index])
            if after
            else SetValue(f"{pointer}/-", new[index])
        )


def _count_same(one: list[object], other: list[object]) -> int:
    """Count the elements at the beginning that are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((count for count, (a, b) in pairs if a != b), min(len(one), len(other)))

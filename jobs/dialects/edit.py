"""Edits of a JSON text: which ones make it say another document, and making them.

Every other character, comments included, stays as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from jobs.dialects import spans
from jobs.dialects.base import Fix
from jobs.dialects.document import Document
from jobs.dialects.json_cleanup import without_line_numbers
from jobs.dialects.patterns import compile_pattern
from jobs.dialects.source import Source, read
from jobs.dialects.spans import Node, Splice, escape, line_start

_KEY: Final = compile_pattern(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_COMMA: Final = re.compile(r"\s*+,")
_BREAK: Final = re.compile(r"\r\n|\r|\n")
_REST_OF_LINE: Final = re.compile(r"[ \t]*+(?:\r\n|\r|\n)")
_BLANKS: Final = re.compile(r"[ \t]*+")
_UNIT: Final = "  "


@dataclass(frozen=True, slots=True)
class SetValue:
    """Set the value at `pointer`; a last token that names nothing is added (`-` adds to a list)."""

    pointer: str
    value: object


@dataclass(frozen=True, slots=True)
class RemoveValue:
    """Remove the member or element at `pointer`."""

    pointer: str


@dataclass(frozen=True, slots=True)
class RenameKey:
    """Give the member at `pointer` another key; its value, its place and its comments stay."""

    pointer: str
    key: str


Change: TypeAlias = SetValue | RemoveValue | RenameKey


def changes_of(fixes: Iterable[Fix]) -> list[Change]:
    """Return the edits that make `fixes`; of two at one place the last counts."""
    return [_change_of(fix) for fix in {fix.pointer: fix for fix in fixes}.values()]


def _change_of(fix: Fix) -> Change:
    if fix.key is not None:
        return RenameKey(fix.pointer, fix.key)
    return RemoveValue(fix.pointer) if fix.value is None else SetValue(fix.pointer, fix.value)


@dataclass(slots=True)
class _Container:
    """The changes inside one object or list."""

    node: Node
    dropped: set[int] = field(default_factory=set)
    added: list[tuple[str | None, object]] = field(default_factory=list)


def apply_fixes(document: Document, fixes: Iterable[Fix]) -> str:
    """The text with `fixes` made; of two at one place the last counts.  Raises Refused on unreadable text."""
    return edit(document, changes_of(fixes))


def edit(document: Document, edits: Iterable[Change]) -> str:
    """Return the text with `edits` made; those whose place does not exist are left out.

    A pasted listing loses its line numbers, which an added line would make wrong.
    """
    wanted = list(edits)
    if not wanted:
        return document.text
    source = read(document, repeats=True)
    if source.cleaned.numbered:
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
        self._bare = source.cleaned.bare
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
        if isinstance(change, RenameKey):
            self._rename(parent, node, change.key)
            return
        container = self._containers.setdefault(parent.start, _Container(parent))
        if isinstance(change, RemoveValue):
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
        old = _KEY.match(self._source.cleaned.strict, node.key_start)
        if old:
            self._splices.append((*old.span(), json.dumps(key, ensure_ascii=False)))

    def text(self) -> str:
        """Return the changed text."""
        for container in self._containers.values():
            self._splices.extend(self._drops(container))
            self._splices.extend(self._additions(container))
        return spans.splice(self._original, sorted(self._splices, key=lambda splice: splice[:2]))

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
        """Return the offset behind the comma that follows `offset`, or `offset` when none follows."""
        comma = _COMMA.match(self._bare, offset)
        return comma.end() if comma else offset

    def _whole_line(self, start: int, end: int) -> Splice:
        """Return the span from `start` to `end`, with its whole line when nothing else stands there."""
        line = line_start(self._original, start)
        if not self._original[line:start].strip() and (rest := _REST_OF_LINE.match(self._original, end)):
            return line, rest.end(), ""
        blanks = _BLANKS.match(self._original, end)
        return start, blanks.end() if blanks else end, ""

    def _line_indent(self, offset: int) -> str:
        """Return the blanks at the beginning of the line."""
        line = self._original[line_start(self._original, offset) : offset]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _own_line_indent(self, offset: int) -> str | None:
        """Return the blanks before `offset`, or None when something else stands before it on its line."""
        line = self._original[line_start(self._original, offset) : offset]
        return line if self._break and not line.strip(" \t") else None

    def _new_indent(self, node: Node) -> str | None:
        """Return the indentation of the members of an empty container."""
        return self._line_indent(node.start) + _UNIT if self._break else None


class CannotPatchError(Exception):
    """The order of a list would have to change: only writing it anew says that."""


def difference(
    before: object, after: object, there: object, identities: Mapping[str, str]
) -> list[SetValue | RemoveValue] | None:
    """Edits to a text holding `there`, which says what the document `before` says, so that it says `after`.

    `identities` names, for a list under a key, the member that tells its elements apart.  Returns None
    when the elements would have to change places.
    """
    try:
        return list(_object(before, after, there, "", identities))
    except CannotPatchError:
        return None


def _object(
    before: object, after: object, there: object, pointer: str, identities: Mapping[str, str]
) -> Iterator[SetValue | RemoveValue]:
    if not (isinstance(before, dict) and isinstance(after, dict) and isinstance(there, dict)):
        yield SetValue(pointer, after)
        return
    for key, value in after.items():
        where = f"{pointer}/{escape(key)}"
        if key in before and before[key] == value:
            continue
        identity = identities.get(key)
        if identity and isinstance(there.get(key), list):
            yield from _list(before.get(key), value, there[key], where, identity, identities)
        elif isinstance(value, dict) and isinstance(there.get(key), dict):
            yield from _object(before.get(key, {}), value, there[key], where, identities)
        else:
            yield SetValue(where, value)
    for key in before:
        if key not in after and key in there:
            yield RemoveValue(f"{pointer}/{escape(key)}")


def _list(
    before: object,
    after: object,
    there: list[object],
    pointer: str,
    identity: str,
    identities: Mapping[str, str],
) -> Iterator[SetValue | RemoveValue]:
    old, new = _by_identity(before, identity), _by_identity(after, identity)
    now = _names_now(old, new)
    if list(new)[: len(now)] != list(now.values()):
        raise CannotPatchError
    names = [str(element.get(identity)) if isinstance(element, dict) else "" for element in there]
    counting = {name: index for index, name in enumerate(names)}  # of equal names the last one counts
    for index, (name, element) in enumerate(zip(names, there, strict=True)):
        where = f"{pointer}/{index}"
        if name not in now:
            yield RemoveValue(where)
        elif name != now[name]:
            yield from _object(
                _common_members(old[name], new[now[name]]), new[now[name]], element, where, identities
            )
        elif index == counting[name] and old[name] != new[name]:
            yield from _object(old[name], new[name], element, where, identities)
    for name, element in new.items():
        if name not in now.values():
            yield SetValue(f"{pointer}/-", element)


def _names_now(old: Mapping[str, object], new: Mapping[str, object]) -> dict[str, str]:
    """Return the new name of each element that stays: of as many elements, the one in its place."""
    renamed = zip(old, new, strict=True) if len(old) == len(new) else ()
    changed = {name: other for name, other in renamed if name not in new and other not in old}
    return {name: changed.get(name, name) for name in old if name in new or name in changed}


def _common_members(before: object, after: object) -> object:
    """`before` without what `after` lacks: extras are filed under the old name, and stay in the text."""
    if isinstance(before, dict) and isinstance(after, dict):
        return {key: value for key, value in before.items() if key in after}
    return before


def _by_identity(elements: object, identity: str) -> dict[str, object]:
    if not isinstance(elements, list):
        return {}
    return {str(element[identity]): element for element in elements}

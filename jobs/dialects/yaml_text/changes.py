"""What edits make of a plain value: the measure for what they make of a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from jobs.dialects.edit import Change, Drop, Put, Rename
from jobs.dialects.spans import escape, split
from jobs.dialects.yaml_text.values import copied

_GONE: Final = object()


def changed(value: object, edits: Iterable[Change]) -> object:
    """`value` with `edits` made: all places are those from before, and outer edits win over inner ones."""
    new = copied(value)
    for edit in sorted(edits, key=lambda each: each.pointer.count("/"), reverse=True):
        tokens = split(edit.pointer)
        where: object = new
        for token in tokens[:-1]:
            where = _child(where, token)
        if isinstance(edit, Drop):
            if _child(where, tokens[-1]) is not _GONE:
                _set(where, tokens[-1], _GONE)
        elif isinstance(edit, Rename):
            _rename(where, tokens[-1], edit.key)
        else:
            _set(where, tokens[-1], edit.value)
    return _without(new)


def _child(where: object, token: str) -> object:
    if isinstance(where, dict):
        return where.get(token, _GONE)
    if isinstance(where, list) and token.isdigit() and int(token) < len(where):
        return where[int(token)]
    return _GONE


def _set(where: object, name: str, value: object) -> None:
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


def _without(value: object) -> object:
    """`value` without what is gone."""
    if isinstance(value, dict):
        return {key: _without(inner) for key, inner in value.items() if inner is not _GONE}
    if isinstance(value, list):
        return [_without(inner) for inner in value if inner is not _GONE]
    return value


@dataclass(frozen=True, slots=True)
class Insert:
    """Put an element before the one at `pointer`."""

    pointer: str
    value: object


def finer(value: object, edits: Iterable[Change]) -> list[Change | Insert]:
    """`edits` of `value` with those that replace a list or object taken apart into what differs."""
    found: list[Change | Insert] = []
    for edit in edits:
        where = value
        for token in split(edit.pointer):
            where = _child(where, token)
        found += _apart(edit.pointer, where, edit.value) if isinstance(edit, Put) else [edit]
    return found


def _apart(pointer: str, old: object, new: object) -> Iterator[Put | Drop | Insert]:
    """What makes `old` say `new`."""
    if isinstance(old, dict) and isinstance(new, dict) and old and new:
        for key, value in new.items():
            if key not in old or old[key] != value:
                yield from _apart(f"{pointer}/{escape(key)}", old.get(key, _GONE), value)
        yield from (Drop(f"{pointer}/{escape(key)}") for key in old if key not in new)
    elif isinstance(old, list) and isinstance(new, list) and old and new:
        yield from _of_lists(pointer, old, new)
    else:
        yield Put(pointer, new)


def _of_lists(pointer: str, old: list[object], new: list[object]) -> Iterator[Put | Drop | Insert]:
    """Elements that stay at both ends are kept, those between changed in their order."""
    before = _same(old, new)
    after = _same(old[before:][::-1], new[before:][::-1])
    gone, come = len(old) - before - after, len(new) - before - after
    both = min(gone, come)
    for index in range(before, before + both):
        yield from _apart(f"{pointer}/{index}", old[index], new[index])
    for index in range(before + both, before + gone):
        yield Drop(f"{pointer}/{index}")
    for index in range(before + both, before + come):
        yield Insert(f"{pointer}/{before + gone}", new[index]) if after else Put(f"{pointer}/-", new[index])


def _same(one: list[object], other: list[object]) -> int:
    """How many elements at the beginning are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((count for count, (a, b) in pairs if a != b), min(len(one), len(other)))

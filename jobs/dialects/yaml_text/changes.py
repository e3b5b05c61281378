"""What edits make of a plain value: the measure for what they make of a text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from jobs.dialects.edit import Drop, Put
from jobs.dialects.spans import split
from jobs.dialects.yaml_text.values import copied

_GONE: Final = object()


def changed(value: object, edits: Iterable[Put | Drop]) -> object:
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


def _without(value: object) -> object:
    """`value` without what is gone."""
    if isinstance(value, dict):
        return {key: _without(inner) for key, inner in value.items() if inner is not _GONE}
    if isinstance(value, list):
        return [_without(inner) for inner in value if inner is not _GONE]
    return value


def finer(value: object, edits: Iterable[Put | Drop]) -> list[Put | Drop]:
    """`edits` with those that replace a whole list of `value` taken apart where that says the same."""
    return [finest for edit in edits for finest in _apart(value, edit)]


def _apart(value: object, edit: Put | Drop) -> list[Put | Drop]:
    where = value
    for token in split(edit.pointer):
        where = _child(where, token)
    if isinstance(edit, Drop) or not (isinstance(where, list) and isinstance(edit.value, list)):
        return [edit]
    old, new = where, edit.value
    before = _same(old, new)
    after = _same(old[before:][::-1], new[before:][::-1])
    gone, come = len(old) - before - after, len(new) - before - after
    if not (before or after) or (come > gone and after):
        return [edit]
    both = min(gone, come)
    return [
        *(Put(f"{edit.pointer}/{before + n}", new[before + n]) for n in range(both)),
        *(Drop(f"{edit.pointer}/{before + n}") for n in range(both, gone)),
        *(Put(f"{edit.pointer}/-", new[before + n]) for n in range(both, come)),
    ]


def _same(one: list[object], other: list[object]) -> int:
    """How many elements at the beginning are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((count for count, (a, b) in pairs if a != b), min(len(one), len(other)))

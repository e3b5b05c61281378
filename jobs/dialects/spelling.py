"""Keys that are met in more than one spelling: which one a text uses, and writing that one again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from jobs.dialects.fields import AnyKey, Group, Records
from jobs.dialects.rendering import JsonObject
from jobs.dialects.request import says_something
from jobs.dialects.tables import table

KEPT: Final = "spelling"
"""The entry of a dialect's extras: key → the spellings that the text uses instead."""


def spellings(value: object, keys: tuple[AnyKey, ...]) -> dict[str, list[str]]:
    """The keys of which `value` uses other spellings, with those that it uses."""
    return dict(_used(value, table(keys).spelled))


def of_what_is_said(spelling: Mapping[str, list[str]], said: object) -> dict[str, list[str]]:
    """`spelling` without the keys that would not be written anyway."""
    written = set(_keys(said)) if spelling else set()
    return {key: used for key, used in spelling.items() if key in written}


def _used(value: object, keys: Iterable[AnyKey]) -> Iterator[tuple[str, list[str]]]:
    if not isinstance(value, dict):
        return
    for rule in keys:
        used = [name for name in (rule.key, *rule.aliases) if says_something(value.get(name))]
        if used not in ([], [rule.key]):
            yield rule.key, used
        if used and isinstance(rule, (Group, Records)):
            for inner in _inside(value[used[0]]):
                yield from _used(inner, table(rule.keys).spelled)


def _keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        for inner in value.values():
            yield from _keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _keys(inner)


def respelled(document: JsonObject, extras: Mapping[str, object]) -> JsonObject:
    """`document` with the keys spelled as `extras` remember it."""
    spelling = extras.get(KEPT)
    return _respelled(document, spelling) if isinstance(spelling, dict) else document


def _inside(value: object) -> Iterable[object]:
    return value if isinstance(value, list) else (value,)


def _respelled(document: JsonObject, spelling: Mapping[str, list[str]]) -> JsonObject:
    written: JsonObject = {}
    for key, value in document.items():
        for name in spelling.get(key, [key]):
            written[name] = _inner(value, spelling)
    return written


def _inner(value: object, spelling: Mapping[str, list[str]]) -> object:
    if isinstance(value, dict):
        return _respelled(value, spelling)
    if isinstance(value, list):
        return [_inner(item, spelling) for item in value]
    return value

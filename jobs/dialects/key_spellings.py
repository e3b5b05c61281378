"""Keys that are met in more than one spelling: which one a text uses, and writing that one again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from jobs.dialects.fields import AnyKey, Group, Records, table
from jobs.dialects.request import says_something
from jobs.dialects.text_renderer import JsonObject

KEPT: Final = "spelling"
"""The entry of a dialect's extras: key → the spellings that the text uses instead."""


def spellings(value: object, keys: tuple[AnyKey, ...]) -> dict[str, list[str]]:
    """Return the keys of which `value` uses other spellings, with those that it uses."""
    return dict(_list_spellings(value, table(keys).spelled))


def keep_written(spelling: Mapping[str, list[str]], said: object) -> dict[str, list[str]]:
    """Return `spelling` without the keys that would not be written anyway."""
    written = set(_list_keys(said)) if spelling else set()
    return {key: used for key, used in spelling.items() if key in written}


def _list_spellings(value: object, keys: Iterable[AnyKey]) -> Iterator[tuple[str, list[str]]]:
    if not isinstance(value, dict):
        return
    for rule in keys:
        used = [name for name in (rule.key, *rule.aliases) if says_something(value.get(name))]
        if used not in ([], [rule.key]):
            yield rule.key, used
        if used and isinstance(rule, (Group, Records)):
            there = value[used[0]]
            for inner in there if isinstance(there, list) else (there,):
                yield from _list_spellings(inner, table(rule.keys).spelled)


def _list_keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        for inner in value.values():
            yield from _list_keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _list_keys(inner)


def restore_spellings(document: JsonObject, extras: Mapping[str, object]) -> JsonObject:
    """Return `document` with the keys spelled as `extras` remember it."""
    spelling = extras.get(KEPT)
    return _respell(document, spelling) if isinstance(spelling, dict) else document


def _respell(document: JsonObject, spelling: Mapping[str, list[str]]) -> JsonObject:
    written: JsonObject = {}
    for key, value in document.items():
        for name in spelling.get(key, [key]):
            written[name] = _respell_inner(value, spelling)
    return written


def _respell_inner(value: object, spelling: Mapping[str, list[str]]) -> object:
    if isinstance(value, dict):
        return _respell(value, spelling)
    if isinstance(value, list):
        return [_respell_inner(item, spelling) for item in value]
    return value

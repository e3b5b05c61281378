"""The parts of a request beyond the document that a JobSpec would be written as, and restoring them.

These are a dialect's extras: pointer → value, in which elements of lists are named by what tells them
apart (`/JobSpecs/Worker/ExtraPodSpec`), so that they find their place again after the list has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from jobs.dialects.fields import AnyKey, Bag, Group, Records, table
from jobs.dialects.request import is_nothing
from jobs.dialects.spans import escape, split

Names: TypeAlias = Mapping[str, Callable[[Mapping[str, object]], object]]
"""For a list under a key: what tells its elements apart; those of which nothing does are counted."""


def by(*members: str) -> Callable[[Mapping[str, object]], object]:
    """Elements told apart by the first of `members` that they have."""
    return lambda element: next((element[member] for member in members if element.get(member)), "")


@dataclass(frozen=True, slots=True)
class Leftover:
    """A `value` without a meaning in a JobSpec: `pointer` in the text, `name` among the extras.

    `known` tells that a dialect's table has its key.
    """

    name: str
    pointer: str
    value: object
    known: bool


def find_extras(there: object, said: object, keys: Iterable[AnyKey], names: Names) -> tuple[Leftover, ...]:
    """Return everything in `there` that means nothing in a JobSpec; `said` is what would be written of it."""
    return tuple(_walk(there, said, tuple(keys), _Place("", "", ""), names))


def restore_extras(document: object, extras: Mapping[str, object], names: Names) -> None:
    """Put `extras` into `document`, except where it already says something."""
    for pointer, value in extras.items():
        if pointer.startswith("/"):
            _put_one(document, split(pointer), value, names)


@dataclass(frozen=True, slots=True)
class _Place:
    """A position in a request: its name, its pointer, and the key that leads there."""

    name: str
    pointer: str
    key: str

    def member(self, key: str, called: str) -> _Place:
        return _Place(f"{self.name}/{escape(called)}", f"{self.pointer}/{escape(key)}", called)

    def element(self, name: str, index: int) -> _Place:
        return _Place(f"{self.name}/{escape(name)}", f"{self.pointer}/{index}", self.key)


def _walk(
    there: object, said: object, keys: tuple[AnyKey, ...], place: _Place, names: Names
) -> Iterator[Leftover]:
    if not isinstance(there, dict):
        return
    rules = table(keys).by_name
    spoken = said if isinstance(said, dict) else {}
    for key, value in there.items():
        rule = rules.get(key)
        if is_nothing(value) or (rule is not None and _is_said(rule, value, spoken)):
            continue
        inner = place.member(key, rule.key if rule else key)
        if isinstance(rule, Group) and rule.path:
            yield from _walk(value, spoken.get(rule.key), rule.keys, inner, names)
        elif isinstance(rule, Records) and rule.path:
            yield from _walk_list(value, spoken.get(rule.key), rule, inner, names)
        elif isinstance(rule, Bag) and rule.path:
            yield from _unsaid(value, spoken.get(rule.key), inner)
        else:
            yield Leftover(inner.name, inner.pointer, value, rule is not None)


def _is_said(rule: AnyKey, value: object, spoken: Mapping[str, object]) -> bool:
    """Return whether a single value of a neutral key needs no keeping."""
    if not rule.path or isinstance(rule, (Group, Records, Bag)):
        return False
    return not rule.partial or not value or rule.key in spoken


def _walk_list(there: object, said: object, rule: Records, place: _Place, names: Names) -> Iterator[Leftover]:
    spoken = _by_name(said, rule.key, names)
    for name, (index, element) in _by_name(there, rule.key, names).items():
        where = place.element(name, index)
        if name in spoken:
            yield from _walk(element, spoken[name][1], rule.keys, where, names)
        elif rule.partial and name.partition("#")[0] not in spoken:
            yield Leftover(where.name, where.pointer, element, known=True)


def _unsaid(there: object, said: object, place: _Place) -> Iterator[Leftover]:
    """Members of the person's own that a JobSpec can't hold."""
    if not isinstance(there, dict):
        return
    for key, value in there.items():
        if not (isinstance(said, dict) and key in said):
            inner = place.member(key, key)
            yield Leftover(inner.name, inner.pointer, value, known=False)


def _put_one(where: object, tokens: list[str], value: object, names: Names) -> None:
    key = ""
    made: tuple[dict[str, object], str] | None = None
    for index, token in enumerate(tokens[:-1]):
        if isinstance(where, dict):
            whole_element = index == len(tokens) - 2
            if token in names and token not in where and not whole_element:  # what it belongs to is gone
                if made is not None:
                    del made[0][made[1]]
                return
            if token not in where and made is None:
                made = where, token
            where = where.setdefault(token, [] if token in names else {})
            key = token
        elif isinstance(where, list):
            where = _by_name(where, key, names).get(token, (0, None))[1]
    if isinstance(where, dict):
        where.setdefault(tokens[-1], value)
    elif isinstance(where, list) and tokens[-1] not in _by_name(where, key, names):
        where.append(value)


def _by_name(elements: object, key: str, names: Names) -> dict[str, tuple[int, object]]:
    """Elements with their indexes, by name; the second of one name is `name#2`.  Empty ones don't count."""
    name_of, unnamed = names.get(key, by()), 0
    named: dict[str, tuple[int, object]] = {}
    for index, element in enumerate(elements if isinstance(elements, list) else ()):
        if is_nothing(element):
            continue
        name = str((name_of(element) if isinstance(element, dict) else "") or "")
        if not name:
            name, unnamed = str(unnamed), unnamed + 1
        count, free = 1, name
        while free in named:
            count, free = count + 1, f"{name}#{count + 1}"
        named[free] = index, element
    return named

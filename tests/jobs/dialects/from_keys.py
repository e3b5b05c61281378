"""Requests made by hypothesis out of a dialect's table of keys: every key, every kind of value."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from hypothesis import strategies as st

from jobs.dialects.fields import (
    Amount,
    AnyKey,
    Bag,
    Choice,
    Flag,
    Fraction,
    Group,
    Integer,
    Named,
    Quantity,
    Records,
    Text,
    Texts,
)
from tests.jobs.dialects.strategies import env_names, json_keys, texts, values

Values = st.SearchStrategy[Any]
Own = Mapping[str, Values]
"""For a pointer without indexes: what stands there instead of what the table would say."""

plain = texts.filter(lambda value: "$SECRET:" not in value and "@" not in value)
words = st.text("abcXYZ019-", min_size=1, max_size=12)


def request(keys: Collection[AnyKey], own: Own, pointer: str = "") -> Values:
    """An object with the required `keys`, some of the others, and perhaps a key that nobody knows."""
    members = {rule.key: member(rule, own, pointer) for rule in keys}
    required = [rule.key for rule in keys if rule.required]
    others = [rule.key for rule in keys if not rule.required]
    known = {name for rule in keys for name in (rule.key, *rule.aliases)}
    strangers = st.tuples(json_keys.filter(lambda key: is_strange(key, known)), values)

    @st.composite
    def some(draw: st.DrawFn) -> dict[str, Any]:
        chosen = draw(st.lists(st.sampled_from(others), max_size=5, unique=True)) if others else []
        there = {key: draw(members[key]) for key in (*required, *chosen)}
        return there | dict([draw(strangers)] if draw(st.integers(0, 4)) == 4 else [])

    return some()


def is_strange(key: str, known: Collection[str]) -> bool:
    """Whether `key` is a key nobody knows, and not one that holds a secret or names an element."""
    return key.lower() not in {"name", "value", "key", "auth", "token", "type"} and key not in known


def member(rule: AnyKey, own: Own, pointer: str) -> Values:
    """What stands under the rule's key."""
    where = f"{pointer}/{rule.key}"
    if where in own:
        return own[where]
    if isinstance(rule, Named):
        return st.dictionaries(words, request(rule.keys, own, where), max_size=1)
    if isinstance(rule, Group):
        return request(rule.keys, own, where) | st.sampled_from([None, {}])
    if isinstance(rule, Records):
        return st.lists(
            request(rule.keys, own, where), min_size=rule.least, max_size=2, unique_by=_identity(rule)
        )
    return _value(rule)


def _value(rule: Text | Integer | Bag | Flag | Choice | Amount | Fraction | Texts) -> Values:
    match rule:
        case Text():
            return words if rule.allowed else plain if rule.blank else plain.filter(bool)
        case Integer():
            least = rule.least.value if rule.least else 0
            most = min(rule.most.value if rule.most else 1000, 1000)
            return st.integers(least, most) | st.integers(least, most).map(str)
        case Bag():
            return st.dictionaries(env_names, plain | st.integers(0, 9) | st.booleans(), max_size=2)
        case Flag():
            return st.booleans() | st.sampled_from(["True", "false"])
        case Choice():
            return st.sampled_from([*rule.meanings])
        case Amount():
            return amounts(rule)
        case Fraction():
            return st.integers(10, 90).map(lambda percent: percent / 100)
        case Texts():
            items = plain if rule.items == "string" else st.integers(1, 65535)
            return st.lists(items, max_size=2)


def amounts(rule: Amount) -> Values:
    """An amount as people write it."""
    number = st.integers(1, 512)
    if rule.quantity is Quantity.MEMORY:
        units = ["Gi", "GiB", "G", "GB", "Mi", "M", "MB", *([""] if rule.bare else [])]
        return st.builds(lambda count, unit: f"{count}{unit}", number, st.sampled_from(units))
    if rule.quantity is Quantity.CPU:
        return number.map(str) | number.map(lambda count: f"{count}00m") | st.just("0.5") | number
    return number.map(str) | number


def _identity(rule: Records) -> Callable[[Any], Any]:
    def identity(element: Any) -> str:
        return str(element.get(rule.identity)).lower() + str(sorted(element))

    return identity


def pointers(keys: Collection[AnyKey], pointer: str = "") -> Iterator[str]:
    """Every key of a table as a pointer without indexes."""
    for rule in keys:
        where = f"{pointer}/{rule.key}"
        yield where
        if isinstance(rule, (Group, Records)):
            yield from pointers(rule.keys, where)
        if isinstance(rule, Bag):
            yield from pointers(rule.known, where)


def used(value: object, pointer: str = "") -> Iterator[str]:
    """Every key of `value` as a pointer without indexes."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{pointer}/{key}"
            yield from used(inner, f"{pointer}/{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from used(inner, pointer)

"""What is asked of a table of keys again and again, worked out once for each table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from jobs.dialects.fields import AnyKey, Group, Records

Keys = tuple[AnyKey, ...]

_MOST: Final = 512
_TABLES: Final[dict[int, tuple[Keys, Table]]] = {}


@dataclass(frozen=True, slots=True)
class Table:
    """The rules of one object by each of their spellings.

    `aliased` ones have several themselves, `spelled` ones do so or hold others that do; those `kept` are
    not read.
    """

    by_name: Mapping[str, AnyKey]
    aliased: Keys
    spelled: Keys
    kept: Keys


def table(keys: Keys) -> Table:
    """The table of `keys`; tuples can't be hashed by their rules, so they are known by identity."""
    known = _TABLES.get(id(keys))
    if known is not None and known[0] is keys:
        return known[1]
    made = Table(
        by_name={name: rule for rule in keys for name in (rule.key, *rule.aliases)},
        aliased=tuple(rule for rule in keys if rule.aliases),
        spelled=tuple(rule for rule in keys if rule.aliases or _holds_aliased(rule)),
        kept=tuple(rule for rule in keys if not rule.path),
    )
    if len(_TABLES) >= _MOST:
        _TABLES.clear()
    _TABLES[id(keys)] = keys, made
    return made


def _holds_aliased(rule: AnyKey) -> bool:
    return isinstance(rule, (Group, Records)) and bool(table(rule.keys).spelled)

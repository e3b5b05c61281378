"""What is asked of a table of keys again and again, worked out once for each table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from jobs.dialects.fields import AnyKey

Keys = tuple[AnyKey, ...]

_MOST: Final = 512
_TABLES: Final[dict[int, tuple[Keys, Table]]] = {}


@dataclass(frozen=True, slots=True)
class Table:
    """The rules of one object by each of their spellings; `aliased` ones, and those `kept` unread."""

    by_name: Mapping[str, AnyKey]
    aliased: Keys
    kept: Keys


def table(keys: Keys) -> Table:
    """The table of `keys`; tuples can't be hashed by their rules, so they are known by identity."""
    known = _TABLES.get(id(keys))
    if known is not None and known[0] is keys:
        return known[1]
    made = Table(
        by_name={name: rule for rule in keys for name in (rule.key, *rule.aliases)},
        aliased=tuple(rule for rule in keys if rule.aliases),
        kept=tuple(rule for rule in keys if not rule.path),
    )
    if len(_TABLES) >= _MOST:
        _TABLES.clear()
    _TABLES[id(keys)] = keys, made
    return made

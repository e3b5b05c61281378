"""The rules for one key of a JSON dialect, as data: read by `record`, published by `schema`.

Every bound carries its source.  Where two vendors' pages differ the looser rule decides whether a text
is accepted; the stricter one is kept beside it, for a note.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

CONSOLE: Final = "Job Console"
"""The source of our own limits: they keep numbers inside what databases and machines can hold."""

MOST_REPLICAS: Final = 100_000
MOST_CPUS: Final = 1_000_000
MOST_GPUS: Final = 100_000
MOST_MEMORY_MIB: Final = 2**40
MOST_PORTS: Final = 65_535


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound and whose it is."""

    value: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """The base of all keys: `path` is the JobSpec field it fills, `source` whose key it is.

    `required` keys must be there.  `expected` names a page that asks for the key although it may be
    left out.  `aliases` are other spellings in which it is met; the first one found counts.  What a
    JobSpec can't hold of a `partial` key (a list's elements) is kept for export.
    """

    key: str
    source: str
    help: str
    path: str = ""
    required: bool = False
    expected: str = ""
    aliases: tuple[str, ...] = ()
    partial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(Key):
    """A string.  `blank` allows ""; `allowed` is a regular expression's set of characters (empty: all).

    `fallback` is proposed for a name in which nothing can be kept.  `numbers` stand without quotes too.
    """

    default: str = ""
    blank: bool = False
    numbers: bool = False
    allowed: str = ""
    longest: int = 0
    fallback: str = ""

    def fits(self, value: str) -> bool:
        """Return whether all characters are allowed."""
        return not self.allowed or bool(re.fullmatch(f"[{self.allowed}]+", value))

    def propose(self, value: str) -> str:
        """Return the nearest name that the rules allow."""
        name = re.sub(f"[^{self.allowed}]+", "_", value).strip("_") if self.allowed else value
        return (name or self.fallback)[: self.longest or None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Integer(Key):
    """A whole number in `unit`.

    Below `least` or above `most` it is refused.  Below `advised` it is taken as it is; below `floor`, where
    no machine could do it, it is raised to `advised`, else to `floor`; both are noted.
    `nullable` makes null a value of its own.  On a `scale` what lies beyond a bound means the bound (the
    greatest priority there is); elsewhere nobody knows what was meant by it.
    """

    default: int | None = None
    unit: str = ""
    nullable: bool = False
    scale: bool = False
    least: Limit | None = None
    most: Limit | None = None
    floor: Limit | None = None
    advised: Limit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Records(Key):
    """A list of objects with `keys`, told apart by the value of their key `identity`."""

    keys: tuple[AnyKey, ...]
    identity: str
    most: int
    least: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bag(Key):
    """An object with keys of the person's own; `known` are those that mean something."""

    known: tuple[AnyKey, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag(Key):
    """True or false."""

    default: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(Key):
    """A word out of a list: `meanings` says what each stands for in a JobSpec ("" for nothing).

    `open` ones are not known in full: another word is kept, with a note.
    """

    meanings: Mapping[str, str]
    default: str = ""
    open: bool = False


class Quantity(StrEnum):
    """The kind of an amount; the value is the unit of a JobSpec."""

    MEMORY = "MiB"
    CPU = "milli-CPU"
    COUNT = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount(Key):
    """A quantity with its unit in a string, `"16Gi"`; read into the unit of a JobSpec.

    `bare` is the unit of a number without one ("" when it can't go without).
    """

    quantity: Quantity
    default: int
    most: Limit
    least: Limit | None = None
    bare: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fraction(Key):
    """A decimal number between `least` and `most`, as (value, source)."""

    least: tuple[str, str] | None = None
    most: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts(Key):
    """A list of strings, or of what JSON Schema calls `items`; `alone` ones may stand without a list."""

    items: str = "string"
    alone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Group(Key):
    """An object with `keys` of its own.  Its `path` is `*` when they fill several fields of a JobSpec."""

    keys: tuple[AnyKey, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Named(Key):
    """An object whose members, under names of the person's own, are objects with `keys` (v2's taskRoles).

    Names are of the characters `allowed` and begin with no digit; `names` is the JobSpec field they fill.
    """

    keys: tuple[AnyKey, ...]
    most: int
    names: str = ""
    allowed: str = "A-Za-z0-9_"
    fallback: str = "task"

    def fits(self, name: str) -> bool:
        """Return whether a member may be called `name`."""
        return bool(re.fullmatch(f"(?![0-9])[{self.allowed}]+", name))

    def propose(self, name: str) -> str:
        """Return the nearest name that the rules allow."""
        kept = re.sub(f"[^{self.allowed}]+", "_", name).strip("_") or self.fallback
        return f"{self.fallback}_{kept}" if kept[0].isdigit() else kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts(Named):
    """An object of whole numbers under names of the person's own (v2's ports), by the rule `count`."""

    keys: tuple[AnyKey, ...] = ()
    count: Integer


AnyKey: TypeAlias = (
    Text | Integer | Records | Bag | Flag | Choice | Amount | Fraction | Texts | Group | Named | Counts
)


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
    """Return the table of `keys`; tuples can't be hashed by their rules, so they are known by identity."""
    known = _TABLES.get(id(keys))
    if known is not None and known[0] is keys:
        return known[1]
    made = Table(
        by_name={name: rule for rule in keys for name in (rule.key, *rule.aliases)},
        aliased=tuple(rule for rule in keys if rule.aliases),
        spelled=tuple(
            rule
            for rule in keys
            if rule.aliases or (isinstance(rule, (Group, Records)) and table(rule.keys).spelled)
        ),
        kept=tuple(rule for rule in keys if not rule.path),
    )
    if len(_TABLES) >= _MOST:
        _TABLES.clear()
    _TABLES[id(keys)] = keys, made
    return made

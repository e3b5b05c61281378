"""Reading one JSON object by the rules of its keys; everything wrong is collected, nothing raised.

Numbers in quotes are numbers with a note (OpenPAI v0.14 converts them too), and 2.0 is 2.  After a
problem a harmless value is returned, so that the rest of the text is still looked at.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from jobs.dialects import amounts
from jobs.dialects.base import Fix
from jobs.dialects.fields import CONSOLE, Bag, Integer, Key, Records, Text
from jobs.dialects.findings import Findings
from jobs.dialects.spans import escape
from jobs.dialects.syntax import MAX_INTEGER

_NUMBER: Final = re.compile(r"\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\s*", re.ASCII)
_SHOWN: Final = 60
_LONGEST_NUMBER: Final = 40
_MISSING: Final = object()
_EMPTY: Final[tuple[object, ...]] = ("", [], {})
_SUGGESTED: Final = 50
"""For so many unknown keys a known one is looked for; a file with more was not mistyped."""
_LONGEST_KEY: Final = 60
_ALIKE: Final = 0.8
_ALIKE_WORD: Final = 0.78
"""From here on two words are one that was mistyped: `Suceeded` is, `disable` for `enable` is not."""
_SHORT_WORD: Final = 3
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


class Record:
    """One JSON object at `pointer`; `taken` are the names that a proposed one must not repeat.

    `doubtful` are the keys with whose values something is wrong: nothing is compared with them.
    """

    def __init__(
        self, value: Mapping[str, object], pointer: str, findings: Findings, taken: set[str] | None = None
    ) -> None:
        self.value = value
        self.pointer = pointer
        self.findings = findings
        self.taken = set() if taken is None else taken
        self.doubtful: set[str] = set()

    def at(self, key: str) -> str:
        """Return the pointer of a member."""
        return f"{self.pointer}/{escape(key)}"

    def text(self, rule: Text) -> str:
        """Return the string under the rule's key, or its default."""
        value = self.value.get(rule.key, _MISSING)
        if value is _MISSING:
            self._absent(rule, rule.default)
            return rule.default
        if rule.numbers and isinstance(value, (int, float)) and not isinstance(value, bool):
            value = str(int(value)) if value == int(value) else str(value)
        if not isinstance(value, str):
            self._wrong_type(rule, value, "text", _as_text(rule, value))
            return rule.default
        if not value:
            if not rule.blank:
                self._problem("empty", rule, rule.source)
            return value
        if not rule.fits(value):
            fix = Fix(self.at(rule.key), self._free(rule.propose(value)))
            self._problem("bad_name", rule, rule.source, fix, value=short(value), allowed=rule.allowed)
        elif rule.longest and len(value) > rule.longest:
            fix = Fix(self.at(rule.key), value[: rule.longest])
            self._problem("too_long", rule, CONSOLE, fix, length=len(value), most=rule.longest)
        return value

    def integer(self, rule: Integer) -> int:
        """Return the whole number under the rule's key, or its default."""
        number = self.optional_integer(rule)
        return number if number is not None else rule.default or 0

    def optional_integer(self, rule: Integer) -> int | None:
        """Like `integer`, for keys where null is a value."""
        value = self.value.get(rule.key, _MISSING)
        if value is _MISSING:
            self._absent(rule, rule.default)
            return rule.default
        if value is None and rule.nullable:
            return None
        number = as_number(value)
        if number is None:
            meant = amounts.whole_in_unit(value, rule.unit) if isinstance(value, str) else None
            self._wrong_type(rule, value, "integer", meant)
            return rule.default if meant is None else meant
        if isinstance(number, float) and not number.is_integer():
            taken = math.ceil(number)
            self._problem("not_whole", rule, rule.source, Fix(self.at(rule.key), taken), value=number)
            return taken
        if isinstance(value, str):
            self.findings.note(
                "number_from_text", self.at(rule.key), key=rule.key, value=short(value), taken=int(number)
            )
        return self._check_bounds(rule, int(number))

    def records(self, rule: Records) -> Iterator[Record]:
        """Yield the objects of a list; nothing where there is none."""
        value = self.value.get(rule.key, _MISSING)
        if value is _MISSING:
            self._absent(rule, None)
            return
        if not isinstance(value, list):
            self._wrong_type(rule, value, "list", None)
            return
        if len(value) < rule.least:
            self._problem("too_few", rule, rule.source, least=rule.least)
        if len(value) > rule.most:
            self._problem("too_many", rule, CONSOLE, count=len(value), most=rule.most)
            return
        names = {str(item.get(rule.identity)) for item in value if isinstance(item, dict)}
        for index, item in enumerate(value):
            pointer = f"{self.at(rule.key)}/{index}"
            if isinstance(item, dict):
                yield Record(item, pointer, self.findings, names)
            else:
                self.findings.problem(
                    "wrong_type", pointer, rule.source, key=rule.key, expected="object", got=kind_of(item)
                )

    def bag(self, rule: Bag) -> Mapping[str, object]:
        """Return the members of an object with keys of the person's own; empty where there is none."""
        value = self.value.get(rule.key, _MISSING)
        if value is _MISSING:
            return {}
        if not isinstance(value, dict):
            self._wrong_type(rule, value, "object", None)
            return {}
        return value

    def unknown(self, known: Collection[str]) -> dict[str, object]:
        """Return the members whose keys are not `known`, each noted with the known key it resembles."""
        strangers = {key: value for key, value in self.value.items() if key not in known}
        taken = {key for key in self._keys_there() if key not in strangers}
        for number, key in enumerate(strangers):
            meant = nearest_key(key, known) if number < _SUGGESTED else None
            fix = None
            if meant in taken:
                meant = None
            elif meant and is_misspelt(key, meant):
                taken.add(meant)
                fix = Fix(self.at(key), key=meant)
            self.findings.note("unknown_key", self.at(key), fix, key=short(key), meant=meant)
        return strangers

    def _keys_there(self) -> Collection[str]:
        """Return every key that the object has in the text."""
        return self.value

    def _free(self, name: str) -> str:
        """`name`, with a number behind it when it is taken."""
        number, free = 2, name
        while free in self.taken:
            free, number = f"{name}_{number}", number + 1
        self.taken.add(free)
        return free

    def _absent(self, rule: Key, default: str | int | None) -> None:
        """Say what a missing key means."""
        if rule.required:
            self._problem("required", rule, rule.source)
        elif rule.expected:
            self.findings.note(
                "default_taken", self.at(rule.key), key=rule.key, value=default, source=rule.expected
            )

    def _check_bounds(self, rule: Integer, number: int) -> int:
        """Return `number` within the rule's bounds."""
        where = self.at(rule.key)
        if rule.least and number < rule.least.value:
            fix = Fix(where, rule.least.value) if rule.scale else None
            self._problem("too_small", rule, rule.least.source, fix, value=number, least=rule.least.value)
            return rule.least.value
        most = rule.most.value if rule.most else MAX_INTEGER
        if number > most:
            source = rule.most.source if rule.most else CONSOLE
            fix = Fix(where, most) if rule.scale else None
            self._problem("too_great", rule, source, fix, value=number, most=most)
            return most
        if rule.floor and number < rule.floor.value:
            taken = rule.advised or rule.floor
            self.findings.note(
                "raised", where, key=rule.key, value=number, taken=taken.value, source=taken.source
            )
            return taken.value
        if rule.advised and number < rule.advised.value:
            least, source = rule.advised.value, rule.advised.source
            self.findings.note("below_advised", where, key=rule.key, value=number, least=least, source=source)
        return number

    def _wrong_type(self, rule: Key, value: object, expected: str, meant: str | int | bool | None) -> None:
        """Tell that the value is of another type, and offer what it means; one that says nothing may go."""
        fix = Fix(self.at(rule.key), meant) if meant is not None else None
        if fix is None and not rule.required and (value is None or value in _EMPTY):
            fix = Fix(self.at(rule.key))
        self._problem("wrong_type", rule, rule.source, fix, expected=expected, got=kind_of(value))

    def _problem(
        self, code: str, rule: Key, source: str, fix: Fix | None = None, **params: str | float | None
    ) -> None:
        self.doubtful.add(rule.key)
        self.findings.problem(code, self.at(rule.key), source, fix, key=rule.key, **params)


def nearest_key(key: str, known: Iterable[str]) -> str | None:
    """Return the one of the `known` keys that `key` resembles most; None when there is none, or two."""
    close = difflib.get_close_matches(key[:_LONGEST_KEY], known, 2, _ALIKE)
    if len(close) > 1 and _likeness(key, close[0]) == _likeness(key, close[1]):
        return None
    return close[0] if close else None


def is_misspelt(key: str, meant: str) -> bool:
    """Return whether `key` can only be `meant` with a slip of the fingers.

    Word by word: `memoryGB` is no `memoryMB`, `gpuNumber` no `cpuNumber`, `disableX` no `enableX`.
    """
    if _plain(key) == _plain(meant):
        return True
    ours, theirs = (_WORD.findall(each) for each in (key, meant))
    return len(ours) == len(theirs) and all(map(_same_word, ours, theirs))


def _same_word(one: str, other: str) -> bool:
    one, other = (each.lower().removesuffix("s") for each in (one, other))
    if one == other:
        return True
    return min(len(one), len(other)) > _SHORT_WORD and _likeness(one, other) >= _ALIKE_WORD


def _plain(key: str) -> str:
    return key.lower().replace("_", "").replace("-", "")


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, other, one[:_LONGEST_KEY]).ratio()


def kind_of(value: object) -> str:
    """Return the JSON type of `value`, as a parameter of a problem."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "text"
    return "list" if isinstance(value, list) else "object"


def as_number(value: object) -> int | float | None:
    """Return the number that `value` is or, in quotes, says; None when it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return value
    if not isinstance(value, str) or len(value) > _LONGEST_NUMBER or not _NUMBER.fullmatch(value):
        return None
    number = float(value)
    if not math.isfinite(number):
        return None
    return int(value) if value.strip().lstrip("+-").isdigit() else number


def _as_text(rule: Text, value: object) -> str | None:
    """Return a number as the text it was surely meant to be, if that would be accepted."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and rule.fits(str(value)):
        return str(value)
    return None


def short(value: str) -> str:
    """Return `value` as a parameter of a problem or note: 60 characters at most."""
    return value if len(value) <= _SHOWN else value[: _SHOWN - 1] + "…"

"""Reading one JSON object by the rules of its keys; everything wrong is collected, nothing raised.

Numbers in quotes are numbers with a note (OpenPAI v0.14 converts them too), and 2.0 is 2.  After a
problem a harmless value is returned, so that the rest of the text is still looked at.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from jobs.dialects.base import Fix
from jobs.dialects.examine import MAX_INTEGER
from jobs.dialects.fields import CONSOLE, Bag, Integer, Key, Records, Text
from jobs.dialects.findings import Findings
from jobs.dialects.spans import escape

_NUMBER: Final = re.compile(r"\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\s*", re.ASCII)
_SHOWN: Final = 60
_LONGEST_NUMBER: Final = 40
_MISSING: Final = object()
_SUGGESTED: Final = 50
"""For so many unknown keys a known one is looked for; a file with more was not mistyped."""
_LONGEST_KEY: Final = 60


class Record:
    """One JSON object at `pointer`; `taken` are the names that a proposed one must not repeat."""

    def __init__(
        self, value: Mapping[str, object], pointer: str, findings: Findings, taken: set[str] | None = None
    ) -> None:
        self.value = value
        self.pointer = pointer
        self.findings = findings
        self.taken = set() if taken is None else taken

    def at(self, key: str) -> str:
        """The pointer of a member."""
        return f"{self.pointer}/{escape(key)}"

    def text(self, rule: Text) -> str:
        """The string under the rule's key, or its default."""
        value = self.value.get(rule.key, _MISSING)
        if value is _MISSING:
            self._absent(rule, rule.default)
            return rule.default
        if rule.numbers and isinstance(value, (int, float)) and not isinstance(value, bool):
            value = _written(value)
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
        """The whole number under the rule's key, or its default."""
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
            self._wrong_type(rule, value, "integer", rule.default)
            return rule.default
        if isinstance(number, float) and not number.is_integer():
            fix = Fix(self.at(rule.key), math.ceil(number))
            self._problem("not_whole", rule, rule.source, fix, value=number)
            return rule.default
        if isinstance(value, str):
            self.findings.note(
                "number_from_text", self.at(rule.key), key=rule.key, value=short(value), taken=int(number)
            )
        return self._bounded(rule, int(number))

    def records(self, rule: Records) -> Iterator[Record]:
        """The objects of a list; nothing where there is none."""
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
        """The members of an object with keys of the person's own; empty where there is none."""
        value = self.value.get(rule.key, _MISSING)
        if value is _MISSING:
            return {}
        if not isinstance(value, dict):
            self._wrong_type(rule, value, "object", None)
            return {}
        return value

    def unknown(self, known: Collection[str]) -> dict[str, object]:
        """The members whose keys are not `known`, each noted with the known key it resembles."""
        strangers = {key: value for key, value in self.value.items() if key not in known}
        for number, key in enumerate(strangers):
            free = [name for name in known if name not in self.value] if number < _SUGGESTED else []
            close = difflib.get_close_matches(key[:_LONGEST_KEY], free, 1, 0.8) if free else []
            meant = close[0] if close else None
            self.findings.note("unknown_key", self.at(key), key=short(key), meant=meant)
        return strangers

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

    def _bounded(self, rule: Integer, number: int) -> int:
        """`number` within the rule's bounds."""
        where = self.at(rule.key)
        if rule.least and number < rule.least.value:
            fix = Fix(where, rule.least.value)
            self._problem("too_small", rule, rule.least.source, fix, value=number, least=rule.least.value)
            return rule.least.value
        most = rule.most.value if rule.most else MAX_INTEGER
        if number > most:
            source = rule.most.source if rule.most else CONSOLE
            self._problem("too_great", rule, source, Fix(where, most), value=number, most=most)
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

    def _wrong_type(self, rule: Key, value: object, expected: str, instead: str | int | None) -> None:
        """The value is of another type; what could stand there instead is offered."""
        fix = Fix(self.at(rule.key), instead) if instead is not None or not rule.required else None
        self._problem("wrong_type", rule, rule.source, fix, expected=expected, got=kind_of(value))

    def _problem(
        self, code: str, rule: Key, source: str, fix: Fix | None = None, **params: str | float | None
    ) -> None:
        self.findings.problem(code, self.at(rule.key), source, fix, key=rule.key, **params)


def kind_of(value: object) -> str:
    """The JSON type of `value`, as a parameter of a problem."""
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
    """The number that `value` is or, in quotes, says; None when it is none."""
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
    """A number as the text it was surely meant to be, if that would be accepted."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and rule.fits(str(value)):
        return str(value)
    return None


def _written(number: float) -> str:
    """A number as the vendors' parsers write it."""
    return str(int(number)) if number == int(number) else str(number)


def short(value: str) -> str:
    """`value` as a parameter of a problem or note: 60 characters at most."""
    return value if len(value) <= _SHOWN else value[: _SHOWN - 1] + "…"

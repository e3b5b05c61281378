"""One object of a v2 file: like a `Request`, but null, `[]` and `{}` are values, as in OpenPAI's schema."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Final

from jobs.dialects.base import Fix
from jobs.dialects.fields import AnyKey, Counts, Group, Named, Records, table
from jobs.dialects.findings import Findings
from jobs.dialects.objects import free_name
from jobs.dialects.record import Record, as_number, kind_of, short
from jobs.dialects.request import Request
from jobs.dialects.spans import escape

_LOOKED_AT: Final = 50
_LONGEST: Final = 60


class FilePart(Request):
    """One object at `pointer`, with `keys`."""

    def __init__(
        self, raw: Mapping[str, object], pointer: str, findings: Findings, keys: tuple[AnyKey, ...]
    ) -> None:
        Record.__init__(self, raw, pointer, findings)
        self.raw = raw
        self.table = table(keys)
        self.spelled = {}

    def part(self, rule: Group) -> FilePart:
        """Return the object under the rule's key; one without members where there is none."""
        value = self.value.get(rule.key)
        if value is None and rule.key not in self.value:
            self._absent(rule, None)
        elif not isinstance(value, dict):
            self._wrong_type(rule, value, "object", None)
        held = value if isinstance(value, dict) else {}
        return FilePart(held, self.at(rule.key), self.findings, rule.keys)

    def parts(self, rule: Records) -> Iterator[FilePart]:
        """Yield the objects of a list; nothing where there is none."""
        for record in self.records(rule):
            yield FilePart(record.value, record.pointer, self.findings, rule.keys)

    def read_named(self, rule: Named) -> Iterator[tuple[str, FilePart]]:
        """Yield the objects under names of the person's own."""
        for name, value in self._members(rule):
            pointer = f"{self.at(rule.key)}/{escape(name)}"
            if isinstance(value, dict):
                yield name, FilePart(value, pointer, self.findings, rule.keys)
            else:
                wrong = FilePart({name: value}, self.at(rule.key), self.findings, ())
                wrong.part(Group(key=name, source=rule.source, help=""))

    def counts(self, rule: Counts) -> dict[str, int]:
        """Return the whole numbers under names of the person's own."""
        held = dict(self._members(rule))
        numbers = FilePart(held, self.at(rule.key), self.findings, ())
        return {name: numbers.integer(replace(rule.count, key=name)) for name in held}

    def strings(self, key: str, source: str, least: int = 0) -> tuple[tuple[str, str], ...]:
        """Return the strings of a list, each with its pointer."""
        value = self.value.get(key, [])
        where = self.at(key)
        if isinstance(value, str):
            self.findings.note("list_from_text", where, key=key)
            value = [value]
        if not isinstance(value, list):
            self.wrong_kind(where, key, source, "list", value)
            return ()
        if len(value) < least:
            self.findings.problem("too_few", where, source, key=key, least=least)
        for index, item in enumerate(value):
            if not isinstance(item, str):
                self.wrong_kind(f"{where}/{index}", key, source, "text", item)
        return tuple((f"{where}/{index}", item) for index, item in enumerate(value) if isinstance(item, str))

    def wrong_kind(self, where: str, key: str, source: str, expected: str, value: object) -> None:
        """Tell that the value at `where` is of another type."""
        fix = Fix(where, str(value)) if expected == "text" and as_number(value) is not None else None
        self.findings.problem(
            "wrong_type", where, source, fix, key=key, expected=expected, got=kind_of(value)
        )

    def note_unknown(self) -> dict[str, object]:
        """Return the unknown members, each noted."""
        return self.unknown(self.table.by_name)

    def _members(self, rule: Named) -> Iterator[tuple[str, object]]:
        """Yield the members of the object under the rule's key, and what is wrong with their names."""
        value = self.value.get(rule.key)
        where = self.at(rule.key)
        if value is None and rule.key not in self.value:
            self._absent(rule, None)
            return
        if not isinstance(value, dict):
            self._wrong_type(rule, value, "object", None)
            return
        if rule.required and not value:
            self._problem("too_few", rule, rule.source, least=1)
        if len(value) > rule.most:
            self._problem("too_many", rule, rule.source, count=len(value), most=rule.most)
            return
        for name, inner in value.items():
            if not rule.fits(name):
                pointer = f"{where}/{escape(name)}"
                fix = Fix(pointer, key=free_name(rule.propose(name), value))
                self.findings.problem(
                    "bad_member", pointer, rule.source, fix, value=short(name), allowed=rule.allowed
                )
            yield name, inner


def find_nearest(name: str, known: Collection[str]) -> str | None:
    """Return the one of the first `known` names that `name` most resembles."""
    some = [str(each)[:_LONGEST] for each in islice(known, _LOOKED_AT)]
    close = difflib.get_close_matches(name[:_LONGEST], some, 1)
    return next((each for each in islice(known, _LOOKED_AT) if close and each[:_LONGEST] == close[0]), None)

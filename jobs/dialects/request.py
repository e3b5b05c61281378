"""Reading one object of a vendor's request: like a `Record`, with what only the vendors' formats know.

The vendors' SDKs write what was not set as null, `[]` or `{}`, each generation in its own way: all three
mean that nothing is there.  Keys may be spelled in more than one way; problems point to the one used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from typing import Final

from jobs.dialects import amounts
from jobs.dialects.base import Fix
from jobs.dialects.fields import (
    Amount,
    AnyKey,
    Bag,
    Choice,
    Flag,
    Fraction,
    Group,
    Integer,
    Key,
    Named,
    Quantity,
    Records,
    Text,
    Texts,
)
from jobs.dialects.findings import Findings
from jobs.dialects.record import Record, as_number, kind_of, nearest_key, short
from jobs.dialects.spans import escape
from jobs.dialects.tables import table

_TRUTH: Final = {"true": True, "false": False}
_YES_OR_NO: Final = {"yes": True, "on": True, "1": True, "no": False, "off": False, "0": False}
_NOTHING: Final[tuple[object, ...]] = ([], {})


def is_nothing(value: object) -> bool:
    """Whether a value says no more than a missing key: null, `[]` or `{}`."""
    return value is None or value in _NOTHING


def says_something(value: object) -> bool:
    """Whether a value says more than a missing key, and more than an empty string."""
    return not is_nothing(value) and value != ""


class Request(Record):
    """One object at `pointer` with `keys`; `value` holds what is there under the keys' own names."""

    def __init__(
        self, raw: Mapping[str, object], pointer: str, findings: Findings, keys: tuple[AnyKey, ...]
    ) -> None:
        self.raw = raw
        self.table = table(keys)
        self.spelled = _spelled(raw, self.table.aliased) if raw else {}
        there = {key: value for key, value in raw.items() if not is_nothing(value)}
        there |= {key: raw[used] for key, used in self.spelled.items()}
        super().__init__(there, pointer, findings)

    def at(self, key: str) -> str:
        """The pointer of a member, as it is spelled here."""
        return f"{self.pointer}/{escape(self.spelled.get(key, key))}"

    def has(self, rule: Key) -> bool:
        """Whether something stands under the rule's key."""
        return rule.key in self.value

    def says_any(self) -> bool:
        """Whether something stands under a key that is known here."""
        return not self.table.by_name.keys().isdisjoint(self.value)

    def _keys_there(self) -> Collection[str]:
        return self.raw

    def group(self, rule: Group) -> Request:
        """The object under the rule's key; one without members where there is none."""
        value = self.value.get(rule.key, {})
        if not isinstance(value, dict):
            self._wrong_type(rule, value, "object", None)
            value = {}
        return Request(value, self.at(rule.key), self.findings, rule.keys).inspect()

    def requests(self, rule: Records) -> Iterator[Request]:
        """The objects of a list; nothing where there is none."""
        for record in self.records(rule):
            yield Request(record.value, record.pointer, self.findings, rule.keys).inspect()

    def flag(self, rule: Flag) -> bool:
        """True or false, also in quotes (Python's clients write `True`)."""
        value = self.value.get(rule.key, rule.default)
        if isinstance(value, bool):
            return value
        meant = _TRUTH.get(value.lower()) if isinstance(value, str) else None
        if meant is None:
            self._wrong_type(rule, value, "boolean", _YES_OR_NO.get(str(value).lower()))
            return rule.default
        self.findings.note("flag_from_text", self.at(rule.key), key=rule.key, taken=str(meant).lower())
        return meant

    def choice(self, rule: Choice) -> str:
        """The word under the rule's key, as the rule spells it; "" when nothing or nothing known is there."""
        value = self.value.get(rule.key, "")
        if not isinstance(value, str):
            self._wrong_type(rule, value, "text", None)
            return ""
        if value in rule.meanings or not value:
            if not value and rule.required:
                self._problem("required", rule, rule.source)
            return value
        known = {word.lower(): word for word in rule.meanings}
        near = nearest_key(value.lower(), known)
        meant = known[near] if near else None
        if rule.open:
            code = "unknown_word" if meant is None or meant.lower() != value.lower() else "other_case"
            self.findings.note(code, self.at(rule.key), key=rule.key, value=short(value), meant=meant)
            return meant if meant and code == "other_case" else ""
        fix = Fix(self.at(rule.key), meant) if meant else None
        self._problem("not_a_choice", rule, rule.source, fix, value=short(value), choices=_listed(rule))
        return ""

    def meaning(self, rule: Choice) -> str:
        """What the word under the rule's key, or the rule's default, stands for in a JobSpec."""
        return rule.meanings.get(self.choice(rule) or rule.default, "")

    def amount(self, rule: Amount) -> int:
        """The amount in the JobSpec's unit, rounded up to whole ones."""
        found = self.optional_amount(rule)
        return rule.default if found is None else found

    def optional_amount(self, rule: Amount) -> int | None:
        """Like `amount`; None when there is none, or a wrong one."""
        value = self.value.get(rule.key)
        if value is None or value == "":
            self._absent(rule, None)
            return None
        text = str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value
        if not isinstance(text, str):
            self._wrong_type(rule, value, "amount", None)
            return None
        exact = amounts.read(text, rule.quantity, rule.bare)
        if exact is None:
            self._not_an_amount(rule, text)
            return None
        return self._within(rule, exact, text)

    def fraction(self, rule: Fraction) -> Decimal | None:
        """The number under the rule's key as it is written; None when there is none, or a wrong one."""
        value = self.value.get(rule.key)
        if value is None:
            return None
        number = as_number(value)
        if number is None:
            self._wrong_type(rule, value, "number", None)
            return None
        exact = Decimal(str(number))
        for code, bound in (("too_small", rule.least), ("too_great", rule.most)):
            if bound and (exact < Decimal(bound[0]) if code == "too_small" else exact > Decimal(bound[0])):
                side = {"least" if code == "too_small" else "most": bound[0]}
                fix = Fix(self.at(rule.key), float(bound[0]))
                self._problem(code, rule, bound[1], fix, value=float(exact), **side)
                return None
        return exact

    def texts(self, rule: Texts) -> tuple[str, ...]:
        """The strings of a list; one string alone is a list of one."""
        value = self.value.get(rule.key, [])
        if isinstance(value, str):
            self.findings.note("list_from_text", self.at(rule.key), key=rule.key)
            return (value,) if value else ()
        if not isinstance(value, list):
            self._wrong_type(rule, value, "list", None)
            return ()
        found = []
        for index, item in enumerate(value):
            if isinstance(item, str):
                found.append(item)
            else:
                where = f"{self.at(rule.key)}/{index}"
                self.findings.problem(
                    "wrong_type", where, rule.source, key=rule.key, expected="text", got=kind_of(item)
                )
        return tuple(found)

    def inspect(self) -> Request:
        """Look at the keys that nobody else will: unknown ones, and those that mean nothing in a JobSpec.

        Unknown ones are noted; the others are only looked at for what may be wrong with them.
        """
        if not self.value:
            return self
        self.unknown(self.table.by_name)
        for rule in self.table.kept:
            if rule.key in self.value:
                self._inspect(rule)
        return self

    def _inspect(self, rule: AnyKey) -> None:
        if isinstance(rule, Group):
            self.group(rule)
        elif isinstance(rule, Records):
            for _inner in self.requests(rule):
                pass
        elif not isinstance(rule, Named):
            self._inspect_value(rule)

    def _inspect_value(self, rule: Text | Integer | Bag | Flag | Choice | Amount | Fraction | Texts) -> None:
        match rule:
            case Text():
                self.text(rule)
            case Integer():
                self.integer(rule)
            case Bag():
                self.bag(rule)
            case Flag():
                self.flag(rule)
            case Choice():
                self.choice(rule)
            case Amount():
                self.amount(rule)
            case Fraction():
                self.fraction(rule)
            case Texts():
                self.texts(rule)

    def _not_an_amount(self, rule: Amount, text: str) -> None:
        """No amount, or one that lacks its unit."""
        if rule.quantity is Quantity.MEMORY and amounts.read(text, rule.quantity, "Gi") is not None:
            self._problem("unit_missing", rule, rule.source, value=short(text))
            return
        meant = amounts.in_prose(text, rule.quantity, rule.bare)
        fix = None if meant is None else Fix(self.at(rule.key), amounts.written(meant, rule.quantity))
        self._problem("not_an_amount", rule, rule.source, fix, value=short(text))

    def _within(self, rule: Amount, exact: Decimal, text: str) -> int | None:
        """The amount in whole units within the rule's bounds."""
        taken = amounts.whole(exact)
        if taken > rule.most.value:
            self._problem("too_great", rule, rule.most.source, value=short(text), most=rule.most.value)
            return None
        if rule.least and taken < rule.least.value:
            least = rule.least
            self._problem("too_small", rule, least.source, value=short(text), least=least.value)
            return None
        if taken != exact:
            unit = rule.quantity.value
            where = self.at(rule.key)
            self.findings.note("rounded_up", where, key=rule.key, value=short(text), taken=taken, unit=unit)
        return taken


def _spelled(raw: Mapping[str, object], keys: tuple[AnyKey, ...]) -> dict[str, str]:
    """The keys that are spelled otherwise in `raw`; of several spellings the first that says something."""
    found = {}
    for rule in keys:
        if not says_something(raw.get(rule.key)):
            used = next((name for name in rule.aliases if says_something(raw.get(name))), None)
            if used:
                found[rule.key] = used
    return found


def _listed(rule: Choice) -> str:
    return ", ".join(rule.meanings)

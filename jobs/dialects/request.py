"""Reading one object of a vendor's request: like a `Record`, with what only the vendors' formats know.

The vendors' SDKs write what was not set as null, `[]` or `{}`, each generation in its own way: all three
mean that nothing is there.  Keys may be spelled in more than one way; problems point to the one used.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, Self

from jobs.dialects import amounts
from jobs.dialects.base import Fix
from jobs.dialects.fields import (
    Amount,
    AnyKey,
    Bag,
    Choice,
    Counts,
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
    table,
)
from jobs.dialects.findings import Findings
from jobs.dialects.record import Record, as_number, kind_of, nearest_key, short
from jobs.dialects.spans import escape

_TRUTH: Final = {"true": True, "false": False}
_YES_OR_NO: Final = {"yes": True, "on": True, "1": True, "no": False, "off": False, "0": False}
_NOTHING: Final[tuple[object, ...]] = ([], {})


def is_nothing(value: object) -> bool:
    """Return whether a value says no more than a missing key: null, `[]` or `{}`."""
    return value is None or value in _NOTHING


def says_something(value: object) -> bool:
    """Return whether a value says more than a missing key, and more than an empty string."""
    return not is_nothing(value) and value != ""


class Request(Record):
    """One object at `pointer` with `keys`; `value` holds what is there under the keys' own names."""

    def __init__(
        self, raw: Mapping[str, object], pointer: str, findings: Findings, keys: tuple[AnyKey, ...]
    ) -> None:
        self.raw = raw
        self.table = table(keys)
        self.spelled = _find_spellings(raw, self.table.aliased) if raw else {}
        there = {key: value for key, value in raw.items() if not is_nothing(value)}
        there |= {key: raw[used] for key, used in self.spelled.items()}
        super().__init__(there, pointer, findings)

    def at(self, key: str) -> str:
        """Return the pointer of a member, as it is spelled here."""
        return f"{self.pointer}/{escape(self.spelled.get(key, key))}"

    def has(self, rule: Key) -> bool:
        """Return whether something stands under the rule's key."""
        return rule.key in self.value

    def says_any(self) -> bool:
        """Return whether something stands under a key that is known here."""
        return not self.table.by_name.keys().isdisjoint(self.value)

    def _keys_there(self) -> Collection[str]:
        return self.raw

    def group(self, rule: Group) -> Self:
        """Return the object under the rule's key; one without members where there is none."""
        value = self.value.get(rule.key, {})
        if not isinstance(value, dict):
            self._wrong_type(rule, value, "object", None)
            value = {}
        return type(self)(value, self.at(rule.key), self.findings, rule.keys).inspect()

    def requests(self, rule: Records) -> Iterator[Self]:
        """Yield the objects of a list; nothing where there is none."""
        for record in self.records(rule):
            yield type(self)(record.value, record.pointer, self.findings, rule.keys).inspect()

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
        fix, choices = Fix(self.at(rule.key), meant) if meant else None, ", ".join(rule.meanings)
        self._problem("not_a_choice", rule, rule.source, fix, value=short(value), choices=choices)
        return ""

    def word_meaning(self, rule: Choice) -> str:
        """Return the JobSpec value of the word under the rule's key, or of the rule's default."""
        return rule.meanings.get(self.choice(rule) or rule.default, "")

    def amount(self, rule: Amount) -> int:
        """Return the amount in the JobSpec's unit, rounded up to whole ones."""
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
        exact = amounts.parse(text, rule.quantity, rule.bare)
        if exact is None:
            self._not_an_amount(rule, text)
            return None
        return self._check_bounds_of_amount(rule, exact, text)

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
        """Return the strings of a list; one string alone is a list of one."""
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

    def inspect(self) -> Self:
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
        _READERS[type(rule)](self, rule)

    def _not_an_amount(self, rule: Amount, text: str) -> None:
        """No amount, or one that lacks its unit."""
        if rule.quantity is Quantity.MEMORY and amounts.parse(text, rule.quantity, "Gi") is not None:
            self._problem("unit_missing", rule, rule.source, value=short(text))
            return
        meant = amounts.parse_prose(text, rule.quantity, rule.bare)
        fix = None if meant is None else Fix(self.at(rule.key), amounts.to_text(meant, rule.quantity))
        self._problem("not_an_amount", rule, rule.source, fix, value=short(text))

    def _check_bounds_of_amount(self, rule: Amount, exact: Decimal, text: str) -> int | None:
        """Return the amount in whole units within the rule's bounds."""
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


_READERS: Final[Mapping[type[Key], Callable[[Request, Any], object]]] = {
    Text: lambda request, rule: request.text(rule),
    Integer: lambda request, rule: request.integer(rule),
    Bag: lambda request, rule: request.bag(rule),
    Flag: lambda request, rule: request.flag(rule),
    Choice: lambda request, rule: request.choice(rule),
    Amount: lambda request, rule: request.amount(rule),
    Fraction: lambda request, rule: request.fraction(rule),
    Texts: lambda request, rule: request.texts(rule),
    Group: lambda request, rule: request.group(rule),
    Records: lambda request, rule: list(request.requests(rule)),
    Named: lambda _request, _rule: None,
    Counts: lambda _request, _rule: None,
}
"""What looks at a value of each kind."""


def _find_spellings(raw: Mapping[str, object], keys: tuple[AnyKey, ...]) -> dict[str, str]:
    """The keys that are spelled otherwise in `raw`; of several spellings the first that says something."""
    found = {}
    for rule in keys:
        if not says_something(raw.get(rule.key)):
            used = next((name for name in rule.aliases if says_something(raw.get(name))), None)
            if used:
                found[rule.key] = used
    return found

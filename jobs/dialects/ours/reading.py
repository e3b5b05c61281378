"""Our object → what it says: a patch in JobSpec's names, and what nobody knows in it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from jobs.dialects import placeholders
from jobs.dialects.fields import AnyKey, Bag, Choice, Flag, Group, Integer, Named, Records, Text, Texts
from jobs.dialects.findings import Findings
from jobs.dialects.ours.keys import KEYS, MOUNTS, NULLABLE, VARIABLES
from jobs.dialects.record import Record, kind_of
from jobs.dialects.request import Request
from jobs.dialects.spans import escape
from jobs.dialects.tables import table
from jobs.dialects.variables import as_text, collect

Object: TypeAlias = dict[str, object]

SECRETS = "secret_env"
"""The member of a patch for variables that are placeholders of secrets."""


@dataclass(frozen=True, slots=True)
class Said:
    """What the object says: `patch` is to be laid over the rest, `strangers` are to be kept."""

    patch: Object = field(default_factory=dict)
    strangers: Object = field(default_factory=dict)


def read(
    value: object,
    pointer: str,
    findings: Findings,
    roles: Collection[str],
    besides: Collection[str] = frozenset(),
) -> Said:
    """What the object at `pointer` says; its secrets have been taken out, and it knows keys `besides`."""
    if not isinstance(value, dict):
        findings.problem(
            "wrong_type",
            pointer,
            KEYS[0].source,
            key=pointer.rpartition("/")[2],
            expected="object",
            got=kind_of(value),
        )
        return Said()
    reader = _Object(value, pointer, findings, KEYS, roles)
    patch = reader.said(besides)
    if reader.secrets:
        patch[SECRETS] = reader.secrets
    return Said(patch, reader.strangers)


class _Object(Request):
    """One object, in which null is a value of its own."""

    def __init__(
        self,
        raw: Mapping[str, object],
        pointer: str,
        findings: Findings,
        keys: tuple[AnyKey, ...],
        roles: Collection[str] = (),
    ) -> None:
        Record.__init__(self, raw, pointer, findings)
        self.raw, self.spelled, self.table = raw, {}, table(keys)
        self.strangers: Object = {}
        self.secrets: Object = {}
        self._keys, self._roles = keys, roles

    def said(self, besides: Collection[str] = frozenset()) -> Object:
        """What the members say that are known and right."""
        self.strangers = self.unknown({*self.table.by_name, *besides})
        patch: Object = {}
        for rule in self._keys:
            if rule.key in self.value:
                patch[rule.key] = self._said_by(rule)
            elif rule.required:
                self._absent(rule, None)
        return patch

    def _said_by(self, rule: AnyKey) -> object:
        if self.value[rule.key] is None and rule.path in NULLABLE:
            return None
        if isinstance(rule, Bag):
            return self._bag(rule)
        if isinstance(rule, Group):
            return self._group(rule)
        if isinstance(rule, Named):
            return self._members(rule)
        return self._elements(rule) if isinstance(rule, Records) else self._value(rule)

    def _value(self, rule: AnyKey) -> object:
        match rule:
            case Text():
                return self._text(rule)
            case Choice():
                return self.choice(rule) or rule.default
            case Integer():
                return self.optional_integer(rule)
            case Flag():
                return self.flag(rule)
            case Texts():
                return list(self.texts(rule))
        raise TypeError(rule.key)

    def _text(self, rule: Text) -> object:
        """A text; a secret by its name."""
        text = self.text(rule)
        if rule.path != "registry_auth.password":
            return text
        name = placeholders.reference(text)
        return {"name": name} if name else None

    def _bag(self, rule: Bag) -> Object:
        """Members of the person's own; secret variables are the job's, wherever they stand."""
        members, where = self.bag(rule), self.at(rule.key)
        gone: Object = {name: None for name, value in members.items() if value is None}
        there = {name: value for name, value in members.items() if value is not None}
        if rule.key in VARIABLES:
            pairs = [(f"{where}/{escape(name)}", name, value) for name, value in there.items()]
            found = collect(pairs, self.findings)
            self.secrets |= {name: {"name": secret.name} for name, secret in found.secret.items()}
            return {**gone, **found.plain}
        for name, value in there.items():
            if not isinstance(value, str):
                text = as_text(value)[:60]
                self.findings.note("value_as_text", f"{where}/{escape(name)}", key=name, value=text)
        return {**gone, **{name: as_text(value) for name, value in there.items()}}

    def _group(self, rule: Group) -> Object:
        value = self.value[rule.key]
        if not isinstance(value, dict):
            self._wrong_type(rule, value, "object", None)
            return {}
        return self._inner(rule.key, _Object(value, self.at(rule.key), self.findings, rule.keys))

    def _members(self, rule: Named) -> Object:
        """The roles, each under the name that it has in the rest of the file."""
        value = self.value[rule.key]
        if not isinstance(value, dict):
            self._wrong_type(rule, value, "object", None)
            return {}
        every = _Object(value, self.at(rule.key), self.findings, ())
        every.strangers = every.unknown(self._roles)
        said: Object = {}
        for name in self._roles:
            if isinstance(value.get(name), dict):
                inner = _Object(value[name], every.at(name), self.findings, rule.keys)
                said[name] = every._inner(name, inner)
            elif name in value:
                every._not_an_object(every.at(name), name, value[name])
        self.secrets |= every.secrets
        if every.strangers:
            self.strangers[rule.key] = every.strangers
        return said

    def _elements(self, rule: Records) -> list[object]:
        value, where = self.value[rule.key], self.at(rule.key)
        if not isinstance(value, list):
            self._wrong_type(rule, value, "list", None)
            return []
        if len(value) > rule.most:
            self._problem("too_many", rule, rule.source, count=len(value), most=rule.most)
            return []
        every = _Object({}, where, self.findings, ())
        said: list[object] = []
        for index, item in enumerate(value):
            if isinstance(item, dict):
                inner = _Object(item, f"{where}/{index}", self.findings, rule.keys)
                said.append(every._inner(str(index), inner))
            elif item is None and rule.key == MOUNTS:
                said.append(None)
            else:
                self._not_an_object(f"{where}/{index}", rule.key, item)
        if every.strangers:
            self.strangers[rule.key] = every.strangers
        return said

    def _inner(self, key: str, inner: _Object) -> Object:
        """What an object inside of this one says."""
        said = inner.said()
        self.secrets |= inner.secrets
        if inner.strangers:
            self.strangers[key] = inner.strangers
        return said

    def _not_an_object(self, where: str, key: str, value: object) -> None:
        source = KEYS[0].source
        self.findings.problem("wrong_type", where, source, key=key, expected="object", got=kind_of(value))

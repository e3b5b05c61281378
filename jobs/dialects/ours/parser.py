"""Our object → what it says: a patch in JobSpec's names, and what nobody knows in it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from jobs.dialects import placeholders
from jobs.dialects.fields import (
    AnyKey,
    Bag,
    Choice,
    Flag,
    Group,
    Integer,
    Key,
    Named,
    Records,
    Text,
    Texts,
    table,
)
from jobs.dialects.findings import Findings
from jobs.dialects.ours.keys import KEYS, MOUNTS, NULLABLE, VARIABLES
from jobs.dialects.record import Record, kind_of
from jobs.dialects.request import Request
from jobs.dialects.spans import escape
from jobs.dialects.variables import as_text, collect

Object: TypeAlias = dict[str, object]

SECRETS = "secret_env"
"""The member of a patch for variables that are placeholders of secrets."""


@dataclass(frozen=True, slots=True)
class ObjectContent:
    """The content of our object: `patch` is to be laid over the rest, `strangers` are to be kept."""

    patch: Object = field(default_factory=dict)
    strangers: Object = field(default_factory=dict)


def read(
    value: object,
    pointer: str,
    findings: Findings,
    roles: Collection[str],
    besides: Collection[str] = frozenset(),
) -> ObjectContent:
    """Read the object at `pointer`; its secrets have been taken out, and it knows keys `besides`."""
    if not isinstance(value, dict):
        findings.problem(
            "wrong_type",
            pointer,
            KEYS[0].source,
            key=pointer.rpartition("/")[2],
            expected="object",
            got=kind_of(value),
        )
        return ObjectContent()
    reader = _Object(value, pointer, findings, KEYS, roles)
    patch = reader.read_members(besides)
    if reader.secrets:
        patch[SECRETS] = reader.secrets
    return ObjectContent(patch, reader.strangers)


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

    def read_members(self, besides: Collection[str] = frozenset()) -> Object:
        """Return the members that are known and right."""
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
        return _READERS[type(rule)](self, rule)

    def read_text(self, rule: Text) -> object:
        """Return a text; a secret by its name."""
        text = self.text(rule)
        if rule.path != "registry_auth.password":
            return text
        name = placeholders.reference(text)
        return {"name": name} if name else None

    def read_bag(self, rule: Bag) -> Object:
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

    def read_group(self, rule: Group) -> Object:
        value = self.value[rule.key]
        if not isinstance(value, dict):
            self._wrong_type(rule, value, "object", None)
            return {}
        return self._inner(rule.key, _Object(value, self.at(rule.key), self.findings, rule.keys))

    def read_roles(self, rule: Named) -> Object:
        """Return the roles, each under the name that it has in the rest of the file."""
        value = self.value[rule.key]
        if not isinstance(value, dict):
            self._wrong_type(rule, value, "object", None)
            return {}
        every = _Object(value, self.at(rule.key), self.findings, ())
        every.strangers = every.unknown(self._roles)
        there = {name: value[name] for name in self._roles if name in value}
        return self._objects(rule, every, there)

    def read_list(self, rule: Records) -> list[object]:
        value = self.value[rule.key]
        if not isinstance(value, list):
            self._wrong_type(rule, value, "list", None)
            return []
        if len(value) > rule.most:
            self._problem("too_many", rule, rule.source, count=len(value), most=rule.most)
            return []
        every = _Object({}, self.at(rule.key), self.findings, ())
        there = {str(index): item for index, item in enumerate(value)}
        return [*self._objects(rule, every, there).values()]

    def _objects(self, rule: Named | Records, every: _Object, there: Object) -> Object:
        """Return what the objects `there` say, which are members of `every`."""
        said: Object = {}
        for name, item in there.items():
            if isinstance(item, dict):
                said[name] = every._inner(name, _Object(item, every.at(name), self.findings, rule.keys))
            elif item is None and rule.key == MOUNTS:
                said[name] = None
            else:
                key = name if isinstance(rule, Named) else rule.key
                source, got = KEYS[0].source, kind_of(item)
                self.findings.problem(
                    "wrong_type", every.at(name), source, key=key, expected="object", got=got
                )
        self.secrets |= every.secrets
        if every.strangers:
            self.strangers[rule.key] = every.strangers
        return said

    def _inner(self, key: str, inner: _Object) -> Object:
        """Return the content of an object inside of this one."""
        said = inner.read_members()
        self.secrets |= inner.secrets
        if inner.strangers:
            self.strangers[key] = inner.strangers
        return said


_READERS: Final[Mapping[type[Key], Callable[[_Object, Any], object]]] = {
    Text: _Object.read_text,
    Choice: lambda reader, rule: reader.choice(rule) or rule.default,
    Integer: _Object.optional_integer,
    Flag: _Object.flag,
    Texts: lambda reader, rule: list(reader.texts(rule)),
    Bag: _Object.read_bag,
    Group: _Object.read_group,
    Named: _Object.read_roles,
    Records: _Object.read_list,
}

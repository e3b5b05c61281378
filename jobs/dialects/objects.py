"""A job file that is one JSON or YAML object: opened, and its simple keys read and written by their rules.

A key that fills one field of a JobSpec needs no code of its own: `read_fields` and `write_fields` take the
field's name from the rule's `path`, the conversion from the rule's type and `unit`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from jobs.dialects import pairs, placeholders
from jobs.dialects.base import Problem, Refused
from jobs.dialects.document import Document
from jobs.dialects.extras import Leftover
from jobs.dialects.fields import (
    CONSOLE,
    MOST_REPLICAS,
    Amount,
    AnyKey,
    Bag,
    Choice,
    Flag,
    Integer,
    Text,
    Texts,
)
from jobs.dialects.findings import Findings
from jobs.dialects.record import Record, kind_of
from jobs.dialects.secret_extraction import Withheld, withhold
from jobs.dialects.source import Source
from jobs.dialects.spans import escape, split
from jobs.dialects.text_renderer import JsonObject
from jobs.dialects.variables import Variables, as_text
from jobs.spec import JobSpec, Model, RegistryAuth, SecretRef

_UNREADABLE: Final = frozenset({"too_large", "too_many_values", "too_deep"})
_READERS: Final[Mapping[type, str]] = {
    Text: "text",
    Integer: "optional_integer",
    Flag: "flag",
    Choice: "word_meaning",
    Amount: "amount",
    Texts: "texts",
}
"""The method of a `Record` that reads a value, by the type of its rule."""

_PER_UNIT: Final = {"minutes": 60, "cores": 1000, "GiB": 1024}
"""Units of a JobSpec's field in one unit of a key."""

_MOST_TRANSFERS: Final = 1024
_TRANSFERS: Final[dict[int, tuple[AnyKey, str, str, int]]] = {}


# --- opening ---------------------------------------------------------------------------------------------


def open_object(source: Source, rule_source: str) -> dict[str, object]:
    """Return the object that a text holds; raises Refused for any other value, by `rule_source`."""
    if isinstance(source.value, dict):
        return source.value
    line, column = source.position("")
    params = {"key": "", "expected": "object", "got": kind_of(source.value)}
    raise Refused((Problem("wrong_type", "", line, column, params, source=rule_source),))


def take_secrets(
    value: object, findings: Findings, keys: Collection[str] = (), variables: Collection[str] = ()
) -> Withheld:
    """Take the secrets out of `value`, each noted; arguments as in `withhold`."""
    held = withhold(value, keys, variables)
    note_secrets(held, findings)
    return held


def note_secrets(held: Withheld, findings: Findings) -> None:
    """Note each secret that was taken out, by its key."""
    for pointer, name in held.found.items():
        findings.note("secret_taken", pointer, key=split(pointer)[-1], name=name)


def find_keys(document: Document, refused: Refused, pattern: re.Pattern[str]) -> set[str]:
    """Return the keys that `pattern` finds in a text that can't be read; none in one that is too large."""
    return set() if refused.problems[0].code in _UNREADABLE else set(pattern.findall(document.text))


def as_object(value: object) -> dict[str, Any]:
    """Return `value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """Return `value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


# --- fields ----------------------------------------------------------------------------------------------


def read_fields(record: Record, rules: Iterable[AnyKey]) -> dict[str, Any]:
    """Read the keys `rules` of `record`, each into the field that the last name of its path tells."""
    return {_transfer(rule)[1]: read_field(record, rule) for rule in rules}


def read_field(record: Record, rule: AnyKey) -> Any:
    """Read one key in the unit of its field; None for a number that is not there."""
    _rule, _field, method, units = _transfer(rule)
    if isinstance(rule, Bag):
        return read_texts(record, rule)
    value = getattr(record, method)(rule)
    return value * units if units != 1 and value else value


def _transfer(rule: AnyKey) -> tuple[AnyKey, str, str, int]:
    """Return the rule, its field, the method that reads it, and the field's units in one of the key's.

    Rules can't be hashed by their members, so they are known by identity.
    """
    known = _TRANSFERS.get(id(rule))
    if known is not None and known[0] is rule:
        return known
    units = _PER_UNIT.get(rule.unit, 1) if isinstance(rule, Integer) else 1
    made = rule, rule.path.rpartition(".")[2], _READERS.get(type(rule), "bag"), units
    if len(_TRANSFERS) >= _MOST_TRANSFERS:
        _TRANSFERS.clear()
    _TRANSFERS[id(rule)] = made
    return made


def read_texts(record: Record, rule: Bag) -> dict[str, str]:
    """Read an object of strings; also `k=v,k=v` or JSON in a string, as DLC's command line writes it."""
    value = record.value.get(rule.key)
    if isinstance(value, str):
        record.findings.note("object_from_text", record.at(rule.key), key=rule.key)
        return pairs.parse(value)
    found = {}
    for name, item in record.bag(rule).items():
        found[name] = as_text(item)
        if not isinstance(item, str):
            where = f"{record.at(rule.key)}/{escape(name)}"
            record.findings.note("value_as_text", where, key=name, value=found[name][:60])
    return found


def write_fields(rules: Iterable[AnyKey], model: Model) -> JsonObject:
    """Return the members of an object that say what `model` holds; nothing for what holds nothing."""
    return without_empty({rule.key: write_field(rule, getattr(model, _transfer(rule)[1])) for rule in rules})


def write_changes(target: JsonObject, rules: Iterable[AnyKey], before: Model | None, after: Model) -> None:
    """Write into `target` the keys of fields that differ in `before`, or all where there is none."""
    for rule in rules:
        name = _transfer(rule)[1]
        value = getattr(after, name)
        if before is None or getattr(before, name) != value:
            target[rule.key] = write_field(rule, value)


def write_field(rule: AnyKey, value: Any) -> object:
    """Return what a key says of its field's `value`, in the key's unit, rounded up."""
    if isinstance(rule, Choice):
        return next((word for word, meaning in rule.meanings.items() if meaning == value), "")
    if isinstance(rule, Integer) and value:
        return math.ceil(value / _PER_UNIT.get(rule.unit, 1))
    return list(value) if isinstance(rule, Texts) else value


def without_empty(members: Mapping[str, object]) -> JsonObject:
    """Return the members that say something."""
    return {key: value for key, value in members.items() if value}


def free_name(name: str, taken: Collection[str]) -> str:
    """Return `name`, with a number behind it when it is taken."""
    number, candidate = 2, name
    while candidate in taken:
        candidate, number = f"{name}_{number}", number + 1
    return candidate


# --- parts of a job --------------------------------------------------------------------------------------


def read_image(record: Record, rule: Text, pointer: str) -> str:
    """Read the image; that there is none is noted at `pointer`."""
    image = record.text(rule)
    if not image:
        record.findings.note("no_image", pointer, key=rule.key)
    return image


def check_replicas(counts: Iterable[int], pointer: str, findings: Findings) -> None:
    """Refuse more replicas of all roles than the console takes; `pointer` is that of the roles."""
    total = sum(counts)
    if total > MOST_REPLICAS:
        findings.problem("too_many_replicas", pointer, CONSOLE, count=total, most=MOST_REPLICAS)


def read_login(config: Record, password: Text, others: Collection[Text]) -> RegistryAuth | None:
    """Read the login for a registry, whose password has become a placeholder; None when there is none."""
    secret = placeholders.reference(config.text(password))
    said = read_fields(config, others)
    if not (secret or any(said.values())):
        return None
    return RegistryAuth(**said, password=SecretRef(name=secret) if secret else None)


def write_login(auth: RegistryAuth | None, password: Text, others: Collection[Text]) -> JsonObject:
    """Return the login for a registry, with a placeholder for its password."""
    if auth is None:
        return {}
    secret = {password.key: placeholders.placeholder(auth.password.name)} if auth.password else {}
    return {**write_fields(others, auth), **secret}


def share_variables(roles: Collection[Variables]) -> tuple[dict[str, str], dict[str, SecretRef]]:
    """Return the variables of the job: plain ones that all roles have alike, and every secret one."""
    first, *others = (role.plain for role in roles)
    shared = {name: value for name, value in first.items() if all(each.get(name) == value for each in others)}
    return shared, {name: secret for role in roles for name, secret in role.secret.items()}


def secret_placeholders(spec: JobSpec) -> dict[str, str]:
    """Return the job's secret variables with placeholders for their values."""
    return {name: placeholders.placeholder(secret.name) for name, secret in spec.secret_env.items()}


# --- extras ----------------------------------------------------------------------------------------------


def keep_leftovers(found: Iterable[Leftover], findings: Findings) -> dict[str, object]:
    """Return leftovers as extras; those that a dialect knows, and nobody reads here, are noted."""
    extras: dict[str, object] = {}
    for left in found:
        extras[left.name] = left.value
        if left.known and left.value:
            findings.note("kept_unused", left.pointer, key=split(left.pointer)[-1])
    return extras

"""Laying our object over what the rest of a file says, and what it has to say so that a job comes out.

Inside, the roles of a dump stand under their names and its mounts under their numbers, so that both are
objects as everything else: `_key_lists` makes them so, `_list_mounts` puts the mounts back into a list.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

from pydantic import ValidationError

from jobs.dialects import placeholders
from jobs.dialects.fields import (
    CONSOLE,
    AnyKey,
    Bag,
    Choice,
    Flag,
    Group,
    Integer,
    Named,
    Records,
    Text,
    table,
)
from jobs.dialects.findings import Findings
from jobs.dialects.ours.keys import KEYS, MOUNTS, ROLES, VARIABLES
from jobs.dialects.ours.parser import SECRETS, Object
from jobs.dialects.record import short
from jobs.dialects.spans import escape
from jobs.spec import JobSpec

Path: TypeAlias = list[str]

_ENV: Final = "env"
_ROOT: Final = Group(key="", source=CONSOLE, help="", path="*", keys=KEYS)
_MEMBER: Final = Choice(key="", source=CONSOLE, help="", meanings={})
"""The rule of a bag's members: texts, of which none is there by itself."""

MODULE: Final = "A-Za-z0-9_.+/:=-"
"""The characters in names of environment modules."""


def apply_patch(native: JobSpec, patch: Object, pointer: str, findings: Findings) -> JobSpec:
    """Return the job that the rest of the file says, with our object at `pointer` laid over it."""
    if not patch or findings.any_problem:
        return native
    below = _dump(native, native)
    merged: Any = _lay_over(_ROOT, below, _key_lists(patch))
    secret, taken = _object(patch.get(SECRETS)), _object(patch.get(_ENV))
    secrets = {name: held for name, held in below[SECRETS].items() if name not in taken} | secret
    variables = {name: value for name, value in merged[_ENV].items() if name not in secrets}
    lists = {name: [*merged[name].values()] for name in (ROLES, MOUNTS)}
    said = {**merged, **lists, SECRETS: secrets, _ENV: variables}
    try:
        return JobSpec.model_validate_json(json.dumps(said))
    except ValidationError as error:
        _report(error, native, pointer, findings)
        return native


def find_patch(native: JobSpec, wanted: JobSpec, said: Sequence[Path] = ()) -> Object:
    """Return what has to be laid over `native` to make it `wanted`, and what is at the paths `said`."""
    above = _dump(wanted, native)
    found = _object(_difference(_ROOT, _dump(native, native), above))
    for path in said:
        _restate(found, above, path)
    return _list_mounts(found, len(wanted.mounts))


def find_redundant_paths(patch: Object, native: JobSpec, wanted: JobSpec) -> list[Path]:
    """Return the paths at which `patch` says what the rest of a file could say as well."""
    above, needed = _dump(wanted, native), [*_leaves(_ROOT, _key_lists(find_patch(native, wanted)))]
    return [
        path for path in _leaves(_ROOT, _key_lists(patch)) if path not in needed and _restate({}, above, path)
    ]


def add_unknown_members(said: Object, strangers: Object, names: Sequence[str]) -> Object:
    """Return what we say, with what others have said among it that nobody knows."""
    return _list_mounts(_with_strangers(_ROOT, _key_lists(said), strangers, names))


def _dump(spec: JobSpec, native: JobSpec) -> dict[str, Any]:
    """Return a job with the roles under the names that `native` has for them."""
    dumped = spec.model_dump(mode="json")
    pairs = zip(native.roles, dumped[ROLES], strict=True)
    return _key_lists({**dumped, ROLES: {role.name: each for role, each in pairs}})


def _key_lists(said: Object) -> Object:
    mounts = said.get(MOUNTS)
    if not isinstance(mounts, list):
        return said
    return {**said, MOUNTS: {str(index): each for index, each in enumerate(mounts)}}


def _list_mounts(said: Object, least: int = 0) -> Object:
    """Return an object with its mounts in a list of `least` elements or more."""
    mounts = said.get(MOUNTS)
    if not isinstance(mounts, dict):
        return said
    count = max(least, *(int(index) + 1 for index in mounts)) if mounts else 0
    return {**said, MOUNTS: [mounts.get(str(index), {}) for index in range(count)]}


def _object(value: object) -> Object:
    return value if isinstance(value, dict) else {}


def _rule_of(rule: AnyKey, key: str) -> AnyKey | None:
    """Return the rule of a member: of an object's key, of any role or mount, of any entry of a bag."""
    if isinstance(rule, Group):
        return table(rule.keys).by_name.get(key)
    if isinstance(rule, (Named, Records)):
        return Group(key=rule.key, source=rule.source, help=rule.help, path=rule.path, keys=rule.keys)
    return _MEMBER if isinstance(rule, Bag) else None


def _lay_over(rule: AnyKey, below: object, patch: object) -> object:
    """Return `below` with `patch` laid over it; null takes entries and mounts away."""
    if not isinstance(patch, dict) or isinstance(rule, Text):
        return patch
    laid = {**_object(below)}
    for key, value in patch.items():
        if inner := _rule_of(rule, key):
            laid[key] = _lay_over(inner, laid.get(key), value)
    if isinstance(rule, (Bag, Records)):
        return {key: each for key, each in laid.items() if each is not None}
    return laid


def _difference(rule: AnyKey, below: object, above: object) -> object:
    """Return the patch that makes `above` of `below`."""
    if not isinstance(above, dict) or isinstance(rule, Text):
        return _write_value(rule, above)
    there, found = _object(below), {}
    if isinstance(rule, (Bag, Records)):
        found = dict.fromkeys((key for key in there if key not in above), None)
    for key, value in above.items():
        inner = _rule_of(rule, key)
        if inner is None:
            continue
        before = there.get(key, _default(inner))
        if before == value and not isinstance(rule, Records):
            continue
        change = {} if before == value else _difference(inner, before, value)
        if change != {} or (not isinstance(rule, Named) and not isinstance(inner, (Bag, Named))):
            found[key] = change
    if rule.key in VARIABLES:  # one that looks secret leaves a text wherever it stands
        return {name: each for name, each in found.items() if not placeholders.looks_secret(name)}
    return found


def _write_value(rule: AnyKey, value: object) -> object:
    """Return a value as our object has it."""
    if isinstance(rule, Records) and isinstance(value, list):
        return [_difference(_rule_of(rule, "") or rule, {}, each) for each in value]
    if isinstance(value, dict) and isinstance(rule, Text):
        return placeholders.placeholder(str(value["name"]))
    return value


def _default(rule: AnyKey) -> object:
    """Return what a JobSpec holds where nothing was said."""
    if isinstance(rule, (Integer, Flag)):
        return rule.default
    if isinstance(rule, Choice):
        return rule.default or None
    if isinstance(rule, Text):
        return None if rule.path == "registry_auth.password" else rule.default
    if isinstance(rule, Group):
        return None
    return {} if isinstance(rule, Bag) else []


def _leaves(rule: AnyKey, patch: Object) -> Iterator[Path]:
    """Yield the path of everything that a patch says; an empty role and an empty list say nothing."""
    for key, value in patch.items():
        inner = _rule_of(rule, key)
        if inner and isinstance(value, dict) and value and not isinstance(inner, Text):
            yield from ([key, *path] for path in _leaves(inner, value))
        elif inner and (value != {} or (not isinstance(rule, Named) and not isinstance(inner, Records))):
            yield [key]


def _restate(found: Object, above: object, path: Path) -> bool:
    """Say in `found` what stands in `above` at `path`; return whether something does."""
    rule: AnyKey | None = _ROOT
    for token in path:
        rule = _rule_of(rule, token) if rule else None
        if rule is None or not isinstance(above, dict) or token not in above:
            return False
        above = above[token]
    for token in path[:-1]:
        found = _object(found.setdefault(token, {}))
    is_object = isinstance(above, dict) and not isinstance(rule, Text)
    found.setdefault(path[-1], {} if is_object or rule is None else _write_value(rule, above))
    return True


def _with_strangers(rule: AnyKey, said: Object, strangers: Object, names: Sequence[str]) -> Object:
    whole = dict(said)
    for key, value in strangers.items():
        inner = _rule_of(rule, key)
        if inner is None or (isinstance(rule, Named) and key not in names):
            whole.setdefault(key, value)
            continue
        is_made = isinstance(inner, (Group, Named)) and not isinstance(rule, Records)
        there = said.get(key, {} if is_made else None)
        if not isinstance(value, dict):
            continue  # said of a role that was not there, and not meant for one that is called so since
        if isinstance(there, list):
            each = _key_lists({MOUNTS: there})[MOUNTS]
            made = _with_strangers(inner, _object(each), value, names)
            whole[key] = [*made.values()]
        elif isinstance(there, dict):
            whole[key] = _with_strangers(inner, there, value, names)
    return whole


def _report(error: ValidationError, native: JobSpec, pointer: str, findings: Findings) -> None:
    """Tell what no job can be, at the place of our object that made it so."""
    errors = error.errors(include_url=False)
    places = [each["loc"] for each in errors]
    for each in errors:
        loc = each["loc"]
        if any(other[: len(loc)] == loc and other != loc for other in places):
            continue  # it is said further inside
        tokens = [str(token) for token in loc]
        if tokens[:1] == [ROLES] and len(tokens) > 1:
            tokens[1] = native.roles[int(tokens[1])].name
        where = pointer + "".join(f"/{escape(token)}" for token in tokens)
        if each["type"] == "missing":
            findings.problem("required", where, CONSOLE, key=tokens[-1])
        elif each["type"] == "string_pattern_mismatch":
            value = short(str(each["input"]))
            findings.problem("bad_name", where, CONSOLE, key=tokens[-2], value=value, allowed=MODULE)
        else:
            findings.problem("not_possible", where, CONSOLE, key=".".join(tokens) or ROLES)

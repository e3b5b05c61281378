"""Laying our object over what the rest of a file says, and what it has to say so that a job comes out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from pydantic import ValidationError

from jobs.dialects import placeholders
from jobs.dialects.fields import CONSOLE, AnyKey, Bag, Choice, Flag, Group, Integer, Named, Records, Text
from jobs.dialects.findings import Findings
from jobs.dialects.ours.keys import KEYS, MOUNTS, VARIABLES
from jobs.dialects.ours.reading import SECRETS, Object
from jobs.dialects.record import short
from jobs.dialects.spans import escape
from jobs.dialects.tables import table
from jobs.spec import JobSpec

Path: TypeAlias = list[str]
Dump: TypeAlias = Mapping[str, Any]

_ENV: Final = "env"
MODULE: Final = "A-Za-z0-9_.+/:=-"
"""The characters in names of environment modules."""


def corrected(native: JobSpec, patch: Object, pointer: str, findings: Findings) -> JobSpec:
    """The job that the rest of the file says, with what our object at `pointer` says laid over it."""
    if not patch or findings.any_problem:
        return native
    below = native.model_dump(mode="json")
    merged = _laid_over(KEYS, below, patch, [role.name for role in native.roles])
    secret, taken = _object(patch.get(SECRETS)), _object(patch.get(_ENV))
    secrets = {name: held for name, held in below[SECRETS].items() if name not in taken} | secret
    variables = _object(merged[_ENV])
    merged[SECRETS] = secrets
    merged[_ENV] = {name: value for name, value in variables.items() if name not in secrets}
    try:
        return JobSpec.model_validate_json(json.dumps(merged))
    except ValidationError as error:
        _tell(error, native, pointer, findings)
        return native


def corrections(native: JobSpec, wanted: JobSpec, said: Sequence[Path] = ()) -> Object:
    """What has to be laid over `native` to make it `wanted`; at the paths `said` something is said anyway."""
    below, above = native.model_dump(mode="json"), wanted.model_dump(mode="json")
    names = [role.name for role in native.roles]
    found = _differences(KEYS, below, above, names)
    for path in said:
        _say(found, KEYS, above, path, names)
    return found


def beside(patch: Object, native: JobSpec, wanted: JobSpec) -> list[Path]:
    """The paths at which `patch` says what the rest of a file could say as well."""
    needed = [*_leaves(KEYS, corrections(native, wanted))]
    above, names = wanted.model_dump(mode="json"), [role.name for role in native.roles]
    return [
        path for path in _leaves(KEYS, patch) if path not in needed and _say({}, KEYS, above, path, names)
    ]


def with_strangers(said: Object, strangers: Object, names: Sequence[str]) -> Object:
    """What we say, and among it what others have said that nobody knows."""
    return _with_strangers(KEYS, said, strangers, names)


# --- laying over -----------------------------------------------------------------------------------------


def _laid_over(keys: tuple[AnyKey, ...], below: Dump, patch: Dump, names: Sequence[str] = ()) -> Object:
    laid = dict(below)
    for rule in keys:
        if rule.key not in patch:
            continue
        value, there = patch[rule.key], below.get(rule.key)
        if isinstance(rule, Bag):
            members = {**(there or {}), **value}
            laid[rule.key] = {name: each for name, each in members.items() if each is not None}
        elif isinstance(rule, Group) and value is not None:
            laid[rule.key] = _laid_over(rule.keys, there or {}, value)
        elif isinstance(rule, Named):
            laid[rule.key] = [
                _laid_over(rule.keys, role, value.get(name, {}))
                for name, role in zip(names, there or (), strict=True)
            ]
        elif isinstance(rule, Records) and rule.key == MOUNTS:
            laid[rule.key] = [*_corrected_elements(rule, there or [], value)]
        else:
            laid[rule.key] = value
    return laid


def _corrected_elements(rule: Records, below: list[Any], patch: list[Any]) -> Iterator[Object]:
    for index in range(max(len(below), len(patch))):
        there = below[index] if index < len(below) else {}
        said = patch[index] if index < len(patch) else {}
        if said is not None:
            yield _laid_over(rule.keys, there, said)


def _object(value: object) -> Object:
    return value if isinstance(value, dict) else {}


# --- differences -----------------------------------------------------------------------------------------


def _differences(keys: tuple[AnyKey, ...], below: Dump, above: Dump, names: Sequence[str] = ()) -> Object:
    found: Object = {}
    for rule in keys:
        there, wanted = below.get(rule.key, _default(rule)), above[rule.key]
        if there == wanted:
            continue
        if isinstance(rule, Bag):
            if members := _of_bag(rule, there or {}, wanted):
                found[rule.key] = members
        elif isinstance(rule, Group):
            found[rule.key] = None if wanted is None else _differences(rule.keys, there or {}, wanted)
        elif isinstance(rule, Named):
            pairs = zip(names, there, wanted, strict=True)
            roles = {name: _differences(rule.keys, old, new) for name, old, new in pairs}
            if said := {name: each for name, each in roles.items() if each}:
                found[rule.key] = said
        elif isinstance(rule, Records) and rule.key == MOUNTS:
            found[rule.key] = [*_of_elements(rule, there or [], wanted)]
        else:
            found[rule.key] = _spelled(rule, wanted)
    return found


def _of_bag(rule: Bag, below: Dump, above: Dump) -> Object:
    """Members that are gone, new or other; a variable that looks secret leaves a text wherever it stands."""
    gone: Object = {name: None for name in below if name not in above}
    found = {**gone, **{name: each for name, each in above.items() if below.get(name) != each}}
    if rule.key not in VARIABLES:
        return found
    return {name: each for name, each in found.items() if not placeholders.looks_secret(name)}


def _of_elements(rule: Records, below: list[Any], above: list[Any]) -> Iterator[Object | None]:
    for index in range(max(len(below), len(above))):
        there = below[index] if index < len(below) else {}
        yield _differences(rule.keys, there, above[index]) if index < len(above) else None


def _spelled(rule: AnyKey, value: object) -> object:
    """A value as our object has it."""
    if isinstance(rule, Records) and isinstance(value, list):
        return [_differences(rule.keys, {}, each) for each in value]
    if isinstance(value, dict) and isinstance(rule, Text):
        return placeholders.placeholder(str(value["name"]))
    return value


def _default(rule: AnyKey) -> object:
    """What a JobSpec holds where nothing was said."""
    if isinstance(rule, (Integer, Flag)):
        return rule.default
    if isinstance(rule, Choice):
        return rule.default or None
    if isinstance(rule, Text):
        return None if rule.path == "registry_auth.password" else rule.default
    if isinstance(rule, Group):
        return None
    return {} if isinstance(rule, Bag) else []


# --- what is said beside ---------------------------------------------------------------------------------


def _leaves(keys: tuple[AnyKey, ...], patch: Dump) -> Iterator[Path]:
    rules = table(keys).by_name
    for key, value in patch.items():
        rule = rules.get(key)
        if rule is None:
            continue
        if isinstance(value, list) and key == MOUNTS and isinstance(rule, Records):
            for index, each in enumerate(value):
                inner = [*_leaves(rule.keys, each or {})] or [[]]
                yield from ([key, str(index), *path] for path in inner)
        elif not isinstance(value, dict) or not value or isinstance(rule, Text):
            yield [key]
        elif isinstance(rule, Bag):
            yield from ([key, name] for name in value)
        elif isinstance(rule, Group):
            yield from ([key, *path] for path in _leaves(rule.keys, value))
        elif isinstance(rule, Named):
            for name, each in value.items():
                yield from ([key, name, *path] for path in _leaves(rule.keys, each))


def _say(found: Object, keys: tuple[AnyKey, ...], above: Dump, path: Path, names: Sequence[str] = ()) -> bool:
    """Say in `found` what stands in `above` at `path`, if something does; whether there is."""
    key, *rest = path
    rule = table(keys).by_name.get(key)
    if rule is None or (rest and above[key] is None):
        return False
    if not rest:
        found.setdefault(key, _whole(rule, above[key]))
        return True
    if isinstance(rule, Bag):
        return rest[0] in above[key] and _say_member(found, key, rest[0], above[key][rest[0]])
    if isinstance(rule, Records):
        return _say_element(found, rule, above[key], rest)
    if isinstance(rule, Named):
        if rest[0] not in names or len(rest) == 1:
            return False
        role = above[key][names.index(rest[0])]
        return _say(_inside(_inside(found, key), rest[0]), rule.keys, role, rest[1:])
    return isinstance(rule, Group) and _say(_inside(found, key), rule.keys, above[key], rest)


def _say_member(found: Object, key: str, name: str, value: object) -> bool:
    _inside(found, key).setdefault(name, value)
    return True


def _say_element(found: Object, rule: Records, above: list[Any], path: Path) -> bool:
    elements, index = found.setdefault(rule.key, [{} for _each in above]), int(path[0])
    if not isinstance(elements, list) or index >= len(above):
        return False
    return len(path) == 1 or _say(elements[index], rule.keys, above[index], path[1:])


def _inside(found: Object, key: str) -> Object:
    inner = found.setdefault(key, {})
    return inner if isinstance(inner, dict) else {}


def _whole(rule: AnyKey, value: object) -> object:
    """What is said at a leaf, where nothing needs to be said."""
    if isinstance(rule, (Bag, Group, Named)):
        return None if value is None else {}
    return _spelled(rule, value)


def _with_strangers(
    keys: tuple[AnyKey, ...], said: Object, strangers: Object, names: Sequence[str] = ()
) -> Object:
    whole, rules = dict(said), table(keys).by_name
    for key, value in strangers.items():
        rule, there = rules.get(key), said.get(key, {})
        if rule is None:
            whole.setdefault(key, value)
        elif not isinstance(value, dict):
            continue  # said of a role that was not there, and not meant for one that is called so since
        elif isinstance(rule, Records):
            if isinstance(there, list):
                whole[key] = [
                    _with_strangers(rule.keys, each, value.get(str(index), {})) if each is not None else None
                    for index, each in enumerate(there)
                ]
        elif isinstance(there, dict) and isinstance(rule, Named):
            whole[key] = there | {
                name: _with_strangers(rule.keys, there.get(name, {}), each) if name in names else each
                for name, each in value.items()
            }
        elif isinstance(there, dict) and isinstance(rule, Group):
            whole[key] = _with_strangers(rule.keys, there, value)
    return whole


# --- what can't be ---------------------------------------------------------------------------------------


def _tell(error: ValidationError, native: JobSpec, pointer: str, findings: Findings) -> None:
    """What no job can be, at the place of our object that made it so."""
    errors = error.errors(include_url=False)
    places = [each["loc"] for each in errors]
    for each in errors:
        loc = each["loc"]
        if any(other[: len(loc)] == loc and other != loc for other in places):
            continue  # it is said further inside
        tokens = [str(token) for token in loc]
        if tokens[:1] == ["roles"] and len(tokens) > 1:
            tokens[1] = native.roles[int(tokens[1])].name
        where = "".join(f"/{escape(token)}" for token in tokens)
        if each["type"] == "missing":
            findings.problem("required", f"{pointer}{where}", CONSOLE, key=tokens[-1])
        elif each["type"] == "string_pattern_mismatch":
            where, value = f"{pointer}{where}", short(str(each["input"]))
            findings.problem("bad_name", where, CONSOLE, key=tokens[-2], value=value, allowed=MODULE)
        else:
            key = ".".join(tokens) or "roles"
            findings.problem("not_possible", f"{pointer}{where}", CONSOLE, key=key)

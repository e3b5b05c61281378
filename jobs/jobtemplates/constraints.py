"""Constraints of a template's fields, by pointers into the JobSpec or JSONPaths into the job file.

PAI-DLC's job templates name a field of their content by a JSONPath, `$.JobSpecs[0].Image`.  The dialect's
table of keys says which field of the JobSpec that is, so that a lock holds in whatever dialect the job comes
back.  What means nothing to a JobSpec is compared as it is kept for export, in the template's own dialect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, TypeAlias

from jobs import dialects
from jobs.dialects.base import Parsed
from jobs.dialects.document import Document
from jobs.dialects.spans import escape, split
from jobs.spec import JobSpec

ANY: Final = "*"
"""A step to every member or element."""

DEEP: Final = "**"
"""Any number of steps."""

MOST_DEEP: Final = 2
"""More of them in one path would take long to follow, and name nothing that fewer don't."""

Steps: TypeAlias = tuple[str, ...]

_STEP: Final = re.compile(
    r"\.\.(?P<deep>[A-Za-z_][\w-]*|\*)|\.(?P<name>[A-Za-z_][\w-]*|\*)"
    r"|\[(?P<index>\d{1,6}|\*)\]|\[(?P<quote>['\"])(?P<quoted>[^'\"\]]*)(?P=quote)\]"
)


class Constraint(StrEnum):
    """The vendor's words: the template's value; any value but none; any value at all."""

    LOCKED = "locked"
    OVERRIDABLE = "overridable"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class BrokenConstraint:
    """A field that is not as the template wants it; `extra` ones are pointers of the dialect's own."""

    pointer: str
    constraint: Constraint
    extra: bool = False


@dataclass(frozen=True, slots=True)
class ConstraintRules:
    """Constraints as patterns: of the JobSpec's fields, and of what is kept for export."""

    fields: tuple[tuple[Steps, Constraint], ...]
    extras: tuple[tuple[Steps, Constraint], ...]

    def of(self, pointer: str) -> Constraint:
        """Return the constraint of the JobSpec's field at `pointer`; of several the strictest."""
        steps = tuple(split(pointer))
        found = {rule for pattern, rule in self.fields if _covers(pattern, steps)}
        order = (Constraint.LOCKED, Constraint.REQUIRED)
        return next((rule for rule in order if rule in found), Constraint.OVERRIDABLE)


@lru_cache(maxsize=256)
def steps_of(path: str) -> Steps | None:
    """Return the steps of a JSONPath, `*` for any and `**` for any number of any; None for a wrong one."""
    if not path.startswith("$"):
        return None
    steps: list[str] = []
    at = 1
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            return None
        if match["deep"] is not None:
            steps.append(DEEP)
        steps.append(
            next(part for part in match.group("deep", "name", "index", "quoted") if part is not None)
        )
        at = match.end()
    return tuple(steps) or None


def rules_of(constraints: Mapping[str, Constraint], dialect: str) -> ConstraintRules:
    """Return the constraints of a template in `dialect`; a wrong path binds nothing (see `unknown`)."""
    fields: list[tuple[Steps, Constraint]] = []
    extras: list[tuple[Steps, Constraint]] = []
    for path, rule in constraints.items():
        if path.startswith("/"):
            fields.append((tuple(split(path)), rule))
        elif (steps := steps_of(path)) is not None:
            fields += [(pattern, rule) for pattern in dict.fromkeys(_fields_at(steps, dialect))]
            extras.append((steps, rule))
    return ConstraintRules(tuple(fields), tuple(extras))


def unknown(constraints: Mapping[str, Constraint], document: Document) -> list[str]:
    """Return the constraints that name neither a field of a job nor a further key of the file."""
    if not constraints:
        return []
    parsed = document.parsed
    return [path for path in constraints if not _is_known(path, document.dialect, parsed)]


def _is_known(path: str, dialect: str, parsed: Parsed) -> bool:
    if path.startswith("/"):
        return _leads_somewhere(split(path), JobSpec.model_json_schema(), JobSpec.model_json_schema())
    steps = steps_of(path)
    if steps is None or steps.count(DEEP) > MOST_DEEP:
        return False
    keys = (tuple(re.findall(r"[^/\[\]]+|\[\]", row.spelling)) for row in dialects.fields(dialect))
    return (
        any(True for _each in _fields_at(steps, dialect))
        or any(_has_match(steps, each) for each in keys)
        or any(_covers(_numbers_are_any(steps), tuple(split(pointer))) for pointer in parsed.extras)
    )


def _has_match(path: Steps, keys: Steps) -> bool:
    return any(True for _each in _match(path, keys, ()))


def _leads_somewhere(steps: Sequence[str], schema: Mapping[str, Any], whole: Mapping[str, Any]) -> bool:
    """Tell whether a JobSpec may have a value at the end of these steps."""
    if "$ref" in schema:
        return _leads_somewhere(steps, whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
    if not steps:
        return True
    if options := schema.get("anyOf"):
        return any(_leads_somewhere(steps, each, whole) for each in options)
    first, rest = steps[0], steps[1:]
    if first in schema.get("properties", {}):
        return _leads_somewhere(rest, schema["properties"][first], whole)
    if isinstance(items := schema.get("items"), dict) and (first.isdigit() or first == ANY):
        return _leads_somewhere(rest, items, whole)
    names = schema.get("patternProperties") or schema.get("additionalProperties")
    return bool(names) and "properties" not in schema and len(rest) == 0


def _fields_at(path: Steps, dialect: str) -> Iterator[Steps]:
    """Yield the JobSpec's fields that a dialect's table has at, above or under a JSONPath."""
    for row in dialects.fields(dialect):
        if row.path:
            for spelling in (row.spelling, *_alias_spellings(row.spelling, row.aliases)):
                keys = tuple(re.findall(r"[^/\[\]]+|\[\]", spelling))
                for taken, beyond in _match(path, keys, ()):
                    yield _field(row.path, taken, beyond)


def _alias_spellings(spelling: str, aliases: Sequence[str]) -> Iterator[str]:
    parent = spelling.rpartition("/")[0]
    return (f"{parent}/{alias}" for alias in aliases)


def _match(path: Steps, keys: Steps, taken: Steps) -> Iterator[tuple[Steps, Steps]]:
    """Yield each match of `path` with a key: its list indexes, and the steps beyond the key."""
    if not path or not keys:
        yield taken + (ANY,) * keys.count("[]"), path
        return
    first, rest = path[0], path[1:]
    if first == DEEP:
        for skipped in range(len(keys)):
            passed = (ANY,) * keys[:skipped].count("[]")
            yield from _match(rest, keys[skipped:], taken + passed)
        return
    if keys[0] == "[]":
        if first == ANY or first.isdigit():
            yield from _match(rest, keys[1:], (*taken, first))
    elif first in (ANY, keys[0]):
        yield from _match(rest, keys[1:], taken)


def _field(path: str, taken: Steps, beyond: Steps) -> Steps:
    """Return a table's path with its list indexes filled in; other lists as a whole."""
    steps: list[str] = []
    left = iter(taken)
    for part in path.split("."):
        name, bracket, which = part.partition("[")
        steps.append(name)
        if bracket:
            if which != "]":
                return tuple(steps)
            steps.append(next(left, ANY))
    return (*steps, *beyond) if path in BAGS else tuple(steps)


BAGS: Final = frozenset({"env", "tags", "framework_options"})
"""Fields with keys of the person's own, at which a path may go on."""


def _covers(pattern: Steps, steps: Steps) -> bool:
    """Tell whether `steps` lead to the field of the pattern, or into it."""
    if not pattern:
        return True
    if pattern[0] == DEEP:
        return any(_covers(pattern[1:], steps[at:]) for at in range(len(steps)))
    return bool(steps) and pattern[0] in (ANY, steps[0]) and _covers(pattern[1:], steps[1:])


# --- is a job as its template wants it -------------------------------------------------------------------


def find_broken(
    constraints: Mapping[str, Constraint], dialect: str, theirs: Parsed, mine: Parsed, written_in: str
) -> list[BrokenConstraint]:
    """Return the fields of `mine` that break the constraints of a template with the file `theirs`."""
    rules = rules_of(constraints, dialect)
    before, after = theirs.spec.model_dump(mode="json"), mine.spec.model_dump(mode="json")
    found: dict[str, BrokenConstraint] = {}
    for pattern, rule in rules.fields:
        for pointer in _wrong(rule, _values(before, pattern), _values(after, pattern)):
            found.setdefault(pointer, BrokenConstraint(pointer, rule))
    if written_in == dialect:
        for pattern, rule in rules.extras:
            kept, sent = _extras(theirs.extras, pattern), _extras(mine.extras, pattern)
            for pointer in _wrong(rule, kept, sent):
                found.setdefault(f"extra {pointer}", BrokenConstraint(pointer, rule, extra=True))
    return list(found.values())


def _wrong(rule: Constraint, theirs: Mapping[str, object], mine: Mapping[str, object]) -> Iterator[str]:
    if rule is Constraint.LOCKED:
        for pointer in dict.fromkeys((*theirs, *mine)):
            if theirs.get(pointer) != mine.get(pointer):
                yield pointer
    elif rule is Constraint.REQUIRED:
        for pointer in dict.fromkeys((*theirs, *mine)):
            if mine.get(pointer) in (None, "", [], {}):
                yield pointer


def _values(value: object, pattern: Steps, at: str = "") -> dict[str, object]:
    """Return the values at the pattern, by pointers; a step that leads nowhere has none."""
    if not pattern:
        return {at: value}
    first, rest = pattern[0], pattern[1:]
    inner = dict(_members(value))
    if first == ANY:
        found: dict[str, object] = {}
        for name, member in inner.items():
            found |= _values(member, rest, f"{at}/{escape(name)}")
        return found
    return _values(inner.get(first), rest, f"{at}/{escape(first)}")


def _members(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from ((str(index), element) for index, element in enumerate(value))


def _extras(extras: Mapping[str, object], pattern: Steps) -> dict[str, object]:
    return {
        pointer: value
        for pointer, value in extras.items()
        if pointer.startswith("/") and _covers(_numbers_are_any(pattern), tuple(split(pointer)))
    }


def _numbers_are_any(pattern: Steps) -> Steps:
    """Replace list indexes by `*`: extras have the names of a list's elements, not their indexes."""
    return tuple(ANY if step.isdigit() else step for step in pattern)


# --- as the vendor spells it -----------------------------------------------------------------------------


def as_json_path(path: str, dialect: str) -> str:
    """Return a constraint's field as a JSONPath into the file; "" where the dialect has none."""
    if path.startswith("$"):
        return path
    wanted = split(path)
    for row in dialects.fields(dialect):
        if row.path and (spelled := _spell(row.path, row.spelling, wanted)):
            return spelled
    return ""


def _spell(path: str, spelling: str, wanted: Sequence[str]) -> str:
    parts = re.sub(r"\[\]", r".[]", path).split(".")
    if len(parts) > len(wanted) or (len(parts) < len(wanted) and path not in BAGS):
        return ""
    places = []
    for part, step in zip(parts, wanted, strict=False):
        if part == "[]" and (step.isdigit() or step == ANY):
            places.append(step)
        elif part != step:
            return ""
    left = iter(places)
    steps = re.findall(r"[^/\[\]]+|\[\]", spelling)
    written = "".join(f"[{next(left, ANY)}]" if step == "[]" else _member(step) for step in steps)
    return "$" + written + "".join(_member(step) for step in wanted[len(parts) :])


def _member(name: str) -> str:
    return f".{name}" if re.fullmatch(r"[A-Za-z_][\w-]*", name) else f"['{name}']"

"""The form's values of a JobSpec: the text of every field by its form name.

A JobSpec is taken apart into dicts and lists, whose values are found and set by pointers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from jobs.form import acceleration, containers
from jobs.form.fields import (
    AFTER,
    DATASETS,
    ENV,
    FIELDS,
    INIT_CONTAINERS,
    MOST_ROLES,
    MOST_ROWS,
    MOUNTS,
    PORTS,
    ROWS,
    SIDECARS,
    TAGS,
    Field,
    Rows,
)
from jobs.spec import JobSpec

Parts = dict[str, Any]
"""A JobSpec taken apart: `JobSpec.model_validate` of it is the JobSpec again."""

ABSENT: Final = object()

OPTIONAL: Final[Mapping[str, tuple[str, ...]]] = {
    "registry_auth": ("registry", "username", "password", "file_uri"),
    "code": ("id", "uri", "branch", "commit", "path"),
    "end_signal": ("signal",),
    "alert": ("metric",),
    "reserve_after": ("seconds",),
    "tensorboard": ("enabled", "log_path"),
}
"""Optional parts of a job: each exists as long as one of these members is set."""

OPTIONAL_OF_ROLE: Final[Mapping[str, tuple[str, ...]]] = {"bid": ("discount_percent", "price_micro")}


def parts_of(spec: JobSpec) -> Parts:
    """The JobSpec taken apart."""
    return spec.model_dump(mode="python")


def split_pointer(path: str, numbers: Sequence[int] = ()) -> list[str | int]:
    """The steps of a pointer, its `*` filled with `numbers`."""
    left = iter(numbers)
    return [next(left) if step == "*" else step for step in path.split("/")[1:]]


def get_value(parts: Parts, steps: Sequence[str | int]) -> Any:
    """Return the value at the path; ABSENT where a part around it is missing."""
    found: Any = parts
    for step in steps:
        if isinstance(found, dict):
            found = found.get(str(step), ABSENT)
        elif isinstance(found, (list, tuple)) and isinstance(step, int) and step < len(found):
            found = found[step]
        else:
            return ABSENT
    return found


def set_value(parts: Parts, steps: Sequence[str | int], value: Any) -> None:
    """Set the value at the path; missing parts around it are created."""
    around: Any = parts
    for step in steps[:-1]:
        if isinstance(around, dict) and around.get(str(step)) is None:
            around[str(step)] = {}
        around = around[step]
    around[steps[-1]] = value


def drop_empty_parts(parts: Parts, before: Parts) -> Parts:
    """Return `parts` without optional parts that were changed from `before` and are empty now."""
    _settle(parts, before, OPTIONAL)
    for role, known in zip(parts["roles"], before["roles"], strict=False):
        _settle(role, known, OPTIONAL_OF_ROLE)
    return parts


def _settle(owner: Parts, before: Parts, optional: Mapping[str, tuple[str, ...]]) -> None:
    for name, members in optional.items():
        part = owner.get(name)
        if isinstance(part, dict) and part != before.get(name) and not any(map(part.get, members)):
            owner[name] = None


Values = Mapping[str, str]
Row = Mapping[str, str]


def values_of(spec: JobSpec) -> dict[str, str]:
    """Every field and every cell of every row."""
    parts = parts_of(spec)
    found = {name: show_field(field, number, parts) for name, field, number in fields_of(spec)}
    for rows, number in lists_of(spec):
        prefix = form_name(rows.key, number)
        for index, row in enumerate(rows_of(rows, number, parts)):
            found |= {f"{prefix}-{index}-{cell}": text for cell, text in row.items()}
    return found


def fields_of(spec: JobSpec) -> Iterator[tuple[str, Field, int]]:
    """Yield each single field: its form name, and the number of its role."""
    for field in FIELDS.values():
        count = min(len(spec.roles), MOST_ROLES) if "*" in field.key else 1
        for number in range(count):
            yield form_name(field.key, number), field, number


def lists_of(spec: JobSpec) -> Iterator[tuple[Rows, int]]:
    """Each list of rows, and the number of its role."""
    for rows in ROWS.values():
        for number in range(min(len(spec.roles), MOST_ROLES) if "*" in rows.key else 1):
            yield rows, number


def form_name(key: str, number: int) -> str:
    """Return the form name of a key for a role."""
    return key.replace("*", str(number))


def find_list(name: str) -> tuple[Rows | None, str]:
    """Return the list of rows that a form name belongs to, and its name; None and "" for a single field."""
    for rows in ROWS.values():
        if found := re.match(rows.key.replace("*", r"\d+") + r"(?=-\d|\Z)", name):
            return rows, found[0]
    return None, ""


def row_indexes(values: Values, prefix: str) -> list[int]:
    """Return the indexes of a list's rows, in order."""
    indexes = (name[len(prefix) + 1 :].partition("-")[0] for name in values if name.startswith(f"{prefix}-"))
    return sorted({int(index) for index in indexes if index.isdecimal() and len(index) < 6})


def show_field(field: Field, number: int, parts: Parts) -> str:
    """The text of one field."""
    if field.key == "roles-*-accelerated":
        return field.measure.show(acceleration.is_accelerated(parts["roles"][number]["image"]))
    if not field.path:
        return ""
    value = get_value(parts, split_pointer(field.path, (number,)))
    if field.subfield is not None:
        return "" if value is ABSENT else field.subfield.show(value)
    if field.key == "registry-secret":
        return value["name"] if isinstance(value, dict) else ""
    return _default(field) if value is ABSENT else field.measure.show(value)


def _default(field: Field) -> str:
    """Return the value of a field whose part the job lacks."""
    return field.options[0][0] if field.options else ""


def rows_of(rows: Rows, number: int, parts: Parts) -> list[dict[str, str]]:
    """The rows of one list, each cell by its name; as many as the form shows."""
    return list(_READERS[rows.key](rows, number, parts))[:MOST_ROWS]


def _tags(_rows: Rows, _number: int, parts: Parts) -> Iterator[dict[str, str]]:
    for name, value in parts["tags"].items():
        yield {"name": name, "value": value}


def _env(_rows: Rows, _number: int, parts: Parts) -> Iterator[dict[str, str]]:
    for name, value in parts["env"].items():
        yield {"name": name, "value": value, "secret": ""}
    for name, secret in parts["secret_env"].items():
        yield {"name": name, "value": "", "secret": secret["name"]}


def _mounts(rows: Rows, _number: int, parts: Parts) -> Iterator[dict[str, str]]:
    for index, mount in enumerate(parts["mounts"]):
        if bool(mount["id"]) is (rows is DATASETS):
            yield {"was": str(index), **_cells(rows, mount)}


def _ports(rows: Rows, number: int, parts: Parts) -> Iterator[dict[str, str]]:
    for port in parts["roles"][number]["ports"]:
        yield _cells(rows, {**port, "begin": port["begin_at"]})


def _containers(rows: Rows, number: int, parts: Parts) -> Iterator[dict[str, str]]:
    for index, container in enumerate(parts["roles"][number][containers.member_of(rows)]):
        yield {"was": str(index), **_cells(rows, containers.shown_values(container))}


def _cells(rows: Rows, element: Mapping[str, Any]) -> dict[str, str]:
    cells = {cell.key: cell for cell in rows.cells}
    known = {key: element.get(key.replace("-", "_"), ABSENT) for key in cells}
    return {key: cells[key].measure.show(value) for key, value in known.items() if value is not ABSENT}


def _after(rows: Rows, _number: int, parts: Parts) -> Iterator[dict[str, str]]:
    for each in parts["after"]:
        yield _cells(rows, each)


_READERS = {
    AFTER.key: _after,
    TAGS.key: _tags,
    ENV.key: _env,
    MOUNTS.key: _mounts,
    DATASETS.key: _mounts,
    INIT_CONTAINERS.key: _containers,
    SIDECARS.key: _containers,
    PORTS.key: _ports,
}

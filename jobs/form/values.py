"""What the form shows of a JobSpec: the text of every field by its form name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobs.form import acceleration
from jobs.form.fields import (
    AFTER,
    DATASETS,
    ENV,
    FIELDS,
    MOST_ROLES,
    MOST_ROWS,
    MOUNTS,
    PORTS,
    ROWS,
    TAGS,
    Field,
    Rows,
)
from jobs.form.pointers import ABSENT, Parts, get, parts_of, split
from jobs.spec import JobSpec

Values = Mapping[str, str]
Row = Mapping[str, str]


def values_of(spec: JobSpec) -> dict[str, str]:
    """Every field and every cell of every row."""
    parts = parts_of(spec)
    found = {name: shown(field, number, parts) for name, field, number in fields_of(spec)}
    for rows, number in lists_of(spec):
        prefix = named(rows.key, number)
        for index, row in enumerate(rows_of(rows, number, parts)):
            found |= {f"{prefix}-{index}-{cell}": text for cell, text in row.items()}
    return found


def fields_of(spec: JobSpec) -> Iterator[tuple[str, Field, int]]:
    """Each field that stands by itself: its form name, and the number of its role."""
    for field in FIELDS.values():
        count = min(len(spec.roles), MOST_ROLES) if "*" in field.key else 1
        for number in range(count):
            yield named(field.key, number), field, number


def lists_of(spec: JobSpec) -> Iterator[tuple[Rows, int]]:
    """Each list of rows, and the number of its role."""
    for rows in ROWS.values():
        for number in range(min(len(spec.roles), MOST_ROLES) if "*" in rows.key else 1):
            yield rows, number


def named(key: str, number: int) -> str:
    """The form name of what belongs to that role."""
    return key.replace("*", str(number))


def shown(field: Field, number: int, parts: Parts) -> str:
    """The text of one field."""
    if field.key == "roles-*-accelerated":
        return field.measure.show(acceleration.is_on(parts["roles"][number]["image"]))
    if not field.path:
        return ""
    value = get(parts, split(field.path, (number,)))
    if field.within is not None:
        return "" if value is ABSENT else field.within.show(value)
    if field.key == "registry-secret":
        return value["name"] if isinstance(value, dict) else ""
    return _default(field) if value is ABSENT else field.measure.show(value)


def _default(field: Field) -> str:
    """What a field shows whose part the job does not have."""
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
    PORTS.key: _ports,
}

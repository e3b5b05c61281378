"""Tables as CSV: the rows of a list of the admin, and such a table as the document that site.yaml is.

Columns are called as in site.yaml; `person.gpus` is `gpus` in `person`.  Rows are found by names.  A column
that is left out changes nothing; an empty cell is what site.yaml has without the key.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from django.db.models import Model, QuerySet
from django.utils.translation import gettext as _
from pydantic import BaseModel

from console.siteyaml import exporting
from console.siteyaml.reading import Fault, Read, Wrong, unreadable, validate
from console.siteyaml.shape import QuotaShape, SpecShape, SpotShape
from jobs.dialects.base import Refused
from jobs.dialects.source import check_size
from jobs.dialects.spans import escape
from quotas.models import GpuType, Membership, Node, Quota, Spec, SpotPrice, User, Workspace
from quotas.sheets import lines, plain_cell

Values: TypeAlias = dict[str, Any]
Position: TypeAlias = tuple[int, int]
"""A line, and the number of a cell in it."""

TEXTS: Final = frozenset(
    (
        *("cluster", "description", "gpu_type", "kind", "name", "part_of", "period", "role", "source"),
        *("state", "unix_name", "why", "workspace"),
    )
)
"""Columns whose cells are texts; the others' are numbers, true or false, or JSON."""

SWITCHES: Final = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a list of the admin.

    `path` leads to a row in the document, with a colon before what is a column; where it ends without one,
    it leads to a list of rows.  A row is found by its `keys`.
    """

    model: type[Model]
    path: tuple[str, ...]
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    values: Callable[[Any], Values]
    related: tuple[str, ...] = ()
    is_scalar: bool = False
    """Whether the value of the last column is what stands at `path`."""

    def rows(self, queryset: QuerySet[Any]) -> Iterator[dict[str, str]]:
        """The cells of what there is, by columns."""
        for row in queryset.select_related(*self.related):
            values = self.values(row)
            yield {column: _cell(values[column]) for column in self.columns}

    def export(self, queryset: QuerySet[Any]) -> bytes:
        """The rows as CSV."""
        return lines([self.columns, *(list(row.values()) for row in self.rows(queryset))])


def _flat(shape: type[BaseModel], values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The columns of a part of site.yaml, with what `values` has for them."""
    for name, each in shape.model_fields.items():
        if isinstance(each.default, BaseModel):
            yield from _flat(type(each.default), values.get(name, {}), f"{name}.")
        elif name != "quotas":
            yield prefix + name, values.get(name, each.default)


def _quota(row: Quota) -> Values:
    above = exporting.name_in_tree(row.parent) if row.parent else ""
    found = dict(_flat(QuotaShape, {**exporting.quota(row, []), "part_of": above}))
    return {"workspace": row.workspace.slug, "cluster": row.cluster.slug, "slug": row.slug, **found}


TABLES: Final = {
    "user": Table(
        User,
        ("people", ":user"),
        ("user",),
        ("user", "unix_name"),
        lambda row: {"user": row.username, "unix_name": row.unix_name},
    ),
    "membership": Table(
        Membership,
        ("workspaces", ":workspace", "members", ":user"),
        ("workspace", "user"),
        ("workspace", "user", "role"),
        lambda row: {"workspace": row.workspace.slug, "user": row.user.username, "role": row.role},
        ("workspace", "user"),
        is_scalar=True,
    ),
    "quota": Table(
        Quota,
        ("workspaces", ":workspace", "quotas", ":cluster", ":slug"),
        ("workspace", "cluster", "slug"),
        ("workspace", "cluster", "slug", *dict(_flat(QuotaShape, {}))),
        _quota,
        ("workspace", "cluster", "parent__workspace"),
    ),
    "node": Table(
        Node,
        ("clusters", ":cluster", "nodes", ":name"),
        ("cluster", "name"),
        ("cluster", "name", "state", "why"),
        lambda row: {
            "cluster": row.cluster.slug,
            "name": row.name,
            "state": row.state,
            "why": row.state_why,
        },
        ("cluster",),
    ),
    "gputype": Table(
        GpuType,
        ("gpu_types", ":name"),
        ("name",),
        ("name", "aliases"),
        lambda row: {"name": row.name, "aliases": row.aliases},
        is_scalar=True,
    ),
    "spec": Table(
        Spec,
        ("specs",),
        ("name", "cluster", "workspace"),
        tuple(dict(_flat(SpecShape, {}))),
        lambda row: dict(_flat(SpecShape, exporting.spec(row))),
        ("cluster", "workspace"),
    ),
    "spotprice": Table(
        SpotPrice,
        ("clusters", ":cluster", "spot_prices"),
        ("cluster", "gpu_type", "from_hour", "until_hour"),
        ("cluster", *dict(_flat(SpotShape, {}))),
        lambda row: {"cluster": row.cluster.slug, **dict(_flat(SpotShape, exporting.spot(row)))},
        ("cluster",),
    ),
}
"""By the names of their models, as the admin's addresses have them."""


def read(text: str, table: Table) -> Read:
    """The CSV as site.yaml would say it.  Raises Wrong, with the CSV's lines and cells."""
    try:
        check_size(text)
    except Refused as refused:
        raise unreadable(refused) from None
    sheet = _Sheet(table)
    rows = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    try:
        sheet.begin(next(rows, []))
        line = rows.line_num + 1
        for cells in rows:
            sheet.add(line, cells)
            line = rows.line_num + 1
    except csv.Error as error:
        raise Wrong([Fault("", str(error), max(rows.line_num, 1))]) from None
    try:
        found = validate(sheet)
    except Wrong as wrong:
        raise Wrong([*sheet.faults, *wrong.faults]) from None
    if sheet.faults:
        raise Wrong(sheet.faults)
    return found


@dataclass(slots=True)
class _Sheet:
    """The document of a CSV, and where its cells stand."""

    table: Table
    value: Values = field(default_factory=lambda: {"version": 1})
    faults: list[Fault] = field(default_factory=list)
    _width: int = 0
    _numbers: dict[str, int] = field(default_factory=dict)
    _places: dict[str, tuple[Position, Position]] = field(default_factory=dict)
    _before: dict[tuple[str, ...], dict[str, str]] = field(default_factory=dict)
    _added: set[tuple[str, ...]] = field(default_factory=set)
    _workspaces: set[str] = field(default_factory=set)

    def position(self, pointer: str, *, key: bool = False) -> Position:
        """Line and cell of the value at `pointer` (or of its name), or of what is nearest around it."""
        while pointer and pointer not in self._places:
            pointer = pointer.rpartition("/")[0]
        return self._places.get(pointer, ((1, 1), (1, 1)))[not key]

    def begin(self, header: Sequence[str]) -> None:
        """Take the names of the columns.  Raises Wrong where one is missing by which rows are found."""
        self._width = len(header)
        for number, column in enumerate(header, 1):
            name = plain_cell(column).strip()
            if name in self.table.columns and name not in self._numbers:
                self._numbers[name] = number
            elif name:
                self.faults.append(Fault(f"/{name}", _("There is no such key here."), 1, number))
        missing = [name for name in self.table.keys if name not in self._numbers]
        self.faults += [Fault(f"/{name}", _("This is missing.")) for name in missing]
        if missing:
            raise Wrong(self.faults)
        rows = self.table.rows(self.table.model._default_manager.all())  # noqa: SLF001  # Django's name for it
        self._before = {tuple(row[key] for key in self.table.keys): row for row in rows}
        self._workspaces = set(Workspace.objects.values_list("slug", flat=True))

    def add(self, line: int, cells: Sequence[str]) -> None:
        """Take a row, unless everything is as it says."""
        if not any(cells):
            return
        plain = dict(enumerate(map(plain_cell, cells), 1))
        if any(cells[self._width :]):
            text = _("There is no such key here.")
            self.faults.append(Fault("", text, line, self._width + 1))
        row = {column: plain.get(number, "") for column, number in self._numbers.items()}
        names = tuple(row[key] for key in self.table.keys)
        before = self._before.get(names, {})
        if names in self._added:
            self._fault(line, self.table.keys[-1], _("This name is there twice."))
        elif ":workspace" in self.table.path and row["workspace"] not in self._workspaces:
            self._fault(line, "workspace", _("There is no workspace of this name."))
        elif (wanted := {**before, **row}) != before:
            self._put(line, wanted)
        self._added.add(names)

    def _fault(self, line: int, column: str, text: str) -> None:
        self.faults.append(Fault(f"/{column}", text, line, self._numbers[column]))

    def _put(self, line: int, row: Mapping[str, str]) -> None:
        """Say the row where it belongs."""
        path = [row[part[1:]] if part.startswith(":") else part for part in self.table.path]
        pointer, at = "", self.value
        for part, key in zip(self.table.path, path, strict=True):
            pointer += f"/{escape(key)}"
            place = (line, self._numbers.get(part[1:], 1))
            self._places.setdefault(pointer, (place, place))
            if part != self.table.path[-1]:
                at = at.setdefault(key, {})
        inside = {part[1:] for part in self.table.path if part.startswith(":")}
        value = _nested({column: cell for column, cell in row.items() if column not in inside})
        if self.table.is_scalar:
            last = self.table.columns[-1]
            at[path[-1]] = value.get(last, "" if last in TEXTS else [])
            self._places[pointer] = (self._places[pointer][0], (line, self._numbers.get(last, 1)))
        elif self.table.path[-1].startswith(":"):
            at[path[-1]] = value
        else:
            listed = at.setdefault(path[-1], [])
            pointer += f"/{len(listed)}"
            listed.append(value)
            self._places[pointer] = ((line, 1), (line, 1))
        for column, number in self._numbers.items():
            self._places[f"{pointer}/{column.replace('.', '/')}"] = ((line, number), (line, number))


def _nested(row: Mapping[str, str]) -> Values:
    """The values of cells; what is empty is left out, but nothing above a quota has to be said."""
    found: Values = {}
    for column, cell in row.items():
        *parts, name = column.split(".")
        at = found.setdefault(parts[0], {}) if parts else found
        if cell or name == "part_of":
            at[name] = _value(name, cell)
    return found


def _value(column: str, cell: str) -> Any:
    """What a cell says; what is no value stays a text, and the shape of the document refuses it."""
    if column in TEXTS:
        return cell
    word = cell.strip().lower()
    try:
        return SWITCHES[word] if word in SWITCHES else json.loads(cell)
    except (ValueError, RecursionError):
        return cell


def _cell(value: Any) -> str:
    if value in (None, "", [], {}):
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

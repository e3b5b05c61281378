"""Tables as CSV: the rows of a list of the admin, and such a table as the document that site.yaml is.

Columns are called as in site.yaml; `person.gpus` is `gpus` in `person`.  Rows are found by names.  A column
that is left out changes nothing; an empty cell is what site.yaml has without the key.  Types and lists are
written as pages show them: `A100: 8, V100: 4`, `alice, bob`; JSON is read too.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.db.models import Model, QuerySet
from django.utils.translation import gettext as _
from pydantic import BaseModel

from console.site_yaml import export
from console.site_yaml.parser import Fault, Read, Wrong, unreadable, validate
from console.site_yaml.shape import QuotaShape, SpecShape, SpotShape
from jobs.dialects.base import Refused
from jobs.dialects.source import check_size
from jobs.dialects.spans import escape
from quotas.models import GpuType, Membership, Node, Quota, Spec, SpotPrice, User, Workspace
from quotas.sheets import lines, plain_cell

TEXTS: Final = frozenset(
    (
        *("cluster", "description", "gpu_type", "kind", "name", "part_of", "period", "role", "source"),
        *("state", "unix_name", "why", "workspace", "email", "first_name", "last_name"),
    )
)
"""Columns whose cells are texts."""

LISTED: Final = frozenset({"aliases", "exempt_people", "exempt_roles", "groups"})
"""Columns whose cells are as in `alice, bob`, or JSON."""

COUNTED: Final = frozenset({"gpus", "gpus_by_type"})
"""Columns whose cells may have types and numbers, as in `A100: 8, V100: 4`."""

NAMED: Final = frozenset({"exempt_labels", "workspaces"})
"""Columns whose cells may have names and values, as in `vision: developer, speech: admin`."""

JSON_WORDS: Final = {"TRUE": "true", "FALSE": "false", "yes": "true", "no": "false"}
"""What spreadsheets and people write for JSON's words."""

LISTS: Final = ("specs", "spot_prices")
"""Parts of the document that have no names for what is in them."""


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a list of the admin.

    `path` leads to a row in the document, with a colon before what a cell says.  Rows are found by `keys`.
    """

    model: type[Model]
    path: tuple[str, ...]
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    values: Callable[[Any], Mapping[str, Any]]
    related: tuple[str, ...] = ()
    is_scalar: bool = False
    """Whether the value of the last column is what stands at `path`."""
    is_partial: bool = False
    """Whether a row keeps what the document leaves out, so that only cells that differ are in it."""
    elsewhere: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By columns, the paths of their values, of which each has a name: the colon alone."""

    def rows(self, queryset: QuerySet[Any]) -> Iterator[dict[str, str]]:
        """The cells of what there is, by columns."""
        for row in queryset.prefetch_related(*self.related):
            values = self.values(row)
            yield {column: _cell(values[column]) for column in self.columns}

    def export(self, queryset: QuerySet[Any]) -> bytes:
        """The rows as CSV."""
        return lines([self.columns, *(list(row.values()) for row in self.rows(queryset))])


def _cell(value: Any) -> str:
    if value in (None, "", [], {}):
        return ""
    if isinstance(value, str):
        return value
    parts: list[str] = []
    text = ""
    if isinstance(value, dict):
        parts = [text for pair in value.items() for text in map(str, pair)]
        text = ", ".join(f"{name}: {each}" for name, each in value.items())
    elif isinstance(value, list):
        parts = [str(each) for each in value]
        text = ", ".join(parts)
    if parts and all(part and part == part.strip() and not _SIGNS & set(part) for part in parts):
        return text
    return json.dumps(value, ensure_ascii=False)


_SIGNS: Final = frozenset(',:"[]{}')
"""What a name or value has only in JSON."""


def _flat(shape: type[BaseModel], values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The columns of a part of site.yaml, with what `values` has for them."""
    for name, each in shape.model_fields.items():
        if isinstance(each.default, BaseModel):
            yield from _flat(type(each.default), values.get(name, {}), f"{name}.")
        elif name not in {"quotas", "policies"}:
            yield prefix + name, values.get(name, each.default)


def _quota(row: Quota) -> Mapping[str, Any]:
    above = export.name_in_tree(row.parent) if row.parent else ""
    values = dict(_flat(QuotaShape, {**export.quota(row), "part_of": above}))
    return {"workspace": row.workspace.slug, "cluster": row.cluster.slug, "slug": row.slug, **values}


def _person(row: User) -> Mapping[str, Any]:
    mine = sorted(row.memberships.all(), key=lambda each: each.workspace.slug)
    return {
        "user": row.username,
        "email": row.email,
        "first_name": row.first_name,
        "last_name": row.last_name,
        "unix_name": row.unix_name,
        "active": row.is_active,
        "superuser": row.is_superuser,
        "workspaces": {each.workspace.slug: str(each.role) for each in mine if not each.by_groups},
        "groups": sorted(group.name for group in row.local_groups.all()),
    }


TABLES: Final = {
    "user": Table(
        User,
        ("people", ":user"),
        ("user",),
        (
            *("user", "email", "first_name", "last_name", "unix_name", "active", "superuser"),
            *("workspaces", "groups"),
        ),
        _person,
        ("memberships__workspace", "local_groups"),
        is_partial=True,
        elsewhere={"workspaces": ("workspaces", ":", "members", ":user")},
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
        ("workspace", "cluster", "parent__workspace", "idle_exempt_people"),
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
        lambda row: dict(_flat(SpecShape, export.spec(row))),
        ("cluster", "workspace"),
    ),
    "spotprice": Table(
        SpotPrice,
        ("clusters", ":cluster", "spot_prices"),
        ("cluster", "gpu_type", "from_hour", "until_hour"),
        ("cluster", *dict(_flat(SpotShape, {}))),
        lambda row: {"cluster": row.cluster.slug, **dict(_flat(SpotShape, export.spot(row)))},
        ("cluster",),
    ),
}
"""By the names of their models, as the admin's addresses have them."""


def read(text: str, table: Table) -> Read:
    """The CSV as site.yaml would say it.  Raises Wrong, with the CSV's lines and numbers of cells."""
    rows = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""), restval="")
    try:
        check_size(text)
        rows.fieldnames = [name.strip() for name in rows.fieldnames or ()]
        sheet = _Sheet(table, {name: number for number, name in enumerate(rows.fieldnames, 1)})
        for row in rows:
            sheet.add(rows.line_num, row)
    except Refused as refused:
        raise unreadable(refused) from None
    except csv.Error as error:
        raise Wrong([Fault("", str(error), rows.line_num)]) from None
    sheet.check_workspaces()
    return validate(sheet.value, sheet.position, sheet.faults)


class _Sheet:
    """The document of a CSV, and where its cells stand: a line, and the number of a cell in it."""

    def __init__(self, table: Table, numbers: Mapping[str, int]) -> None:
        """Raise Wrong where the header does not name by what rows are found."""
        faults = [
            Fault(f"/{name}", _("Unknown key."), 1, number)
            for name, number in numbers.items()
            if name not in table.columns
        ]
        faults += [Fault(f"/{name}", _("Required.")) for name in table.keys if name not in numbers]
        if not numbers.keys() >= set(table.keys):
            raise Wrong(faults)
        self.value: dict[str, Any] = {"version": 1}
        self.faults = faults
        self._added: set[tuple[str, ...]] = set()
        self._table, self._numbers = table, numbers
        self._places: dict[str, tuple[int, int]] = {}
        rows = table.rows(table.model._default_manager.all())  # noqa: SLF001  # Django's name for it
        self._before = {tuple(row[key] for key in table.keys): row for row in rows}

    def position(self, pointer: str, *, key: bool = False) -> tuple[int, int]:
        """Line and cell of the value at `pointer` (or of its name), or of what is nearest around it."""
        if self._table.is_scalar and not key:
            pointer += f"/{self._table.columns[-1]}"
        while pointer and pointer not in self._places:
            pointer = pointer.rpartition("/")[0]
        return self._places.get(pointer, (1, 1))

    def add(self, line: int, row: dict[Any, Any]) -> None:
        """Take a row, unless everything is as it says."""
        if any(row.pop(None, ())):
            self.faults.append(Fault("", _("Unknown key."), line, len(self._numbers) + 1))
        cells = {column: plain_cell(cell) for column, cell in row.items()}
        names = tuple(cells[key] for key in self._table.keys)
        before = self._before.get(names, {})
        if names in self._added:
            self.faults.append(Fault("", _("Duplicate name."), line))
        elif any(cells.values()) and (wanted := {**before, **cells}) != before:
            if self._table.is_partial:
                wanted = {key: cell for key, cell in wanted.items() if cell != before.get(key, "")}
                wanted |= dict(zip(self._table.keys, names, strict=True))
            self._set_value(line, wanted)
            self._added.add(names)

    def _set_value(self, line: int, row: Mapping[str, str]) -> None:
        """Say a row where it belongs."""
        pointer, key = "", ""
        at: Any = self.value
        above = at
        for part in self._table.path:
            key = row[part[1:]] if part.startswith(":") else part
            pointer += f"/{escape(key)}"
            self._places.setdefault(pointer, (line, self._numbers.get(part[1:], 1)))
            above, at = at, at.setdefault(key, [] if part in LISTS else {})
        if isinstance(at, list):
            at.append({})
            pointer, at = f"{pointer}/{len(at) - 1}", at[-1]
            self._places[pointer] = (line, 1)
        for column in self._table.columns:
            *inside, name = column.split(".")
            values = at.setdefault(inside[0], {}) if inside else at
            cell = row.get(column, "")
            if column in self._table.elsewhere:
                self._set_elsewhere(line, column, row)
            elif f":{column}" not in self._table.path and (
                cell or (self._table.is_partial and column in row)
            ):
                values[name] = _value(name, cell)
        if self._table.is_scalar:
            above[key] = next(iter(at.values()), [])
        for column, number in self._numbers.items():
            self._places[f"{pointer}/{column.replace('.', '/')}"] = (line, number)

    def _set_elsewhere(self, line: int, column: str, row: Mapping[str, str]) -> None:
        """Say the values of a cell where they belong."""
        cell = row.get(column, "")
        found = _value(column, cell) if cell else {}
        number = self._numbers.get(column, 1)
        if not isinstance(found, dict):
            text = _("Enter names and values, such as “vision: developer, speech: admin”.")
            self.faults.append(Fault(f"/{column}", text, line, number))
            return
        *above, last = self._table.elsewhere[column]
        for name, value in found.items():
            at, pointer = self.value, ""
            for part in above:
                key = name if part == ":" else part
                pointer += f"/{escape(key)}"
                self._places.setdefault(pointer, (line, number))
                at = at.setdefault(key, {})
            key = row[last[1:]]
            at[key] = value
            self._places[f"{pointer}/{escape(key)}"] = (line, number)

    def check_workspaces(self) -> None:
        """Note those that are not there: a slip of the pen makes none."""
        known = Workspace.objects.values_list("slug", flat=True)
        for slug in self.value.get("workspaces", {}).keys() - set(known):
            pointer = f"/workspaces/{escape(slug)}"
            place = self.position(pointer, key=True)
            self.faults.append(Fault(pointer, _("Workspace not found."), *place))


def _value(column: str, cell: str) -> Any:
    """Return the value of a cell; text that is nothing else is left for the schema to refuse."""
    if column in TEXTS:
        return cell
    if column in LISTED and not cell.lstrip().startswith("["):
        return [part.strip() for part in cell.split(",") if part.strip()]
    if column in NAMED | COUNTED and ":" in cell and not cell.lstrip().startswith("{"):
        return _pairs(cell, counts=column in COUNTED)
    try:
        return json.loads(JSON_WORDS.get(cell, cell))
    except (ValueError, RecursionError):
        return cell


def _pairs(cell: str, *, counts: bool) -> Any:
    """Return names and their values; the cell as it is where it has none."""
    found: dict[str, Any] = {}
    for part in filter(None, (each.strip() for each in cell.split(","))):
        name, colon, value = (each.strip() for each in part.rpartition(":"))
        if not colon or not name or (counts and not value.isdecimal()):
            return cell
        found[name] = int(value) if counts else value
    return found

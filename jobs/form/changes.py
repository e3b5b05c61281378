"""Changes of a form, applied to its JobSpec, and the problems by field."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from jobs.dialects.base import Problem
from jobs.form import acceleration, containers
from jobs.form.fields import (
    AFTER,
    DATASETS,
    ENV,
    INIT_CONTAINERS,
    MOST_ROLES,
    MOUNTS,
    PORTS,
    SIDECARS,
    TAGS,
    Field,
    Rows,
)
from jobs.form.measures import InvalidValue, Params
from jobs.form.roles import next_role
from jobs.form.subfields import SubfieldEdit
from jobs.form.values import (
    ABSENT,
    Parts,
    Values,
    drop_empty_parts,
    fields_of,
    find_list,
    form_name,
    get_value,
    lists_of,
    parts_of,
    row_indexes,
    rows_of,
    set_value,
    split_pointer,
    values_of,
)
from jobs.spec import ENV_NAME, JobSpec

_ENV_NAME: Final = re.compile(ENV_NAME)

MOST_TRIES: Final = 50
"""The number of fields that are given up one after the other, until the JobSpec is valid."""


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """Why a field can't be taken; `code` is a sentence of `jobs.messages.form_fields`.

    `because` is what the dialect says of the file that it would become.
    """

    code: str
    params: Params = field(default_factory=dict)
    because: Problem | None = None


@dataclass(frozen=True, slots=True)
class ChangeResult:
    """`spec` has all valid changes; `problems` are by form name."""

    spec: JobSpec
    problems: Mapping[str, FieldProblem] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RowActions:
    """Buttons beside the fields: `add` is a list that is to be longer, `remove` an element of one."""

    add: str = ""
    remove: str = ""


NO_ACTIONS: Final = RowActions()


def apply_changes(
    spec: JobSpec, posted: Values, base: Values | None = None, acts: RowActions = NO_ACTIONS
) -> ChangeResult:
    """Apply to `spec` what in `posted` differs from `base`, the form's values when it was rendered.

    Without `base` it is what `spec` itself says.  A field that is not in `posted` was not changed.
    """
    shown = values_of(spec)
    known = shown if base is None else base
    change = _Change(parts_of(spec), {**_omitted_cells(spec, known), **posted}, acts)
    for name, one, number in fields_of(spec):
        if name in posted and posted[name] != known.get(name, shown[name]):
            change.take_field(name, one, number)
    for rows, number in lists_of(spec):
        prefix = form_name(rows.key, number) + "-"
        before = {name: text for name, text in known.items() if _is_row(name, prefix)}
        now = {name: text for name, text in posted.items() if _is_row(name, prefix)}
        different = any(text != before.get(name, _default_cell(rows, name)) for name, text in now.items())
        if different or acts.remove.rpartition("-")[0] == form_name(rows.key, number):
            change.take_rows(rows, number)
    change.take_roles()
    return change.build(spec)


def _omitted_cells(spec: JobSpec, known: Values) -> dict[str, str]:
    """Return the cells of known rows that were not posted."""
    prefixes = tuple(f"{form_name(rows.key, number)}-" for rows, number in lists_of(spec))
    return {name: text for name, text in known.items() if name.startswith(prefixes)}


def _is_row(name: str, prefix: str) -> bool:
    return name.startswith(prefix) and name[len(prefix) :][:1].isdigit() and not name.endswith("-was")


def _default_cell(rows: Rows, name: str) -> str:
    """Return the value of a cell in a new, empty row."""
    cell = next((cell for cell in rows.cells if name.endswith(f"-{cell.key}")), None)
    return cell.options[0][0] if cell and cell.options else ""


class _Change:
    """Collects edits, then applies as many of them as make a valid job."""

    def __init__(self, parts: Parts, posted: Values, acts: RowActions) -> None:
        self._parts = parts
        self._posted = posted
        self._acts = acts
        self._edits: dict[str, Edits] = {}
        self._problems: dict[str, FieldProblem] = {}
        self._roles: list[Parts] | None = None

    def take_field(self, name: str, one: Field, number: int) -> None:
        """Note one field's new value."""
        try:
            value = one.measure.read(self._posted[name])
        except InvalidValue as wrong:
            self._problems[name] = FieldProblem(wrong.code, wrong.params)
            return
        if one.key == "roles-*-accelerated":
            steps = split_pointer("/roles/*/image", (number,))
            image = self._posted.get(form_name("roles-*-image", number), get_value(self._parts, steps))
            self._edits[name] = [(steps, acceleration.set_acceleration(image, value))]
        elif one.key == "registry-secret":
            self._edits[name] = [(split_pointer(one.path), {"name": value} if value else None)]
        elif one.subfield is not None:
            self._edits[name] = [(split_pointer(one.path, (number,)), SubfieldEdit(one.subfield, value))]
        elif one.path:
            self._edits[name] = [(split_pointer(one.path, (number,)), value)]

    def take_rows(self, rows: Rows, number: int) -> None:
        """Note one list's new rows."""
        prefix = form_name(rows.key, number)
        edits: Edits = []
        read, wrong = self._read(rows, prefix)
        wrong |= _WRITERS[rows.key](self._parts, number, read, edits)
        wrong_in = {f"{prefix}-{row}-{cell}": problem for (row, cell), problem in wrong.items()}
        if wrong_in:
            self._problems |= wrong_in
        else:
            self._edits[prefix] = edits

    def _read(self, rows: Rows, prefix: str) -> tuple[list[RowInput], RowProblems]:
        read, wrong = [], {}
        for index in row_indexes(self._posted, prefix):
            if self._acts.remove == f"{prefix}-{index}":
                continue
            cells: dict[str, Any] = {}
            for cell in rows.cells:
                text = self._posted.get(f"{prefix}-{index}-{cell.key}", "")
                if cell.kind == "choice" and not text and cell.options:
                    text = cell.options[0][0]
                try:
                    cells[cell.key] = cell.measure.read(text)
                except InvalidValue as problem:
                    wrong[(index, cell.key)] = FieldProblem(problem.code, problem.params)
            read.append(RowInput(index, cells))
        return read, wrong

    def take_roles(self) -> None:
        """A role more, like the last one, or one less."""
        roles = list(self._parts["roles"])
        prefix, _dash, number = self._acts.remove.rpartition("-")
        if self._acts.add == "roles" and len(roles) < MOST_ROLES:
            taken = {role["name"] for role in roles}
            name = next_role(self._parts["framework"], roles[-1]["name"], taken)
            self._roles = [*roles, {**roles[-1], "name": name}]
        elif prefix == "roles" and number.isdecimal() and len(roles) > 1 and int(number) < len(roles):
            self._roles = [role for index, role in enumerate(roles) if index != int(number)]

    def build(self, spec: JobSpec) -> ChangeResult:
        """The job with as many of the changes as make one."""
        for _try in range(MOST_TRIES):
            parts, before = parts_of(spec), parts_of(spec)
            moves = []
            for edits in self._edits.values():
                for steps, value in edits:
                    if isinstance(value, MountChanges):
                        moves.append(value)
                    elif isinstance(value, SubfieldEdit):
                        set_value(parts, steps, value.subfield.replace(get_value(parts, steps), value.text))
                    else:
                        set_value(parts, steps, value)
            parts["mounts"] = _merge_mounts(parts["mounts"], moves)
            if self._roles is not None:
                parts["roles"] = self._with_changes(parts["roles"])
            try:
                return ChangeResult(JobSpec.model_validate(drop_empty_parts(parts, before)), self._problems)
            except ValidationError as error:
                if not self._edits:
                    break
                self._give_up(error)
        return ChangeResult(spec, self._problems)

    def _with_changes(self, roles: Iterable[Parts]) -> tuple[Parts, ...]:
        """Return the new list of roles, with the other changes in them."""
        now = {role["name"]: role for role in roles}
        return tuple(now.get(role["name"], role) for role in self._roles or ())

    def _give_up(self, error: ValidationError) -> None:
        """Drop the edits that the error is about, and record the problems."""
        found = False
        for each in error.errors():
            for name in self._find_blamed(each["loc"]):
                del self._edits[name]
                self._problems[_first_cell(name)] = FieldProblem(_code(each["loc"], each["type"]))
                found = True
        if not found:  # of several that contradict each other, the last
            name = list(self._edits)[-1]
            del self._edits[name]
            self._problems[_first_cell(name)] = FieldProblem("no_fit")

    def _find_blamed(self, place: tuple[int | str, ...]) -> list[str]:
        return [
            name
            for name, edits in self._edits.items()
            if any(_overlap(steps, place) for steps, _value in edits)
        ]


def _overlap(steps: list[str | int], place: tuple[int | str, ...]) -> bool:
    if place == ():  # the job as a whole: its roles' names repeat
        return steps[0] == "roles" and steps[-1] == "name"
    shorter = min(len(steps), len(place))
    return shorter > 0 and list(steps[:shorter]) == list(place[:shorter])


def _first_cell(name: str) -> str:
    """Return the first visible cell of a list, which shows a problem of the whole list."""
    rows, prefix = find_list(name)
    if rows is None or prefix != name:
        return name
    return f"{name}-0-{next(cell.key for cell in rows.cells if cell.kind != 'hidden')}"


def _code(place: tuple[int | str, ...], kind: str) -> str:
    if place[:1] == ("code",) and kind == "value_error":
        return "code_needs_place"
    if place in ((), ("roles",)):
        return "repeats"
    return "no_fit"


# --- lists of rows ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowInput:
    """A parsed row and its index in the form."""

    index: int
    cells: Mapping[str, Any]

    def is_empty(self, *but: str) -> bool:
        """Tell whether nothing was filled in, apart from cells that always have a value."""
        return not any(value for key, value in self.cells.items() if key not in but)


RowProblems = dict[tuple[int, str], FieldProblem]
Edits = list[tuple[list[str | int], Any]]


def _write_tags(parts: Parts, _number: int, rows: list[RowInput], edits: Edits) -> RowProblems:
    found, wrong = _rows_by_name(rows, "name")
    tags = {name: row.cells["value"] for name, row in found.items()}
    edits.append((["tags"], tags | _unshown_entries(parts["tags"], TAGS, parts)))
    return wrong


def _write_env(parts: Parts, _number: int, rows: list[RowInput], edits: Edits) -> RowProblems:
    found, wrong = _rows_by_name(rows, "name")
    plain: dict[str, Any] = {}
    secret: dict[str, Any] = {}
    for name, row in found.items():
        if name and not _ENV_NAME.fullmatch(name):
            wrong[(row.index, "name")] = FieldProblem("no_variable", {"value": name})
        if named_secret := row.cells.get("secret"):
            secret[name] = {"name": named_secret}
        else:
            plain[name] = row.cells.get("value", "")
    for name, value in _unshown_entries({**parts["env"], **parts["secret_env"]}, ENV, parts).items():
        (secret if isinstance(value, dict) else plain).setdefault(name, value)
    edits += [(["env"], plain), (["secret_env"], secret)]
    return wrong


def _unshown_entries(values: Mapping[str, Any], rows: Rows, parts: Parts) -> dict[str, Any]:
    """Return the entries of the file that the form does not show."""
    seen = {row["name"] for row in rows_of(rows, 0, parts)}
    return {name: value for name, value in values.items() if name not in seen}


def _rows_by_name(rows: list[RowInput], key: str) -> tuple[dict[str, RowInput], RowProblems]:
    """The rows by their name; the ones without one, or with one that was there already, are wrong."""
    found: dict[str, RowInput] = {}
    wrong: RowProblems = {}
    for row in rows:
        name = row.cells.get(key, "")
        if row.is_empty():
            continue
        if not name:
            wrong[(row.index, key)] = FieldProblem("needed")
        elif name in found:
            wrong[(row.index, key)] = FieldProblem("repeats")
        found[name] = row
    return found, wrong


@dataclass(frozen=True, slots=True)
class MountChanges:
    """Changes of the job's mounts by their indexes (None: removed), and new mounts."""

    now: Mapping[int, Parts | None]
    new: tuple[Parts, ...]


def _merge_mounts(mounts: Iterable[Parts], moves: Iterable[MountChanges]) -> tuple[Parts, ...]:
    """Merge changes of datasets and direct mounts: they are one list in the job and keep their order."""
    now: dict[int, Parts | None] = dict(enumerate(mounts))
    new: list[Parts] = []
    for move in moves:
        now |= move.now
        new += move.new
    return tuple(each for each in (*now.values(), *new) if each is not None)


def _mount_writer(rows_here: Rows, what: str) -> Callable[[Parts, int, list[RowInput], Edits], RowProblems]:
    """Return the writer of the rows of datasets (with an `id`) or direct mounts (with a `uri`)."""

    def write(parts: Parts, _number: int, rows: list[RowInput], edits: Edits) -> RowProblems:
        wrong: RowProblems = {}
        now: dict[int, Parts | None] = {int(row["was"]): None for row in rows_of(rows_here, 0, parts)}
        new: list[Parts] = []
        for row in rows:
            was = row.cells.get("was", "")
            known = was.isdecimal() and now.get(int(was), ABSENT) is None
            if not row.cells.get(what):
                if known or not row.is_empty("was", "purpose"):
                    wrong[(row.index, what)] = FieldProblem("needed")
                continue
            values = {key.replace("-", "_"): value for key, value in row.cells.items() if key != "was"}
            if known:
                now[int(was)] = {**parts["mounts"][int(was)], **values}
            else:
                new.append(values)
        edits.append((["mounts"], MountChanges(now, tuple(new))))
        return wrong

    return write


def _write_ports(parts: Parts, number: int, rows: list[RowInput], edits: Edits) -> RowProblems:
    named_rows, wrong = _rows_by_name([row for row in rows if not row.is_empty("count")], "label")
    ports = [
        {"label": label, "begin_at": row.cells.get("begin", 0), "count": row.cells.get("count", 1)}
        for label, row in named_rows.items()
    ]
    shown = len(rows_of(PORTS, number, parts))
    hidden = parts["roles"][number]["ports"][shown:]
    edits.append((["roles", number, "ports"], (*ports, *hidden)))
    return wrong


def _container_writer(rows_here: Rows) -> Callable[[Parts, int, list[RowInput], Edits], RowProblems]:
    """Return the writer of the rows of init containers or sidecars."""
    member = containers.member_of(rows_here)

    def write(parts: Parts, number: int, rows: list[RowInput], edits: Edits) -> RowProblems:
        wrong: RowProblems = {}
        before = parts["roles"][number][member]
        shown = {row["was"]: before[int(row["was"])] for row in rows_of(rows_here, number, parts)}
        found: list[Parts] = []
        names: set[str] = set()
        for row in rows:
            if not row.cells.keys() >= {"command", "env"}:  # one of them has a problem of its own
                continue
            container = containers.merge_row(shown.get(row.cells["was"]), row.cells)
            if not any(container.values()):
                continue
            found.append(container)
            if bad := next((name for name in container["env"] if not _ENV_NAME.fullmatch(name)), None):
                wrong[(row.index, "env")] = FieldProblem("no_variable", {"value": bad})
            if container["name"] in names:
                wrong[(row.index, "name")] = FieldProblem("repeats")
            names |= {container["name"]} - {""}
        edits.append((["roles", number, member], (*found, *before[len(shown) :])))
        return wrong

    return write


def _write_after(parts: Parts, number: int, rows: list[RowInput], edits: Edits) -> RowProblems:
    found, wrong = _rows_by_name([row for row in rows if not row.is_empty("when")], "job")
    waits = [{"job": job, "when": row.cells["when"]} for job, row in found.items() if "when" in row.cells]
    edits.append((["after"], (*waits, *parts["after"][len(rows_of(AFTER, number, parts)) :])))
    return wrong


_WRITERS: Final = {
    AFTER.key: _write_after,
    TAGS.key: _write_tags,
    ENV.key: _write_env,
    MOUNTS.key: _mount_writer(MOUNTS, "uri"),
    DATASETS.key: _mount_writer(DATASETS, "id"),
    INIT_CONTAINERS.key: _container_writer(INIT_CONTAINERS),
    SIDECARS.key: _container_writer(SIDECARS),
    PORTS.key: _write_ports,
}

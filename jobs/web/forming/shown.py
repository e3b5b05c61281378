"""Fields, rows and groups of the form as its templates draw them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from django.forms.utils import flatatt
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from jobs.form.changes import FieldProblem
from jobs.form.fields import FIELDS, MOST_ROWS, ROWS, Field, Kind, Rows, Words
from jobs.form.saying import unsayable
from jobs.form.values import Values, named, values_of
from jobs.jobtemplates import Constraint
from jobs.jobtemplates.constraints import Rules as Constraints
from jobs.messages.forming import field_message, off_message
from jobs.spec import JobSpec, TaskRole
from jobs.web.forming.standing import NOWHERE, Spoken, Standing, Told

Options = Sequence[tuple[str, Words]]


@cache
def defaults() -> Mapping[str, str]:
    """What the form of a job says that nobody has said anything of."""
    return values_of(JobSpec(name="-", roles=(TaskRole(name="-", command="-"),)))


@dataclass(frozen=True, slots=True)
class Shown(Spoken):
    """One field.  `off` says why it can't be filled in, and `locked` that a template is why; `hint` is worth
    knowing; `label` is what it is called where no label stands beside it.

    `offered` is a value that one press takes.  `closed` is the rule for which it can't be used where the job
    would run, or is `hidden` there; `told` what else the rules say; `fate` what the backend does with it
    instead of what it says.  `suggested` are values to choose from that are not the only ones.
    """

    field: Field
    name: str
    value: str
    problem: str = ""
    off: str = ""
    options: Options = ()
    hint: str = ""
    offered: str = ""
    hidden: bool = False
    closed: Told | None = None
    told: tuple[Told, ...] = ()
    fate: str = ""
    suggested: Options = ()
    label: str = ""
    locked: bool = False

    @property
    def attributes(self) -> SafeString:
        """What is said of its input to those who don't see what stands around it, and whether it may be used.

        Made here and not by a template: a page has a hundred of them.
        """
        said: dict[str, str | bool] = {}
        if self.label:
            said["aria-label"] = self.label
        if by := self.described_by:
            said["aria-describedby"] = by
        if self.problem:
            said["aria-invalid"] = "true"
        if self.off or self.closed:
            said["disabled"] = True
        if self.suggested:
            said["list"] = f"{self.id}_list"
        if self.field.placeholder:
            said["placeholder"] = str(self.field.placeholder)
        return flatatt(said)

    @property
    def input(self) -> str:
        """The template of what it is filled in with."""
        return f"jobs/new/inputs/{self.field.kind}.html"

    @property
    def id(self) -> str:
        """The id of the input."""
        return f"f-{self.name}"

    @property
    def described_by(self) -> str:
        """The ids of what is said about it; in a row that is only what is wrong."""
        if self.label:
            return f"{self.id}_problem" if self.problem else ""
        said = (
            ("problem", self.problem),
            ("off", self.off),
            ("closed", self.closed),
            ("warned", self.warned),
            ("fate", self.fate),
            ("help", self.field.help),
            ("hint", self.hint),
        )
        return " ".join(f"{self.id}_{part}" for part, words in said if words)

    @property
    def is_set(self) -> bool:
        """Whether it says something of its own."""
        return self.field.kind != Kind.SECRET and self.value != defaults().get(named(self.field.key, 0), "")


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row; `name` is what a press on its Remove says."""

    name: str
    cells: tuple[Shown, ...]


@dataclass(frozen=True, slots=True)
class ShownRows(Spoken):
    """A list of rows, and an empty one to go on with."""

    rows: Rows
    name: str
    elements: tuple[ShownRow, ...]
    blank: ShownRow | None
    off: str = ""
    told: tuple[Told, ...] = ()
    locked: bool = False

    @property
    def id(self) -> str:
        """The id of the list."""
        return f"rows-{self.name}"

    @property
    def is_set(self) -> int:
        """How many there are."""
        return len(self.elements)


@dataclass(frozen=True, slots=True)
class Group:
    """Fields that are folded together, with how many are set; `fate` is what becomes of all of them.

    `problem` is about `pasted`, the text that was to become rows.
    """

    id: str
    label: Words
    fields: tuple[Shown, ...] = ()
    rows: tuple[ShownRows, ...] = ()
    template: str = ""
    fate: str = ""
    pasted: str = ""
    problem: str = ""

    @property
    def count(self) -> int:
        """How many of its fields say something of their own."""
        return sum(each.is_set for each in self.fields) + sum(each.is_set for each in self.rows)

    @property
    def wrong(self) -> bool:
        """Whether one of its fields has a problem, or says what it should not, so that it is opened."""
        cells = (cell for rows in self.rows for row in _all(rows) for cell in row.cells)
        if self.problem or any(each.problem for each in (*self.fields, *cells)):
            return True
        return any(each.warned for each in self.fields) or any(each.warned for each in self.rows)


def told_once(group: Group) -> Group:
    """The group, with what the backend does with its fields said once, where it is the same of all."""
    fates = {each.fate for each in group.fields}
    if len(group.fields) < 2 or len(fates) != 1:
        return group
    return replace(group, fields=tuple(replace(each, fate="") for each in group.fields), fate=fates.pop())


def _all(rows: ShownRows) -> Iterable[ShownRow]:
    return (*rows.elements, *([rows.blank] if rows.blank else ()))


@dataclass(frozen=True, slots=True)
class Block:
    """What is asked of one task role in a section."""

    role: int
    title: str
    fields: tuple[Shown, ...] = ()
    rows: tuple[ShownRows, ...] = ()
    groups: tuple[Group, ...] = ()
    removable: bool = False


@dataclass(frozen=True, slots=True)
class Locks:
    """What a template keeps as it is; `name` and `version` are the template's."""

    rules: Constraints
    name: str
    version: int

    def why(self, path: str) -> str:
        """Why the field at `path` can't be filled in; "" where it can."""
        if self.rules.of(path) is not Constraint.LOCKED:
            return ""
        return _("Locked by the template “%(name)s” v%(version)s.") % {
            "name": self.name,
            "version": self.version,
        }


@dataclass(frozen=True, slots=True)
class Drawing:
    """What a section's view-model draws from.

    `secrets` are the names of the person's own; `roles` the names of the job's.
    """

    dialect: str
    values: Values
    problems: Mapping[str, FieldProblem] = field(default_factory=dict)
    kept: Values = field(default_factory=dict)
    secrets: Sequence[str] = ()
    roles: Sequence[str] = ("",)
    standing: Standing = NOWHERE
    locks: Locks | None = None

    def one(
        self,
        key: str,
        role: int = 0,
        *,
        options: Options = (),
        hint: str = "",
        offered: str = "",
        suggested: Options = (),
    ) -> Shown:
        """The field of that key."""
        each = FIELDS[key]
        name = named(key, role)
        return Shown(
            each,
            name,
            self._value(name),
            self.problem(name),
            self._off(each, role),
            options or self._options(each, self._value(name)),
            hint,
            offered,
            self.standing.hidden(each),
            self.standing.closed(each),
            self.standing.told(each, role),
            self.standing.fate(each),
            suggested,
            locked=bool(self._lock(each, role)),
        )

    def several(self, *keys: str, role: int = 0) -> tuple[Shown, ...]:
        """The fields of those keys that mean something where the job would run."""
        found = (self.one(key, role) for key in keys)
        return tuple(each for each in found if not each.hidden)

    def rows(self, key: str, role: int = 0) -> ShownRows:
        """The rows of that key, and an empty one."""
        rows, name = ROWS[key], named(key, role)
        source = self.kept if any(each.startswith(f"{name}-") for each in self.kept) else self.values
        wrong = self._indexes(source, name)
        known = self._indexes(self.values, name)
        last = max(known, default=-1)
        there = [index for index in wrong if index <= last or self._is_filled(source, rows, name, index)]
        blank = max(there, default=-1) + 1
        return ShownRows(
            rows,
            name,
            tuple(self._row(rows, name, index, source, number) for number, index in enumerate(there, 1)),
            self._row(rows, name, blank, {}, len(there) + 1) if blank < MOST_ROWS else None,
            self._off(rows, role),
            self.standing.told(rows, role),
            bool(self._lock(rows, role)),
        )

    @staticmethod
    def _indexes(source: Values, name: str) -> list[int]:
        found = {
            int(number)
            for each in source
            if each.startswith(f"{name}-") and (number := each[len(name) + 1 :].partition("-")[0]).isdecimal()
        }
        return sorted(found)[:MOST_ROWS]

    @staticmethod
    def _is_filled(source: Values, rows: Rows, name: str, index: int) -> bool:
        return any(
            source.get(f"{name}-{index}-{cell.key}", "")
            not in ("", cell.options[0][0] if cell.options else "")
            for cell in rows.cells
        )

    def _row(self, rows: Rows, name: str, index: int, source: Values, number: int) -> ShownRow:
        cells = []
        for cell in rows.cells:
            full = f"{name}-{index}-{cell.key}"
            value = source.get(full, "")
            options = self._options(cell, value)
            label = _("%(list)s, row %(number)s: %(cell)s") % {
                "list": rows.label,
                "number": number,
                "cell": cell.label,
            }
            named_beside = cell.kind in (Kind.FLAG, Kind.HIDDEN)
            shown = Shown(cell, full, value, self.problem(full), "", options)
            cells.append(shown if named_beside else replace(shown, label=label))
        return ShownRow(f"{name}-{index}", tuple(cells))

    def _value(self, name: str) -> str:
        return self.kept.get(name, self.values.get(name, ""))

    def problem(self, name: str) -> str:
        """Return what is wrong with a field, in a sentence; "" where nothing is."""
        found = self.problems.get(name)
        return field_message(found.code, found.params, found.because) if found else ""

    def _off(self, each: Field | Rows, role: int) -> str:
        if why := self._lock(each, role):
            return why
        if not self.dialect or each.key not in unsayable(self.dialect):
            return ""
        return off_message(self.dialect, each.path.replace("*", "0"))

    def _lock(self, each: Field | Rows, role: int) -> str:
        return self.locks.why(each.path.replace("*", str(role), 1)) if self.locks and each.path else ""

    def _options(self, each: Field, value: str) -> Options:
        if each.key not in ("secret", "registry-secret"):
            left = self.standing.options(each)
            options = [
                (option, words)
                for option, words in each.options
                if left is None or not option or option in left or option == value
            ]
            if value and options and value not in {option for option, _words in options}:
                options.append((value, _("%(name)s, as the file has it") % {"name": value}))
            return options
        known = [("", _("None")), *((name, name) for name in self.secrets)]
        if value and value not in self.secrets:
            known.append((value, _("%(name)s, as the file has it") % {"name": value}))
        return known

"""Fields, rows and groups of the form as its templates draw them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from jobs.form.changes import FieldProblem
from jobs.form.dialect_support import unsupported_fields
from jobs.form.fields import FIELDS, MOST_ROWS, ROWS, Field, FieldKind, Rows, Words
from jobs.form.values import Values, form_name, row_indexes, values_of
from jobs.jobtemplates import Constraint
from jobs.jobtemplates.constraints import ConstraintRules as Constraints
from jobs.messages.form_fields import field_message, off_message
from jobs.spec import JobSpec, RoleSpec
from jobs.web.new_job.form.hints import NO_TARGET, FieldHint, Hinted, TargetState

Options = Sequence[tuple[str, Words]]


@cache
def defaults() -> Mapping[str, str]:
    """Return the form's values of a job without any settings."""
    return values_of(JobSpec(name="-", roles=(RoleSpec(name="-", command="-"),)))


def find_input(pointer: str) -> str:
    """Return the id of the input or list at a pointer into the JobSpec, or the nearest; "" for none."""
    steps = pointer.split("/")
    number = next((int(step) for step in steps if step.isdigit()), 0)
    steps = ["*" if step.isdigit() else step for step in steps]
    lists = {rows.path: rows.key for rows in ROWS.values()}
    while len(steps) > 1:
        path = "/".join(steps)
        if path in lists:
            return f"rows-{form_name(lists[path], number)}"
        for each in FIELDS.values():
            if each.path == path or each.path.startswith(f"{path}/"):
                return f"f-{form_name(each.key, number)}"
        steps.pop()
    return ""


@dataclass(frozen=True, slots=True)
class FormField(Hinted):
    """One field.  `off` is why it can't be filled in, and `locked` that a template is why; `hint` is worth
    knowing; `label` is what it is called where no label stands beside it.

    `offered` is a value that one press takes.  `closed` is the rule for which it can't be used where the job
    would run, or is `hidden` there; `hints` what else the rules say; `support` what the backend does with it
    instead of what it says; `unused`: it does nothing.  `suggested` are values to choose from, not the
    only ones.
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
    closed: FieldHint | None = None
    hints: tuple[FieldHint, ...] = ()
    support: str = ""
    suggested: Options = ()
    label: str = ""
    locked: bool = False
    unused: bool = False

    @property
    def attributes(self) -> SafeString:
        """The HTML attributes of the input: ARIA, disabled, list and placeholder.

        Made here and not by a template: a page has a hundred of them.
        """
        found = []
        if self.label:
            found.append(f' aria-label="{escape(self.label)}"')
        if by := self.described_by:
            found.append(f' aria-describedby="{by}"')
        if self.problem:
            found.append(' aria-invalid="true"')
        if self.suggested:
            found.append(f' list="{self.id}_list"')
        if self.field.placeholder:
            found.append(f' placeholder="{escape(self.field.placeholder)}"')
        if self.off or self.closed:
            found.append(" disabled")
        return mark_safe("".join(found))  # noqa: S308  # names of fields are our own, words are escaped

    @property
    def input(self) -> str:
        """The template of its input; a text with options of its own is chosen from them."""
        kind = FieldKind.CHOICE if self.options and self.field.kind == FieldKind.TEXT else self.field.kind
        return f"jobs/new/inputs/{kind}.html"

    @property
    def id(self) -> str:
        """The id of the input."""
        return f"f-{self.name}"

    @property
    def described_by(self) -> str:
        """The ids of its descriptions; in a row only that of its problem."""
        if self.label:
            return f"{self.id}_problem" if self.problem else ""
        attributes = (
            ("problem", self.problem),
            ("off", self.off),
            ("closed", self.closed),
            ("warned", self.violations),
            ("fate", self.support),
            ("help", self.field.help),
            ("hint", self.hint),
        )
        return " ".join(f"{self.id}_{part}" for part, words in attributes if words)

    @property
    def is_set(self) -> bool:
        """Tell whether it differs from the default."""
        return self.field.kind != FieldKind.SECRET and self.value != defaults().get(
            form_name(self.field.key, 0), ""
        )


@dataclass(frozen=True, slots=True)
class FormRow:
    """A row; `name` is the value of its Remove button."""

    name: str
    cells: tuple[FormField, ...]


@dataclass(frozen=True, slots=True)
class FormRows(Hinted):
    """A list of rows, and an empty one to go on with.

    `support` is what the backend does with it instead of what it says; `unused`: it does nothing.
    """

    rows: Rows
    name: str
    elements: tuple[FormRow, ...]
    blank: FormRow | None
    off: str = ""
    hints: tuple[FieldHint, ...] = ()
    locked: bool = False
    support: str = ""
    unused: bool = False

    @property
    def id(self) -> str:
        """The id of the list."""
        return f"rows-{self.name}"

    @property
    def is_set(self) -> int:
        """The number of rows."""
        return len(self.elements)


@dataclass(frozen=True, slots=True)
class FieldGroup:
    """Fields that are folded together; `support` is the backend's treatment of all of them.

    `problem` is about `pasted`, the text that was to become rows.
    """

    id: str
    label: Words
    fields: tuple[FormField, ...] = ()
    rows: tuple[FormRows, ...] = ()
    template: str = ""
    support: str = ""
    pasted: str = ""
    problem: str = ""

    @property
    def count(self) -> int:
        """The number of its fields that differ from their defaults."""
        return sum(each.is_set for each in self.fields) + sum(each.is_set for each in self.rows)

    @property
    def wrong(self) -> bool:
        """Tell whether one of its fields has a problem or a violation, so that it is unfolded."""
        cells = (cell for rows in self.rows for row in _all(rows) for cell in row.cells)
        if self.problem or any(each.problem for each in (*self.fields, *cells)):
            return True
        return any(each.violations for each in self.fields) or any(each.violations for each in self.rows)


def merge_support(group: FieldGroup) -> FieldGroup:
    """Return the group, with the backend's support once where it is the same for all fields."""
    values = {each.support for each in group.fields} | {each.support for each in group.rows}
    if len(group.fields) + len(group.rows) < 2 or len(values) != 1:
        return group
    return replace(
        group,
        fields=tuple(replace(each, support="") for each in group.fields),
        rows=tuple(replace(each, support="") for each in group.rows),
        support=values.pop(),
    )


def _all(rows: FormRows) -> Iterable[FormRow]:
    return (*rows.elements, *([rows.blank] if rows.blank else ()))


@dataclass(frozen=True, slots=True)
class RoleBlock:
    """The fields of one role in a section."""

    role: int
    title: str
    fields: tuple[FormField, ...] = ()
    rows: tuple[FormRows, ...] = ()
    groups: tuple[FieldGroup, ...] = ()
    removable: bool = False


@dataclass(frozen=True, slots=True)
class Locks:
    """The fields that a template locks; `name` and `version` are the template's."""

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
class FormBuilder:
    """Builds the fields and rows of the form.

    `secrets` are the names of the person's own; `roles` the names of the job's.
    """

    dialect: str
    values: Values
    problems: Mapping[str, FieldProblem] = field(default_factory=dict)
    rejected: Values = field(default_factory=dict)
    secrets: Sequence[str] = ()
    roles: Sequence[str] = ("",)
    target_state: TargetState = NO_TARGET
    locks: Locks | None = None

    def get_field(
        self,
        key: str,
        role: int = 0,
        *,
        options: Options = (),
        hint: str = "",
        offered: str = "",
        suggested: Options = (),
    ) -> FormField:
        """The field of that key."""
        each = FIELDS[key]
        name = form_name(key, role)
        return FormField(
            each,
            name,
            self._value(name),
            self.problem(name),
            self._off(each, role),
            options or self._options(each, self._value(name)),
            hint,
            offered,
            self.target_state.is_hidden(each),
            self.target_state.closing_hint(each),
            self.target_state.hints(each, role),
            self.target_state.support(each),
            suggested,
            locked=bool(self._lock(each, role)),
            unused=self.target_state.is_unused(each),
        )

    def get_fields(self, *keys: str, role: int = 0) -> tuple[FormField, ...]:
        """The fields of those keys that mean something where the job would run."""
        found = (self.get_field(key, role) for key in keys)
        return tuple(each for each in found if not each.hidden)

    def get_rows(self, key: str, role: int = 0) -> FormRows:
        """The rows of that key, and an empty one."""
        rows, name = ROWS[key], form_name(key, role)
        source = self.rejected if any(each.startswith(f"{name}-") for each in self.rejected) else self.values
        wrong = row_indexes(source, name)[:MOST_ROWS]
        known = row_indexes(self.values, name)[:MOST_ROWS]
        last = max(known, default=-1)
        indexes = [index for index in wrong if index <= last or self._is_filled(source, rows, name, index)]
        blank = max(indexes, default=-1) + 1
        return FormRows(
            rows,
            name,
            tuple(self._row(rows, name, index, source, number) for number, index in enumerate(indexes, 1)),
            self._row(rows, name, blank, {}, len(indexes) + 1) if blank < MOST_ROWS else None,
            self._off(rows, role),
            self.target_state.hints(rows, role),
            bool(self._lock(rows, role)),
            self.target_state.support(rows),
            self.target_state.is_unused(rows),
        )

    @staticmethod
    def _is_filled(source: Values, rows: Rows, name: str, index: int) -> bool:
        return any(
            source.get(f"{name}-{index}-{cell.key}", "")
            not in ("", cell.options[0][0] if cell.options else "")
            for cell in rows.cells
        )

    def _row(self, rows: Rows, name: str, index: int, source: Values, number: int) -> FormRow:
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
            named_beside = cell.kind in (FieldKind.FLAG, FieldKind.HIDDEN)
            shown = FormField(cell, full, value, self.problem(full), "", options)
            cells.append(shown if named_beside else replace(shown, label=label))
        return FormRow(f"{name}-{index}", tuple(cells))

    def _value(self, name: str) -> str:
        return self.rejected.get(name, self.values.get(name, ""))

    def problem(self, name: str) -> str:
        """Return a field's problem in a sentence, or ""."""
        found = self.problems.get(name)
        return field_message(found.code, found.params, found.because) if found else ""

    def _off(self, each: Field | Rows, role: int) -> str:
        if why := self._lock(each, role):
            return why
        if not self.dialect or each.key not in unsupported_fields(self.dialect):
            return ""
        return off_message(self.dialect, each.path.replace("*", "0"))

    def _lock(self, each: Field | Rows, role: int) -> str:
        return self.locks.why(each.path.replace("*", str(role), 1)) if self.locks and each.path else ""

    def _options(self, each: Field, value: str) -> Options:
        if each.key not in ("secret", "registry-secret"):
            left = self.target_state.options(each)
            options = [
                (option, words)
                for option, words in each.options
                if left is None or not option or option in left or option == value
            ]
            if value and options and value not in {option for option, _words in options}:
                options.append((value, _("%(name)s (from the file)") % {"name": value}))
            return options
        known = [("", _("None")), *((name, name) for name in self.secrets)]
        if value and value not in self.secrets:
            known.append((value, _("%(name)s (from the file)") % {"name": value}))
        return known

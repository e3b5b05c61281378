"""A job file as a form: its values, what the form can't show, and what its dialect does not support.

The other way, the form's changes are applied to the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from jobs import dialects
from jobs.dialects import placeholders
from jobs.dialects.base import Parsed, Problem, Refused
from jobs.dialects.document import Document
from jobs.dialects.losses import losses
from jobs.form import containers, envfile
from jobs.form.changes import NO_ACTIONS, FieldProblem, RowActions, apply_changes
from jobs.form.dialect_support import DEFAULT_DIALECT, unsupported_fields
from jobs.form.fields import INIT_CONTAINERS, MOST_ROWS, SIDECARS
from jobs.form.values import (
    ABSENT,
    Parts,
    Values,
    fields_of,
    find_list,
    get_value,
    lists_of,
    parts_of,
    set_value,
    split_pointer,
    values_of,
)
from jobs.spec import JobSpec

ENV_PASTE: Final = "env-paste"
MOST_LINES_TOLD: Final = 5
"""The field that a `.env` file is pasted into."""

_ENV_NAME: Final = re.compile(r"env-[0-9]{1,5}-name")


@dataclass(frozen=True, slots=True)
class Reading:
    """A job file and its form values.  `parsed` is None where it can't be parsed.

    `unshown` are places of the file that the form has no field for.
    """

    document: Document
    parsed: Parsed | None = None
    refused: tuple[Problem, ...] = ()
    values: Values = field(default_factory=dict)
    unshown: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text of the job file."""
        return self.document.text

    @property
    def dialect(self) -> str:
        """Its dialect; "" when that is not clear."""
        return self.document.known_dialect or ""

    @property
    def off(self) -> frozenset[str]:
        """The keys of fields that the dialect does not support."""
        return unsupported_fields(self.dialect) if self.parsed else frozenset()


@dataclass(frozen=True, slots=True)
class FormResult:
    """The text with the form's changes, and the problems by field.

    `rejected` is what was typed into the fields that have a problem.
    """

    reading: Reading
    problems: Mapping[str, FieldProblem] = field(default_factory=dict)
    rejected: Values = field(default_factory=dict)


def read(document: Document) -> Reading:
    """Return the form's values of a job file; never raises."""
    try:
        parsed = document.parsed
    except Refused as refused:
        return Reading(document, refused=refused.problems)
    return Reading(document, parsed, values=values_of(parsed.spec), unshown=tuple(_unshown(parsed)))


def apply(
    document: Document,
    posted: Values,
    base: Values | None = None,
    acts: RowActions = NO_ACTIONS,
    *,
    convert: bool = False,
) -> FormResult:
    """Apply the form's changes to a job file; one that can't be parsed stays as it is.

    With `convert` the result is in the dialect that has words for every field.
    """
    before = read(document)
    if before.parsed is None:
        return FormResult(before, rejected=posted)
    problems: dict[str, FieldProblem] = {}
    if pasted := posted.get(ENV_PASTE, "").rstrip():
        variables, problems = _read_pasted(pasted)
        posted = {**posted, **_rows_of(variables, before.values, posted)}
    if convert and before.dialect != DEFAULT_DIALECT:
        before = _convert(before)
    assert before.parsed is not None
    change = apply_changes(before.parsed.spec, posted, base, acts)
    problems |= change.problems
    if change.spec == before.parsed.spec:
        return _result(before, problems, posted)
    wanted = values_of(change.spec)
    after = _rewrite(before, change.spec)
    if after.parsed is None:  # as this dialect has it, that would be no job any more
        why = FieldProblem("refused", because=after.refused[0])
        refused = {name: why for name, value in wanted.items() if value != before.values.get(name)}
        return _result(before, {**refused, **problems}, posted)
    unsaid = {
        name: FieldProblem("not_said", {"instead": after.values.get(name, "")})
        for name, value in wanted.items()
        if value not in (before.values.get(name), after.values.get(name), _fill(after, name))
    }
    return _result(after, {**unsaid, **problems}, posted)


def _fill(reading: Reading, name: str) -> str:
    """Return a field's text with the secret values that the file has, which the form never shows."""
    secrets = reading.parsed.secrets if reading.parsed else {}
    return placeholders.fill(reading.values.get(name, ""), secrets)


def _result(reading: Reading, problems: Mapping[str, FieldProblem], posted: Values) -> FormResult:
    lists = {find_list(name)[1] for name in problems} - {""}
    rejected = {
        name: text
        for name, text in posted.items()
        if name in problems or any(name.startswith(f"{each}-") for each in lists)
    }
    return FormResult(reading, problems, rejected)


def _rewrite(before: Reading, spec: JobSpec) -> Reading:
    """`spec` in the text: a patch where it can be, with the secret values that stood there."""
    return read(before.document.rewrite(spec))


def _convert(before: Reading) -> Reading:
    parsed = before.document.parsed
    after = read(dialects.get(DEFAULT_DIALECT).render(parsed.spec, {}).document.fill(parsed.secrets))
    return after if after.parsed else before


def _read_pasted(pasted: str) -> tuple[Mapping[str, str], dict[str, FieldProblem]]:
    """Return the variables of a pasted `.env`, or, where it can't be read whole, none and why."""
    count, most = len(pasted), envfile.MAX_CHARACTERS
    if count > most:
        return {}, {ENV_PASTE: FieldProblem("env_too_long", {"count": count, "most": most})}
    file = envfile.read_env_file(pasted)
    if not file.bad_lines:
        return file.variables, {}
    lines = ", ".join(map(str, file.bad_lines[:MOST_LINES_TOLD]))
    more = " …" if len(file.bad_lines) > MOST_LINES_TOLD else ""
    return {}, {ENV_PASTE: FieldProblem("env_lines", {"lines": lines + more})}


def _rows_of(variables: Mapping[str, str], values: Values, posted: Values) -> dict[str, str]:
    """Return variables as rows: known names get the new values, others come after them."""
    rows = {name: text for name, text in {**values, **posted}.items() if _ENV_NAME.fullmatch(name)}
    names = {text: name for name, text in rows.items()}
    last = max((int(name.split("-")[1]) for name in rows), default=-1)
    found: dict[str, str] = {}
    for variable, value in variables.items():
        known = names.get(variable)
        if known is None:
            last += 1
            known = f"env-{last}-name"
        found |= {known: variable, f"{known.removesuffix('name')}value": value}
    return found


# --- what the form can't show -----------------------------------------------------------------------------


def _unshown(parsed: Parsed) -> Iterator[str]:
    """Pointers: unknown keys of the text, then JobSpec paths that no field shows."""
    yield from (pointer for pointer in parsed.extras if pointer.startswith("/"))
    yield from (note.pointer for note in losses(parsed.spec, _shown_part(parsed.spec), "form"))
    parts = parts_of(parsed.spec)
    for rows, number in lists_of(parsed.spec):
        if len(get_value(parts, split_pointer(rows.path, (number,)))) > MOST_ROWS:
            yield rows.path.replace("*", str(number))


def _shown_part(spec: JobSpec) -> JobSpec:
    """As much of the job as the form has fields for."""
    parts = parts_of(spec)
    bare: Parts = parts_of(JobSpec.model_validate({"name": spec.name, "roles": _bare_roles(spec)}))
    for _name, one, number in fields_of(spec):
        if one.path:
            steps = split_pointer(one.path, (number,))
            value = get_value(parts, steps)
            if value is not ABSENT:
                set_value(bare, steps, value)
    for rows, number in lists_of(spec):
        steps = split_pointer(rows.path, (number,))
        value = get_value(parts, steps)
        if rows in (INIT_CONTAINERS, SIDECARS):
            value = tuple(map(containers.shown_part, value))
        set_value(bare, steps, value)
    bare["secret_env"] = parts["secret_env"]
    return JobSpec.model_validate(bare)


def _bare_roles(spec: JobSpec) -> tuple[dict[str, Any], ...]:
    return tuple({"name": role.name, "command": role.command} for role in spec.roles)

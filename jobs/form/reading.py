"""A job file as a form: what its text says, what the form can't show of it, and what its dialect can't say.

And the other way: the form's changes said in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from jobs import dialects
from jobs.dialects.base import Parsed, Problem, Refused
from jobs.dialects.document import Document
from jobs.dialects.losses import losses
from jobs.form import envfile
from jobs.form.changes import NO_ACTS, Acts, FieldProblem, changed
from jobs.form.fields import MOST_ROWS, ROWS
from jobs.form.pointers import ABSENT, Parts, get, parts_of, put, split
from jobs.form.saying import GOES_ON_AS, unsayable
from jobs.form.values import Values, fields_of, lists_of, values_of
from jobs.spec import JobSpec

PASTED: Final = "env-paste"
MOST_LINES_TOLD: Final = 5
"""The field that a `.env` file is pasted into."""

_ENV_NAME: Final = re.compile(r"env-[0-9]{1,5}-name")


@dataclass(frozen=True, slots=True)
class Reading:
    """A job file, and what the form shows of it.  `parsed` is None where it can't be read.

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
        """The keys of fields that this dialect can't say."""
        return unsayable(self.dialect) if self.parsed else frozenset()


@dataclass(frozen=True, slots=True)
class Applied:
    """The text with the form's changes in it, and what could not be said, by field.

    `kept` is what was typed into the fields that have a problem.
    """

    reading: Reading
    problems: Mapping[str, FieldProblem] = field(default_factory=dict)
    kept: Values = field(default_factory=dict)


def read(document: Document) -> Reading:
    """What the form shows of a job file; never raises."""
    try:
        parsed = document.parsed
    except Refused as refused:
        return Reading(document, refused=refused.problems)
    return Reading(document, parsed, values=values_of(parsed.spec), unshown=tuple(_unshown(parsed)))


def apply(
    document: Document,
    posted: Values,
    base: Values | None = None,
    acts: Acts = NO_ACTS,
    *,
    go_on: bool = False,
) -> Applied:
    """The job file with what was changed in the form; one that can't be read stays as it is.

    With `go_on` the result is in the dialect that has words for every field.
    """
    before = read(document)
    if before.parsed is None:
        return Applied(before, kept=posted)
    problems: dict[str, FieldProblem] = {}
    if pasted := posted.get(PASTED, "").rstrip():
        variables, problems = _read_pasted(pasted)
        posted = {**posted, **_rows_of(variables, before.values, posted)}
    if go_on and before.dialect != GOES_ON_AS:
        before = _gone_on(before)
    assert before.parsed is not None
    change = changed(before.parsed.spec, posted, base, acts)
    problems |= change.problems
    if change.spec == before.parsed.spec:
        return _told(before, problems, posted)
    wanted = values_of(change.spec)
    after = _said(before, change.spec)
    if after.parsed is None:  # as this dialect has it, that would be no job any more
        why = FieldProblem("refused", because=after.refused[0])
        refused = {name: why for name, value in wanted.items() if value != before.values.get(name)}
        return _told(before, {**refused, **problems}, posted)
    unsaid = {
        name: FieldProblem("not_said", {"instead": after.values.get(name, "")})
        for name, value in wanted.items()
        if value not in (before.values.get(name), after.values.get(name))
    }
    return _told(after, {**unsaid, **problems}, posted)


def _told(reading: Reading, problems: Mapping[str, FieldProblem], posted: Values) -> Applied:
    lists = {_list_of(name) for name in problems} - {""}
    kept = {
        name: text
        for name, text in posted.items()
        if name in problems or any(name.startswith(f"{each}-") for each in lists)
    }
    return Applied(reading, problems, kept)


def _list_of(name: str) -> str:
    """The list of rows that a cell belongs to; "" for a field by itself."""
    steps = name.split("-")
    for rows in ROWS.values():
        wanted = rows.key.split("-")
        same = all(step in (given, "*") for step, given in zip(wanted, steps, strict=False))
        if same and len(steps) > len(wanted) and steps[len(wanted)].isdigit():
            return "-".join(steps[: len(wanted)])
    return ""


def _said(before: Reading, spec: JobSpec) -> Reading:
    """`spec` in the text: a patch where it can be, with the secret values that stood there."""
    return read(before.document.rewrite(spec))


def _gone_on(before: Reading) -> Reading:
    parsed = before.document.parsed
    after = read(dialects.get(GOES_ON_AS).render(parsed.spec, {}).document.fill(parsed.secrets))
    return after if after.parsed else before


def _read_pasted(pasted: str) -> tuple[Mapping[str, str], dict[str, FieldProblem]]:
    """Return the variables of a pasted `.env`, or, where it can't be read whole, none and why."""
    count, most = len(pasted), envfile.MAX_CHARACTERS
    if count > most:
        return {}, {PASTED: FieldProblem("env_too_long", {"count": count, "most": most})}
    file = envfile.read_env_file(pasted)
    if not file.bad_lines:
        return file.variables, {}
    lines = ", ".join(map(str, file.bad_lines[:MOST_LINES_TOLD]))
    more = " …" if len(file.bad_lines) > MOST_LINES_TOLD else ""
    return {}, {PASTED: FieldProblem("env_lines", {"lines": lines + more})}


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
    yield from (note.pointer for note in losses(parsed.spec, _shown(parsed.spec), "form"))
    parts = parts_of(parsed.spec)
    for rows, number in lists_of(parsed.spec):
        if len(get(parts, split(rows.path, (number,)))) > MOST_ROWS:
            yield rows.path.replace("*", str(number))


def _shown(spec: JobSpec) -> JobSpec:
    """As much of the job as the form has fields for."""
    parts = parts_of(spec)
    bare: Parts = parts_of(JobSpec.model_validate({"name": spec.name, "roles": _bare_roles(spec)}))
    for _name, one, number in fields_of(spec):
        if one.path:
            steps = split(one.path, (number,))
            value = get(parts, steps)
            if value is not ABSENT:
                put(bare, steps, value)
    for rows, number in lists_of(spec):
        steps = split(rows.path, (number,))
        put(bare, steps, get(parts, steps))
    bare["secret_env"] = parts["secret_env"]
    return JobSpec.model_validate(bare)


def _bare_roles(spec: JobSpec) -> tuple[dict[str, Any], ...]:
    return tuple({"name": role.name, "command": role.command} for role in spec.roles)

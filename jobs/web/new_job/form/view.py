"""The form of a job file, and its posted values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, count
from typing import Any, Final

from django.http import QueryDict

from jobs.assets import personal_secrets
from jobs.dialects.document import Document
from jobs.form.changes import FieldProblem, RowActions
from jobs.form.dialect_support import DEFAULT_DIALECT
from jobs.form.fields import MOST_ROLES
from jobs.form.file_form import FormResult, Reading, apply
from jobs.form.values import Values
from jobs.jobtemplates.constraints import rules_of
from jobs.messages import dialect_label
from jobs.models import PersonalSecret
from jobs.submission.checks.findings import problems_of
from jobs.submission.templates import Chosen
from jobs.web.new_job.form.fields import FormBuilder, Locks, defaults
from jobs.web.new_job.form.hints import find_target_state
from jobs.web.new_job.form.sections import SECTIONS, SectionOfPage
from jobs.web.new_job.form.unused import UnusedFields, drop_unused, find_unused
from quotas.models import User

SHOWN: Final = "form-shown"
"""The form's values when it was rendered: different ones are changes."""

PASSWORD: Final = "registry-password"  # noqa: S105 a field's name
PASSWORD_NAME: Final = "REGISTRY_PASSWORD"  # noqa: S105 how it is called
ADD, REMOVE, CONVERT = "form-add", "form-remove", "form-go-on"


@dataclass(frozen=True, slots=True)
class FormSection:
    """A section with the context of its template."""

    page: SectionOfPage
    model: Mapping[str, Any]

    @property
    def count(self) -> int:
        """The number of its folded fields that are set."""
        groups = (*self.model.get("groups", ()), *(g for b in self.model.get("blocks", ()) for g in b.groups))
        return sum(group.count for group in groups)

    @property
    def is_empty(self) -> bool:
        """Tell whether all of its fields have no effect on the chosen cluster."""
        return not any(self.model.get(name) for name in ("fields", "groups", "blocks"))


@dataclass(frozen=True, slots=True)
class Form:
    """The context of `templates/jobs/new/form.html`.  `why` tells why it is read-only, if it is.

    `problems` counts the fields that have one, `wrong` is one of them.  `unused` are the fields that do
    nothing on the chosen cluster, which no section has.
    """

    sections: tuple[FormSection, ...]
    shown: str
    unused: UnusedFields
    unshown: tuple[str, ...] = ()
    why: str = ""
    problems: int = 0
    wrong: str = ""
    dialect: str = ""
    default_dialect: str = ""


def build_form(user: User, applied: FormResult, place: str = "", chosen: Chosen | None = None) -> Form:
    """Return the form of a job file, with the posted values that could not be applied.

    `place` is where the job is to run, as the page's form says it; `chosen` the template that it comes from.
    """
    reading = applied.reading
    names = list(PersonalSecret.objects.filter(owner=user).values_list("name", flat=True))
    builder = FormBuilder(
        reading.dialect if reading.parsed else "",
        reading.values if reading.parsed else defaults() if not applied.rejected else applied.rejected,
        applied.problems,
        applied.rejected,
        sorted(names),
        _roles(reading),
        find_target_state(user, reading.parsed, place),
        _locks(chosen),
    )
    elsewhere = reading.parsed is not None and reading.dialect != DEFAULT_DIALECT
    models = [(each, each.model(user, builder)) for each in SECTIONS]
    sections = (FormSection(each, drop_unused(model)) for each, model in models)
    return Form(
        tuple(sections),
        json.dumps(dict(reading.values), ensure_ascii=False, separators=(",", ":")),
        UnusedFields(tuple(group for each, model in models for group in find_unused(each.label, model))),
        reading.unshown,
        _why(reading),
        len(applied.problems),
        next(iter(applied.problems), ""),
        reading.dialect and dialect_label(reading.dialect),
        dialect_label(DEFAULT_DIALECT) if elsewhere else "",
    )


def _locks(chosen: Chosen | None) -> Locks | None:
    if chosen is None or not chosen.template.constraints:
        return None
    template = chosen.template
    return Locks(rules_of(template.constraints, template.dialect), chosen.name, template.version)


def _roles(reading: Reading) -> list[str]:
    if reading.parsed is None:
        return [""]
    return [role.name for role in reading.parsed.spec.roles[:MOST_ROLES]]


def _why(reading: Reading) -> str:
    """Return the first problem of the text."""
    return problems_of(reading.text, reading.refused[:1])[0].message if reading.refused else ""


# --- what was posted -------------------------------------------------------------------------------------


def is_posted(sent: QueryDict) -> bool:
    """Whether a form came with the text."""
    return SHOWN in sent


def apply_posted(user: User, sent: QueryDict, document: Document) -> FormResult:
    """Apply the changes of a posted form to its job file."""
    values = {name: value.replace("\r\n", "\n") for name, value in sent.items() if isinstance(value, str)}
    base = _base(values.pop(SHOWN, ""))
    password = values.pop(PASSWORD, "")
    problems: dict[str, FieldProblem] = {}
    if password and not document.problems:
        try:
            values["registry-secret"] = _store_password(user, values, password)
        except personal_secrets.TooMany:
            problems[PASSWORD] = FieldProblem("too_many_secrets")
    row_actions = RowActions(values.get(ADD, ""), values.get(REMOVE, ""))
    applied = apply(document, values, base, row_actions, convert=CONVERT in values)
    return FormResult(applied.reading, {**applied.problems, **problems}, applied.rejected)


def _base(text: str) -> Values | None:
    try:
        known = json.loads(text)
    except ValueError:
        return None
    whole = isinstance(known, dict) and all(isinstance(each, str) for each in known.values())
    return known if whole and known else None


def _store_password(user: User, values: Values, password: str) -> str:
    """The name under which a typed password is now among the person's secrets; the file only names it."""
    named = values.get("registry-secret", "")
    taken = set(PersonalSecret.objects.filter(owner=user).values_list("name", flat=True))
    if not (named in taken and named.startswith(PASSWORD_NAME)):
        names = chain([PASSWORD_NAME], (f"{PASSWORD_NAME}_{number}" for number in count(2)))
        named = next(name for name in names if name not in taken)
    personal_secrets.keep(user, named, password)
    return named

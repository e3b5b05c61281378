"""The form of one text, and what was posted of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.http import QueryDict

from jobs.assets import ownsecrets
from jobs.dialects.document import Document
from jobs.form.changes import Acts, FieldProblem
from jobs.form.fields import MOST_ROLES
from jobs.form.reading import Applied, Reading, apply
from jobs.form.saying import GOES_ON_AS
from jobs.form.values import Values
from jobs.jobtemplates.constraints import rules_of
from jobs.messages import dialect_label
from jobs.models import PersonalSecret
from jobs.submission.findings import problems_of
from jobs.submission.templates import Chosen
from jobs.web.forming.sections import SECTIONS, SectionOfPage
from jobs.web.forming.shown import Drawing, Locks, defaults
from jobs.web.forming.standing import standing
from quotas.models import User

SHOWN: Final = "form-shown"
"""What the form said when it was drawn: what differs from it is a change."""

PASSWORD: Final = "registry-password"  # noqa: S105 a field's name
PASSWORD_NAME: Final = "REGISTRY_PASSWORD"  # noqa: S105 how it is called
ADD, REMOVE, GO_ON = "form-add", "form-remove", "form-go-on"


@dataclass(frozen=True, slots=True)
class Drawn:
    """A section, with what its template draws."""

    page: SectionOfPage
    model: Mapping[str, Any]

    @property
    def count(self) -> int:
        """How many of its folded fields are set."""
        groups = (*self.model.get("groups", ()), *(g for b in self.model.get("blocks", ()) for g in b.groups))
        return sum(group.count for group in groups)


@dataclass(frozen=True, slots=True)
class Form:
    """What `templates/jobs/new/form.html` draws.  `why` says why it is read-only, where it is.

    `problems` counts the fields that have one, `wrong` is one of them.
    """

    sections: tuple[Drawn, ...]
    shown: str
    unshown: tuple[str, ...] = ()
    why: str = ""
    problems: int = 0
    wrong: str = ""
    dialect: str = ""
    goes_on_as: str = ""


def draw(user: User, applied: Applied, place: str = "", chosen: Chosen | None = None) -> Form:
    """The form of what was read, with what could not be taken of what was posted.

    `place` is where the job is to run, as the page's form says it; `chosen` the template that it comes from.
    """
    reading = applied.reading
    names = list(PersonalSecret.objects.filter(owner=user).values_list("name", flat=True))
    drawing = Drawing(
        reading.dialect if reading.parsed else "",
        reading.values if reading.parsed else defaults() if not applied.kept else applied.kept,
        applied.problems,
        applied.kept,
        sorted(names),
        _roles(reading),
        standing(user, reading.parsed, place),
        _locks(chosen),
    )
    elsewhere = reading.parsed is not None and reading.dialect != GOES_ON_AS
    return Form(
        tuple(Drawn(each, each.model(user, drawing)) for each in SECTIONS),
        json.dumps(dict(reading.values), ensure_ascii=False, separators=(",", ":")),
        reading.unshown,
        _why(reading),
        len(applied.problems),
        next(iter(applied.problems), ""),
        reading.dialect and dialect_label(reading.dialect),
        dialect_label(GOES_ON_AS) if elsewhere else "",
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
    """What is wrong with the text first of all."""
    return problems_of(reading.text, reading.refused[:1])[0].message if reading.refused else ""


# --- what was posted -------------------------------------------------------------------------------------


def is_posted(sent: QueryDict) -> bool:
    """Whether a form came with the text."""
    return SHOWN in sent


def posted(user: User, sent: QueryDict, document: Document) -> Applied:
    """The job file with what was changed in the form that came with it."""
    values = {name: value.replace("\r\n", "\n") for name, value in sent.items() if isinstance(value, str)}
    base = _base(values.pop(SHOWN, ""))
    password = values.pop(PASSWORD, "")
    problems: dict[str, FieldProblem] = {}
    if password and not document.problems:
        try:
            values["registry-secret"] = _kept_password(user, values, password)
        except ownsecrets.TooMany:
            problems[PASSWORD] = FieldProblem("too_many_secrets")
    acts = Acts(values.get(ADD, ""), values.get(REMOVE, ""))
    applied = apply(document, values, base, acts, go_on=GO_ON in values)
    return Applied(applied.reading, {**applied.problems, **problems}, applied.kept)


def _base(text: str) -> Values | None:
    try:
        known = json.loads(text)
    except ValueError:
        return None
    whole = isinstance(known, dict) and all(isinstance(each, str) for each in known.values())
    return known if whole and known else None


def _kept_password(user: User, values: Values, password: str) -> str:
    """The name under which a typed password is now among the person's secrets; the file only names it."""
    named = values.get("registry-secret", "")
    taken = set(PersonalSecret.objects.filter(owner=user).values_list("name", flat=True))
    if not (named in taken and named.startswith(PASSWORD_NAME)):
        named = next(name for name in _names() if name not in taken)
    ownsecrets.keep(user, named, password)
    return named


def _names() -> Iterator[str]:
    yield PASSWORD_NAME
    number = 2
    while True:
        yield f"{PASSWORD_NAME}_{number}"
        number += 1

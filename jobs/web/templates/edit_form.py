"""The form of a template: its job file, and the rule of each field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from pydantic import ValidationError

from jobs.dialects.document import Document
from jobs.dialects.spans import escape
from jobs.jobtemplates import JobTemplate, Kind, Parameter
from jobs.jobtemplates.constraints import Constraint, unknown
from jobs.messages.fieldnames import field_name
from jobs.spec import JobSpec, RoleSpec
from jobs.submission.forms import NUMBER, dialect_choices
from jobs.submission.sweeps import parameter_text
from jobs.submission.templates import About, Content
from jobs.web.http import set_choices
from jobs.web.new_job.sweep_form import EXAMPLE, clean_parameters
from quotas.access import managed_by
from quotas.models import User, Workspace

ASKED: Final = "asked"
"""A rule beside the vendor's three: the field is a question of the template."""

ICONS: Final = (
    "bolt",
    "notebook",
    "terminal-2",
    "chart-line",
    "cpu",
    "stack-2",
    "database",
    "server",
    "wand",
    "star",
)
WHO_FILLS: Final = (
    (Constraint.OVERRIDABLE.value, _("Free")),
    (Constraint.LOCKED.value, _("Locked")),
    (Constraint.REQUIRED.value, _("Required")),
    (ASKED, _("Prompt")),
)
MOST_ROWS: Final = 200
LONGEST_JSON: Final = 100_000
RANGE: Final = re.compile(r"\s*(\d{1,9})\s*(?:-|–|…|\.\.)\s*(\d{1,9})\s*\Z")


@dataclass(frozen=True, slots=True)
class TemplateField:
    """A field of the file: `rule` is who fills it in; `label` and `options` are those of its question."""

    pointer: str
    field: str
    value: str
    rule: str = Constraint.OVERRIDABLE.value
    label: str = ""
    options: str = ""
    may_be_asked: bool = True


class EditForm(forms.Form):
    """A template's name, description and icon, its job file, and further rules and questions."""

    name = forms.CharField(label=_("Name"), max_length=80)
    description = forms.CharField(
        label=_("Purpose"), max_length=2000, required=False, widget=forms.Textarea({"rows": 2})
    )
    icon = forms.ChoiceField(label=_("Icon"), choices=[(name, name) for name in ICONS], required=False)
    workspace = forms.ChoiceField(label=_("Owner"), required=False)
    notes = forms.CharField(
        label=_("Version notes"),
        max_length=400,
        required=False,
        help_text=_("Shown in the list of versions."),
    )
    text = forms.CharField(label=_("Job file"), strip=False, widget=forms.Textarea)
    dialect = forms.ChoiceField(label=_("Format"), required=False)
    constraints = forms.CharField(
        label=_("More constraints (JSONPath)"),
        required=False,
        max_length=LONGEST_JSON,
        widget=forms.Textarea({"rows": 3, "spellcheck": "false"}),
        help_text=_(
            'In PAI-DLC format: {"$.JobSpecs[0].Image": "locked"}; also "required" or "overridable".'
        ),
    )
    questions = forms.CharField(
        label=_("More prompts (JSON)"),
        required=False,
        max_length=LONGEST_JSON,
        widget=forms.Textarea({"rows": 3, "spellcheck": "false"}),
        help_text=_("Prompts that fill several fields at once. Syntax: docs/templates.md."),
    )
    sweep = forms.CharField(
        label=_("Sweep parameters"),
        required=False,
        strip=False,
        max_length=parameter_text.LONGEST,
        widget=forms.Textarea({"rows": 3, "spellcheck": "false", "placeholder": EXAMPLE}),
        help_text=_("Users of the template are offered a sweep over these values."),
    )
    as_default = forms.BooleanField(label=_("Set this version as default"), required=False)

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.managed_workspaces = list(managed_by(user).order_by("name")[:200])
        set_choices(
            self.fields["workspace"],
            [("", _("Me")), *((each.slug, each.name) for each in self.managed_workspaces)],
        )
        set_choices(self.fields["dialect"], [("", _("Format: auto-detect")), *dialect_choices()])
        self.fields["dialect"].widget.attrs["aria-label"] = _("Format")
        for name, field in self.fields.items():
            select = isinstance(field, forms.ChoiceField)
            kind = "form-select" if select else "form-check-input" if name == "as_default" else "form-control"
            field.widget.attrs["class"] = kind

    def clean_text(self) -> str:
        """Replace the CR LF that browsers send for every line end."""
        return str(self.cleaned_data["text"]).replace("\r\n", "\n")

    def clean_constraints(self) -> dict[str, str]:
        """An object of paths and words."""
        found = _json(self.cleaned_data["constraints"], {})
        words = {rule.value for rule in Constraint}
        if not isinstance(found, dict) or any(value not in words for value in found.values()):
            raise forms.ValidationError(
                _("Must be an object of paths, each set to locked, required or overridable.")
            )
        return found

    def clean_questions(self) -> list[Any]:
        """A list of parameters."""
        found = _json(self.cleaned_data["questions"], [])
        if not isinstance(found, list):
            raise forms.ValidationError(_("Must be a list of prompts."))
        return found

    def clean_sweep(self) -> str:
        """Parameters that can be read, if there are any."""
        text = str(self.cleaned_data["sweep"]).replace("\r\n", "\n")
        if text.strip():
            clean_parameters(text)
        return text if text.strip() else ""

    def chosen_workspace(self) -> Workspace | None:
        """Return the workspace of the template; None for the person's own."""
        slug = self.cleaned_data.get("workspace")
        return next((each for each in self.managed_workspaces if each.slug == slug), None)

    def about(self) -> About:
        """Return the template's name, description and icon."""
        cleaned = self.cleaned_data
        return About(cleaned["name"], cleaned["description"], cleaned["icon"] or ICONS[0])


def _json(text: str, empty: object) -> Any:
    try:
        return json.loads(text) if text.strip() else empty
    except (ValueError, RecursionError):
        raise forms.ValidationError(_("Invalid JSON.")) from None


# --- the fields of a file --------------------------------------------------------------------------------


def rows_of(
    spec: JobSpec, sent: Mapping[str, str], template: JobTemplate | None = None
) -> list[TemplateField]:
    """Return every field that the file sets, with the form's rule for it or else the template's."""
    roles = [role.name for role in spec.roles]
    rows = []
    for pointer, value in _fields(spec):
        rule, label, options = _current_rule(pointer, template)
        rows.append(
            TemplateField(
                pointer,
                field_name(pointer, roles),
                _shorten(value),
                sent.get(f"rule:{pointer}", rule),
                sent.get(f"label:{pointer}", label)[:80],
                sent.get(f"options:{pointer}", options)[:2000],
                _path(pointer) is not None,
            )
        )
    return rows[:MOST_ROWS]


def _fields(spec: JobSpec) -> Iterator[tuple[str, object]]:
    for name in ("description", "framework", "quota", "priority", "time_limit_s"):
        if (value := getattr(spec, name)) not in (None, ""):
            yield f"/{name}", value
    for index, role in enumerate(spec.roles):
        yield from _of_role(f"/roles/{index}", role)
    for name, value in spec.env.items():
        yield f"/env/{escape(name)}", value
    for name, reference in spec.secret_env.items():
        yield f"/secret_env/{escape(name)}", reference.name
    if spec.mounts:
        yield "/mounts", ", ".join(mount.uri or mount.id for mount in spec.mounts)
    if spec.code is not None:
        for name in ("branch", "commit"):
            yield f"/code/{name}", getattr(spec.code, name)


def _of_role(at: str, role: RoleSpec) -> Iterator[tuple[str, object]]:
    yield f"{at}/replicas", role.replicas
    yield f"{at}/command", role.command
    yield f"{at}/image", role.image
    for name in ("cpu_milli", "memory_mib", "gpus", "gpu_type"):
        yield f"{at}/resources/{name}", getattr(role.resources, name)
    for name, value in role.env.items():
        yield f"{at}/env/{escape(name)}", value


def _current_rule(pointer: str, template: JobTemplate | None) -> tuple[str, str, str]:
    if template is None:
        return Constraint.OVERRIDABLE.value, "", ""
    for each in template.parameters:
        if each.fills == (_path(pointer),):
            span = f"{each.least}–{each.most}" if each.kind is Kind.INTEGER else ""
            return ASKED, each.label, ", ".join(each.choices) or span
    return template.constraints.get(pointer, Constraint.OVERRIDABLE).value, "", ""


def _path(pointer: str) -> str | None:
    """Return the pointer as a parameter writes it; None for a field that can't be a question."""
    path = pointer.strip("/").replace("/", ".")
    try:
        _of_kind(path, "x", 1, "", "")
    except ValidationError:
        return None
    return path


# --- what is kept ----------------------------------------------------------------------------------------


def content_of(form: EditForm, sent: Mapping[str, str], before: JobTemplate | None) -> Content:
    """The version that the form asks for.

    Raises Refused (the file), forms.ValidationError (a question or a constraint).
    """
    cleaned = form.cleaned_data
    document = Document(cleaned["text"], cleaned["dialect"] or None)
    parsed = document.parsed
    rows = rows_of(parsed.spec, sent, before)
    rules = {row.pointer: row.rule for row in rows if row.rule in {Constraint.LOCKED, Constraint.REQUIRED}}
    constraints = {**cleaned["constraints"], **rules}
    if nowhere := unknown({path: Constraint(word) for path, word in constraints.items()}, document):
        raise forms.ValidationError(_t("No field of the file is called %(path)s.") % {"path": nowhere[0]})
    parameters = _parameters(parsed.spec, rows, cleaned["questions"])
    inherited = {"interactive": before.interactive, "opens": before.opens} if before else {}
    metadata = {**inherited, "sweep": cleaned["sweep"]}
    content = Content(document.sealed, parameters, constraints, metadata, cleaned["notes"])
    _check(content, cleaned["name"])
    return content


def _check(content: Content, name: str) -> None:
    values = {"id": "new", "title": name, "dialect": content.document.dialect, "text": content.document.text}
    try:
        JobTemplate.model_validate(
            {**values, "parameters": content.parameters, "constraints": content.constraints}, strict=False
        )
    except ValidationError as error:
        why = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise forms.ValidationError(_t("The questions can't be kept so: %(why)s.") % {"why": why}) from None


def _parameters(spec: JobSpec, rows: Sequence[TemplateField], more: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the questions: the job's name, those of the rows, and further ones."""
    asked_rows = [row for row in rows if row.rule == ASKED and row.may_be_asked]
    values = dict(_fields(spec))
    name = Parameter(name="name", kind=Kind.NAME, fills=("name",), default=_plain(spec.name), required=True)
    found = [name.model_dump(mode="json")]
    taken = {"name", *(each.get("name", "") for each in more if isinstance(each, dict))}
    for row in asked_rows:
        called = _free(_word(row.pointer, spec), taken)
        taken.add(called)
        try:
            made = _of_kind(
                row.pointer.strip("/").replace("/", "."), called, values[row.pointer], row.label, row.options
            )
        except ValidationError as error:
            why = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise forms.ValidationError(
                _t("%(field)s can't be asked for so: %(why)s.") % {"field": row.field, "why": why}
            ) from None
        found.append(made.model_dump(mode="json"))
    return [*found, *more]


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-._") or "job"


def _word(pointer: str, spec: JobSpec) -> str:
    steps = pointer.strip("/").split("/")
    short = {"cpu_milli": "cpus", "memory_mib": "memory", "time_limit_s": "hours"}
    last = short.get(steps[-1], steps[-1])
    if steps[0] == "roles" and len(spec.roles) > 1:
        last = f"{spec.roles[int(steps[1])].name}_{last}"
    return re.sub(r"[^a-z0-9]+", "_", last.lower()).strip("_0123456789")[:50] or "value"


def _free(name: str, taken: set[str]) -> str:
    return next(
        each for number in range(1, 1000) if (each := f"{name}_{number}" if number > 1 else name) not in taken
    )


_TIMES: Final = {"time_limit_s": 3600, "cpu_milli": 1000, "memory_mib": 1024}
_WHOLE: Final = frozenset({"time_limit_s", "priority", "replicas", "cpu_milli", "memory_mib", "gpus"})
_MOST: Final = {"time_limit_s": 24 * 365, "priority": 9, "gpus": 64}


def _of_kind(path: str, name: str, value: object, label: str, options: str) -> Parameter:
    """Return the question for a field; raises ValidationError for a field that can't be one."""
    last = path.rpartition(".")[2]
    about: dict[str, Any] = {"name": name, "fills": (path,), "label": label}
    if last in _WHOLE and not path.startswith(("env.", "secret_env.")) and ".env." not in path:
        return _of_number(about, last, int(str(value)), options)
    if path.startswith("secret_env."):
        return Parameter(**about, kind=Kind.SECRET, required=True)
    text = str(value)
    if choices := tuple(each.strip() for each in options.split(",") if each.strip()):
        default = text if text in choices else choices[0]
        return Parameter(**about, kind=Kind.CHOICE, choices=choices, default=default, required=True)
    if last in {"image", "gpu_type"} and path.startswith("roles."):
        return Parameter(**about, kind=Kind(last), default=text)
    kind = Kind.NUMBER if ".env." in f".{path}" and _is_number(text) else Kind.TEXT
    return Parameter(**about, kind=kind, default=text, required=last == "command")


def _of_number(about: Mapping[str, Any], last: str, value: int, options: str) -> Parameter:
    times = _TIMES.get(last, 1)
    times = times if value % times == 0 else 1
    span = RANGE.match(options)
    least = int(span[1]) if span else 0 if last == "gpus" else 1
    most = int(span[2]) if span else _MOST.get(last, 1_000_000)
    default = min(max(value // times, least), most)
    return Parameter(**about, kind=Kind.INTEGER, default=default, least=least, most=most, times=times)


def _is_number(text: str) -> bool:
    try:
        NUMBER(text)
    except forms.ValidationError:
        return False
    return True


def list_extras(template: JobTemplate, spec: JobSpec) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Return the constraints and questions of a template that belong to no row."""
    pointers = {pointer for pointer, _value in _fields(spec)}
    paths = {(_path(pointer),) for pointer in pointers}
    rules = {path: rule.value for path, rule in template.constraints.items() if path not in pointers}
    more = [each for each in template.parameters if each.fills not in paths and each.fills != ("name",)]
    return rules, [each.model_dump(mode="json", exclude_defaults=True) for each in more]


def _shorten(value: object) -> str:
    text = str(value)
    return text if len(text) <= 200 else f"{text[:199]}…"

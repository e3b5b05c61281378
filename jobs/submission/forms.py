"""What people send: a job file, or the answers to a template's questions, and where it should run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final
from uuid import uuid4

from django import forms
from django.core.validators import RegexValidator
from django.utils.translation import gettext_lazy as _

from jobs import dialects, submission
from jobs.dialects.document import Document
from jobs.dialects.source import decode
from jobs.jobtemplates import JobTemplate, Kind, Parameter
from jobs.messages import dialect_label
from jobs.messages.jobtemplates import question
from quotas.models import Quota, User

MOST_PLACES: Final = 200

Choices = list[tuple[str, Any]]


class SubmitForm(forms.Form):
    """A job file, typed or uploaded.  Anything typed survives every error, so no field refuses text.

    `key` makes a double click one job: each rendering of the form has its own.
    """

    text = forms.CharField(label=_("Job file"), required=False, strip=False, widget=forms.Textarea)
    upload = forms.FileField(label=_("Upload a file"), required=False, allow_empty_file=True)
    dialect = forms.ChoiceField(label=_("Dialect"), required=False)
    place = forms.ChoiceField(label=_("Where it runs"), required=False)
    keep_original = forms.BooleanField(label=_("Keep the original command"), required=False)
    key = forms.CharField(max_length=64, widget=forms.HiddenInput)
    origin = forms.CharField(max_length=16, required=False, widget=forms.HiddenInput)
    template = forms.CharField(max_length=80, required=False, widget=forms.HiddenInput)
    draft = forms.IntegerField(min_value=1, required=False, widget=forms.HiddenInput)

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.quotas = list(submission.quotas_open_to(user)[:MOST_PLACES])
        dialect = self.fields["dialect"]
        assert isinstance(dialect, forms.ChoiceField)
        dialect.choices = [("", _("Dialect: work it out")), *dialect_choices()]
        dialect.widget.attrs |= {"class": "form-select editor-dialect", "aria-label": _("Dialect")}
        place = self.fields["place"]
        assert isinstance(place, forms.ChoiceField)
        place.choices = _place_choices(self.quotas)
        place.widget.attrs["class"] = "form-select"
        self.fields["keep_original"].widget.attrs["class"] = "form-check-input"

    def clean_text(self) -> str:
        """Browsers send every line end of a text field as CR LF; nobody typed those."""
        return str(self.cleaned_data["text"]).replace("\r\n", "\n")

    def chosen_document(self) -> Document:
        """The uploaded file, where there is one, else what was typed.  Raises `dialects.base.Refused`."""
        upload = self.cleaned_data.get("upload")
        text = decode(upload.read()) if upload else str(self.cleaned_data.get("text", ""))
        return Document(text, self.chosen_dialect())

    def chosen_place(self) -> submission.Place:
        """Where the person wants it; everything empty when the choice is left to the file."""
        return submission.place_at(str(self.cleaned_data.get("place", "")))

    def chosen_dialect(self) -> str | None:
        """The dialect that the person says the text is in; None to work it out."""
        return str(self.cleaned_data.get("dialect", "")) or None

    @property
    def has_choice(self) -> bool:
        """Whether there is more than one place to choose from."""
        return len(self.quotas) > 1

    @property
    def only_place(self) -> str:
        """Where everything goes, when there is one place."""
        only = self.quotas[0] if len(self.quotas) == 1 else None
        return f"{only.workspace.name} · {_place_label(only)}" if only else ""


def new_key() -> str:
    """An idempotency key for one rendering of a form."""
    return uuid4().hex


def dialect_choices() -> list[tuple[str, str]]:
    """Every dialect's name, and what people call it."""
    return [(name, dialect_label(name)) for name in dialects.NAMES]


def _place_label(quota: Quota) -> str:
    """A quota under the name of its cluster, and where that is."""
    cluster = quota.cluster
    where = f"{cluster.name} ({cluster.region})" if cluster.region else cluster.name
    return f"{where} · {quota.name}"


def _place_choices(quotas: Sequence[Quota]) -> Choices:
    """Quotas by workspace, after "as the file says"."""
    choices: Choices = [("", _("As the file says, or the first that is open to me"))]
    for workspace, rows in groupby(quotas, key=lambda quota: quota.workspace):
        choices.append((workspace.name, [(submission.address_of(row), _place_label(row)) for row in rows]))
    return choices


# --- a template's questions ------------------------------------------------------------------------------


class TemplateForm(forms.Form):
    """The questions of a job template, with what `first` makes of their defaults; and where it runs."""

    place = forms.ChoiceField(label=_("Where it runs"), required=False)
    key = forms.CharField(max_length=64, widget=forms.HiddenInput)

    def __init__(
        self,
        user: User,
        template: JobTemplate,
        *args: Any,
        offered: Offered | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.template = template
        self.quotas = list(submission.quotas_open_to(user)[:MOST_PLACES])
        place = self.fields["place"]
        assert isinstance(place, forms.ChoiceField)
        place.choices = _place_choices(self.quotas)
        for parameter in template.parameters:
            self.fields[parameter.name] = _question(parameter, offered or Offered())
        for name, field in self.fields.items():
            if name != "key" and not isinstance(field, forms.MultipleChoiceField):
                kind = "form-select" if isinstance(field, forms.ChoiceField) else "form-control"
                field.widget.attrs.setdefault("class", kind)

    def clean(self) -> dict[str, Any]:
        """A type of GPU means nothing where none is asked for; hours that are left empty are none."""
        cleaned = super().clean() or {}
        for parameter in self.template.parameters:
            if parameter.kind is Kind.HOURS and cleaned.get(parameter.name, "") is None:
                cleaned[parameter.name] = ""
        if "gpus" in self.fields and "gpu_type" in self.fields and not cleaned.get("gpus"):
            cleaned["gpu_type"] = ""
        return cleaned

    def chosen_place(self) -> submission.Place:
        """Where the person wants it; everything empty when the choice is left to the console."""
        return submission.place_at(str(self.cleaned_data.get("place", "")))

    @property
    def has_choice(self) -> bool:
        """Whether there is more than one place to choose from."""
        return len(self.quotas) > 1

    @property
    def questions(self) -> list[tuple[forms.BoundField, object]]:
        """The template's own fields, each with its unit."""
        return [(self[parameter.name], _unit(parameter)) for parameter in self.template.parameters]


UNITS: Final[Mapping[object, object]] = {
    "hours": _("hours"),
    ("time_limit_s", 3600): _("hours"),
    ("time_limit_s", 1): _("seconds"),
    ("cpu_milli", 1000): _("cores"),
    ("cpu_milli", 1): _("thousandths of a core"),
    ("memory_mib", 1024): "GiB",
    ("memory_mib", 1): "MiB",
}
HELP: Final = {
    "image": _("Without one, the job has what is installed on the node."),
    "folder": _("One of the folders that the cluster lends to jobs, as in /data/project."),
    "hours": _("Then it is stopped by itself."),
    "train": _("As in train.py --epochs 10; without one, an example runs."),
    "program": _("As in ./simulate input.dat; without one, an example runs."),
    "secret": _("One of your own secrets, by its name; they are saved once in Settings."),
    "idle_hours": _("You are warned before. Leave it empty and it stays until its time is over."),
}
FOLDER: Final = RegexValidator(r"^/[^\0-\x1f\x7f:,]*\Z", _("This is no absolute path of a folder."))
IMAGE: Final = RegexValidator(r"^[A-Za-z0-9][A-Za-z0-9._:/@#-]*\Z", _("This is no name of an image."))
NUMBER: Final = RegexValidator(
    r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\Z", _("This is no number.")
)
LONGEST_TEXT: Final = 20_000
NAME: Final = RegexValidator(r"^[A-Za-z0-9][A-Za-z0-9_.-]*\Z", _("Letters, digits, “-”, “_” and “.” only."))
WORDS: Final = {
    Kind.NAME: (256, NAME),
    Kind.IMAGE: (512, IMAGE),
    Kind.FOLDER: (1024, FOLDER),
    Kind.NUMBER: (64, NUMBER),
}
"""The answers of one line: how long they may be, and what they look like."""


@dataclass(frozen=True, slots=True)
class Offered:
    """What this person may choose from: jobs of their own (id and label), types of GPU, names of secrets."""

    sources: Sequence[tuple[str, str]] = ()
    gpu_types: Sequence[str] = ()
    secrets: Sequence[str] = ()


def _question(parameter: Parameter, offered: Offered) -> forms.Field:
    about: dict[str, Any] = {
        "label": parameter.label or question(parameter.name),
        "required": parameter.required,
        "initial": parameter.default,
        "help_text": parameter.help or HELP.get(parameter.name, HELP.get(parameter.kind, "")),
    }
    match parameter.kind:
        case Kind.INTEGER | Kind.HOURS:
            about["required"] = about["required"] or parameter.kind is Kind.INTEGER
            return forms.IntegerField(**about, min_value=parameter.least, max_value=parameter.most)
        case Kind.CHOICE | Kind.SECRET | Kind.GPU_TYPE:
            return forms.ChoiceField(**about, choices=_choices(parameter, offered))
        case Kind.JOBS:
            boxes = forms.CheckboxSelectMultiple
            return forms.MultipleChoiceField(
                **{**about, "initial": []}, choices=list(offered.sources), widget=boxes
            )
        case Kind.TEXT:
            lines = any(path.endswith((".command", "description")) for path in parameter.fills)
            widget = forms.Textarea({"rows": 4, "class": "form-control mono"}) if lines else forms.TextInput
            return forms.CharField(**about, max_length=LONGEST_TEXT, strip=False, widget=widget)
    longest, validator = WORDS[parameter.kind]
    return forms.CharField(**about, max_length=longest, validators=[validator])


def _choices(parameter: Parameter, offered: Offered) -> Choices:
    values = {Kind.SECRET: offered.secrets, Kind.GPU_TYPE: offered.gpu_types}.get(
        parameter.kind, parameter.choices
    )
    none = _("Any") if parameter.kind is Kind.GPU_TYPE else _("None")
    needed = parameter.kind is Kind.CHOICE and parameter.required
    return [*([] if needed else [("", none)]), *((each, each) for each in values)]


def _unit(parameter: Parameter) -> object:
    """What the parameter's numbers count, where that is not plain from its name."""
    field = parameter.fills[0].rpartition(".")[2]
    return UNITS.get((field, parameter.times)) or (UNITS["hours"] if parameter.kind is Kind.HOURS else "")

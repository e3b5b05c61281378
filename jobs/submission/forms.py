"""Forms for a job file and for a template's questions, and the job file that answers make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final
from urllib.parse import quote
from uuid import uuid4

from django import forms
from django.core.validators import RegexValidator
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from jobs import dialects
from jobs.dialects.document import Document
from jobs.dialects.source import decode
from jobs.jobtemplates import Answers, JobTemplate, Kind, Parameter, fill
from jobs.messages import dialect_label
from jobs.messages.jobtemplates import question
from jobs.models import Job, PersonalSecret, Replica
from jobs.submission import targets
from quotas.models import Node, Quota, User

MOST_PLACES: Final = 200

Choices = list[tuple[str, Any]]


class TargetForm(forms.Form):
    """A form for new jobs: where they run, and an idempotency key.

    `key` makes a double click one job: each rendering of the form has its own.
    """

    place = forms.ChoiceField(label=_("Run on"), required=False)
    key = forms.CharField(max_length=64, widget=forms.HiddenInput)

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.quotas = list(targets.quotas_open_to(user)[:MOST_PLACES])
        place = self.fields["place"]
        assert isinstance(place, forms.ChoiceField)
        place.choices = _place_choices(self.quotas)
        place.widget.attrs["class"] = "form-select"

    def chosen_place(self) -> targets.JobTarget:
        """Return the chosen target; everything empty when the choice is left to the console."""
        return targets.parse_target(str(self.cleaned_data.get("place", "")))

    @property
    def has_choice(self) -> bool:
        """Whether there is more than one target to choose from."""
        return len(self.quotas) > 1


class SubmitForm(TargetForm):
    """A job file, typed or uploaded.  Anything typed survives every error, so no field refuses text."""

    text = forms.CharField(label=_("Job file"), required=False, strip=False, widget=forms.Textarea)
    upload = forms.FileField(label=_("Upload a file"), required=False, allow_empty_file=True)
    dialect = forms.ChoiceField(label=_("Format"), required=False)
    keep_original = forms.BooleanField(label=_("Keep the original command"), required=False)
    origin = forms.CharField(max_length=16, required=False, widget=forms.HiddenInput)
    template = forms.CharField(max_length=80, required=False, widget=forms.HiddenInput)
    draft = forms.IntegerField(min_value=1, required=False, widget=forms.HiddenInput)

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        dialect = self.fields["dialect"]
        assert isinstance(dialect, forms.ChoiceField)
        dialect.choices = [("", _("Format: auto-detect")), *dialect_choices()]
        dialect.widget.attrs |= {"class": "form-select editor-dialect", "aria-label": _("Format")}
        self.fields["keep_original"].widget.attrs["class"] = "form-check-input"

    def clean_text(self) -> str:
        """Replace CR LF, which browsers send for every line end, by LF."""
        return str(self.cleaned_data["text"]).replace("\r\n", "\n")

    def chosen_document(self) -> Document:
        """Return the uploaded file, if there is one, else the typed text.  Raises `dialects.base.Refused`."""
        upload = self.cleaned_data.get("upload")
        text = decode(upload.read()) if upload else str(self.cleaned_data.get("text", ""))
        return Document(text, self.chosen_dialect())

    def chosen_dialect(self) -> str | None:
        """Return the chosen dialect of the text; None to detect it."""
        return str(self.cleaned_data.get("dialect", "")) or None

    @property
    def only_place(self) -> str:
        """Return the label of the only target, "" when there are several."""
        only = self.quotas[0] if len(self.quotas) == 1 else None
        return f"{only.workspace.title} · {_place_label(only)}" if only else ""


def new_key() -> str:
    """Return an idempotency key for one rendering of a form."""
    return uuid4().hex


def dialect_choices() -> list[tuple[str, str]]:
    """Return every dialect's name and label."""
    return [(name, dialect_label(name)) for name in dialects.NAMES]


def _place_label(quota: Quota) -> str:
    """Return a quota's label: its cluster, the region, and its name."""
    cluster = quota.cluster
    where = f"{cluster.title} ({cluster.region})" if cluster.region else cluster.title
    return f"{where} · {quota.title}"


def _place_choices(quotas: Sequence[Quota]) -> Choices:
    """Return the choices: "as the file says", then quotas by workspace."""
    choices: Choices = [("", _("From the file, or the first one available to me"))]
    for workspace, rows in groupby(quotas, key=lambda quota: quota.workspace):
        choices.append((workspace.title, [(targets.target_address(row), _place_label(row)) for row in rows]))
    return choices


# --- a template's questions ------------------------------------------------------------------------------


class TemplateForm(TargetForm):
    """The questions of a job template, and where the job runs."""

    def __init__(
        self,
        user: User,
        template: JobTemplate,
        *args: Any,
        offered: FormChoices | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(user, *args, **kwargs)
        self.template = template
        for parameter in template.parameters:
            self.fields[parameter.name] = _question(parameter, offered or FormChoices())
        for name, field in self.fields.items():
            if name != "key" and not isinstance(field, forms.MultipleChoiceField):
                kind = "form-select" if isinstance(field, forms.ChoiceField) else "form-control"
                field.widget.attrs.setdefault("class", kind)

    def clean(self) -> dict[str, Any]:
        """Drop the type of GPU where no GPU is requested, and read empty hours as none."""
        cleaned = super().clean() or {}
        for parameter in self.template.parameters:
            if parameter.kind is Kind.HOURS and cleaned.get(parameter.name, "") is None:
                cleaned[parameter.name] = ""
        if "gpus" in self.fields and "gpu_type" in self.fields and not cleaned.get("gpus"):
            cleaned["gpu_type"] = ""
        return cleaned

    @property
    def questions(self) -> list[tuple[forms.BoundField, object]]:
        """Return the template's own fields, each with its unit."""
        return [(self[parameter.name], _unit(parameter)) for parameter in self.template.parameters]


UNITS: Final[Mapping[object, object]] = {
    "hours": _("hours"),
    ("time_limit_s", 3600): _("hours"),
    ("time_limit_s", 1): _("seconds"),
    ("cpu_milli", 1000): _("cores"),
    ("cpu_milli", 1): _("millicores"),
    ("memory_mib", 1024): "GiB",
    ("memory_mib", 1): "MiB",
}
HELP: Final = {
    "image": _("Empty: runs directly on the node with the software installed there."),
    "folder": _("A folder that the cluster shares with jobs, e.g. /data/project."),
    "hours": _("Stops automatically."),
    "train": _("E.g. train.py --epochs 10. Empty: runs an example."),
    "program": _("E.g. ./simulate input.dat. Empty: runs an example."),
    "secret": _("Name of one of your secrets. Save secrets once in Settings."),
    "idle_hours": _("You get a warning first. Empty: stays until the time limit."),
}
FOLDER: Final = RegexValidator(r"^/[^\0-\x1f\x7f:,]*\Z", _("Must be an absolute folder path."))
IMAGE: Final = RegexValidator(r"^[A-Za-z0-9][A-Za-z0-9._:/@#-]*\Z", _("Not a valid image name."))
NUMBER: Final = RegexValidator(r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\Z", _("Not a number."))
LONGEST_TEXT: Final = 20_000
NAME: Final = RegexValidator(r"^[A-Za-z0-9][A-Za-z0-9_.-]*\Z", _("Letters, digits, “-”, “_” and “.” only."))
WORDS: Final = {
    Kind.NAME: (256, NAME),
    Kind.IMAGE: (512, IMAGE),
    Kind.FOLDER: (1024, FOLDER),
    Kind.NUMBER: (64, NUMBER),
}
"""Longest length and validator of the answers of one line."""


@dataclass(frozen=True, slots=True)
class FormChoices:
    """The person's choices: own jobs (id and label), types of GPU, names of secrets."""

    sources: Sequence[tuple[str, str]] = ()
    gpu_types: Sequence[str] = ()
    secrets: Sequence[str] = ()


def _question(parameter: Parameter, offered: FormChoices) -> forms.Field:
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


def _choices(parameter: Parameter, offered: FormChoices) -> Choices:
    values = {Kind.SECRET: offered.secrets, Kind.GPU_TYPE: offered.gpu_types}.get(
        parameter.kind, parameter.choices
    )
    none = _("Any") if parameter.kind is Kind.GPU_TYPE else _("None")
    needed = parameter.kind is Kind.CHOICE and parameter.required
    return [*([] if needed else [("", none)]), *((each, each) for each in values)]


def _unit(parameter: Parameter) -> object:
    """Return the unit of the parameter's numbers, "" where its name says it."""
    field = parameter.fills[0].rpartition(".")[2]
    return UNITS.get((field, parameter.times)) or (UNITS["hours"] if parameter.kind is Kind.HOURS else "")


MOST_SOURCES: Final = 40
MOST_REPLICAS: Final = 16
"""Of one job, whose folders are shown."""

OUTPUTS: Final = "/job/outputs"
"""Mount point of other jobs' folders."""


@dataclass(frozen=True, slots=True)
class LinkAnswers:
    """Answers of a link: usable ones, names that no question has, and names of wrong answers."""

    answers: Mapping[str, Any]
    unknown: Sequence[str] = ()
    wrong: Sequence[str] = ()


def form_for(user: User, template: JobTemplate, *args: Any) -> TemplateForm:
    """Return the form of a template's questions, with the person's choices."""
    kinds = {parameter.kind for parameter in template.parameters}
    offered = FormChoices(
        sources=_sources(user) if Kind.JOBS in kinds else (),
        gpu_types=_gpu_types(user) if Kind.GPU_TYPE in kinds else (),
        secrets=_secrets(user) if Kind.SECRET in kinds else (),
    )
    return TemplateForm(user, template, *args, offered=offered)


def first_answers(template: JobTemplate, quotas: Iterable[Quota]) -> dict[str, Any]:
    """Return the defaults, limited to the largest node of the cluster of the first of `quotas`.

    Without a known node there is no GPU.
    """
    clusters = [quota.cluster_id for quota in quotas][:1]
    nodes = list(Node.objects.filter(cluster__in=clusters))
    most = {
        "gpus": max((sum(node.gpus.values()) for node in nodes), default=0),
        "cpus": max((node.cpu_milli // 1000 for node in nodes), default=0),
        "memory": max((node.memory_mib // 1024 for node in nodes), default=0),
    }
    found: dict[str, Any] = {}
    for parameter in template.parameters:
        value = parameter.default
        if isinstance(value, int) and parameter.name in most and (nodes or parameter.name == "gpus"):
            value = max(parameter.least, min(value, most[parameter.name]))
        found[parameter.name] = value
    return found


def answers_of_link(
    user: User, template: JobTemplate, asked: QueryDict, besides: Iterable[str]
) -> LinkAnswers:
    """Return the first answers, replaced by a link's valid ones.

    `besides` are names in the link's query that are no answers.
    """
    form = form_for(user, template)
    first = first_answers(template, form.quotas)
    several = {each.name for each in template.parameters if each.kind is Kind.JOBS}
    known = {each.name for each in template.parameters}
    said = {name: asked.getlist(name) if name in several else asked[name] for name in asked if name in known}
    tried = fill_form(user, template, said)
    tried.is_valid()
    wrong = [name for name in said if name in tried.errors]
    good = {name: tried.cleaned_data[name] for name in said if name not in wrong}
    unknown = sorted(set(asked) - known - {"job", *besides})
    return LinkAnswers({**first, **good}, unknown, wrong)


def fill_form(user: User, template: JobTemplate, said: Mapping[str, Any]) -> TemplateForm:
    """Return the form with these answers and the first ones for the rest; the caller validates it."""
    first = first_answers(template, targets.quotas_open_to(user))
    data = QueryDict(mutable=True)
    for name, value in {**first, **said, "key": "api"}.items():
        data.setlist(name, [*value] if isinstance(value, list | tuple) else [value])
    return form_for(user, template, data)


def fill_template(
    user: User, template: JobTemplate, answers: Mapping[str, Any], *, install: bool = False
) -> Document:
    """Return the job file that the answers make; with `install` it installs what the template needs."""
    known: dict[str, Any] = {
        name: value for name, value in answers.items() if name not in {"key", "place", "jobs"}
    }
    if any(parameter.kind is Kind.JOBS for parameter in template.parameters):
        known["jobs"] = _folders(user, answers.get("jobs") or [])
    complete: Answers = known
    return fill(template, complete, install=install)


def own_jobs(user: User, asked: Iterable[str]) -> list[str]:
    """Return those of these jobs whose folders the person may mount."""
    known = {public_id for public_id, _label in _sources(user)}
    return [each for each in asked if each in known]


def _gpu_types(user: User) -> list[str]:
    clusters = {quota.cluster_id for quota in targets.quotas_open_to(user)}
    nodes = Node.objects.filter(cluster__in=clusters).values_list("gpus", flat=True)
    return sorted({kind for gpus in nodes for kind in gpus if kind})


def _secrets(user: User) -> list[str]:
    return list(PersonalSecret.objects.filter(owner=user).order_by("name").values_list("name", flat=True))


def _sources(user: User) -> list[tuple[str, str]]:
    """Return the person's own jobs that have started, the latest first: only their folders may be shown."""
    rows = Job.objects.visible_to(user).filter(owner=user, started_at__isnull=False).order_by("-pk")
    return [(job.public_id, f"{job.name} ({job.public_id})") for job in rows[:MOST_SOURCES]]


def _folders(user: User, public_ids: Sequence[str]) -> list[dict[str, str]]:
    """Return the output folders of these jobs' replicas, and their mount points."""
    found = []
    for job in Job.objects.visible_to(user).filter(owner=user, public_id__in=public_ids).order_by("-pk"):
        replicas = Replica.objects.filter(
            attempt__job=job, attempt__number=job.attempt_number, run=job.run_number
        )
        found += [_folder(job, replica) for replica in replicas.order_by("ordinal")[:MOST_REPLICAS]]
    return found


def _folder(job: Job, replica: Replica) -> dict[str, str]:
    return {
        "uri": f"job://{job.public_id}/{quote(replica.role, safe='')}/{replica.index}",
        "path": f"{OUTPUTS}/{_plain(job.name)}-{job.public_id}/{_plain(replica.role)}-{replica.index}",
    }


def _plain(name: str) -> str:
    """Return a name as one part of a path that every backend understands."""
    return "".join(each if each.isascii() and (each.isalnum() or each in "._-") else "_" for each in name)[
        :80
    ]

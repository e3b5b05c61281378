"""A template's questions and what becomes of the answers, whether they come from a form or from a link."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from django.http import QueryDict

from jobs import submission
from jobs.dialects.document import Document
from jobs.jobtemplates import Answers, JobTemplate, Kind, fill
from jobs.models import Job, PersonalSecret, Task
from jobs.submission.forms import Offered, TemplateForm
from quotas.models import Node, Quota, User

MOST_SOURCES: Final = 40
MOST_REPLICAS: Final = 16
"""Of one job, whose folders are shown."""

OUTPUTS: Final = "/job/outputs"
"""Where the folders of other jobs are, in a job that shows them."""


@dataclass(frozen=True, slots=True)
class Linked:
    """What a link says: answers that can be used, names that no question has, and answers that can't be."""

    answers: Mapping[str, Any]
    unknown: Sequence[str] = ()
    wrong: Sequence[str] = ()


def form_for(user: User, template: JobTemplate, *args: Any) -> TemplateForm:
    """The questions, with what this person may choose from."""
    kinds = {parameter.kind for parameter in template.parameters}
    offered = Offered(
        sources=_sources(user) if Kind.JOBS in kinds else (),
        gpu_types=_gpu_types(user) if Kind.GPU_TYPE in kinds else (),
        secrets=_secrets(user) if Kind.SECRET in kinds else (),
    )
    return TemplateForm(user, template, *args, offered=offered)


def first_answers(template: JobTemplate, quotas: Iterable[Quota]) -> dict[str, Any]:
    """The defaults, and no more of anything than the largest node has of the cluster to which a job goes
    that names none; no GPU where no node is known.
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


def linked(user: User, template: JobTemplate, asked: QueryDict, besides: Iterable[str]) -> Linked:
    """The first answers, with those of a link in their place; nothing that a link says is taken unseen.

    `besides` are what the address says that is no answer.
    """
    form = form_for(user, template)
    first = first_answers(template, form.quotas)
    several = {each.name for each in template.parameters if each.kind is Kind.JOBS}
    known = {each.name for each in template.parameters}
    said = {name: asked.getlist(name) if name in several else asked[name] for name in asked if name in known}
    tried = answered(user, template, said)
    tried.is_valid()
    wrong = [name for name in said if name in tried.errors]
    good = {name: tried.cleaned_data[name] for name in said if name not in wrong}
    unknown = sorted(set(asked) - known - {"job", *besides})
    return Linked({**first, **good}, unknown, wrong)


def answered(user: User, template: JobTemplate, said: Mapping[str, Any]) -> TemplateForm:
    """The questions with these answers, and the first ones for the rest; they are for the caller to judge."""
    first = first_answers(template, submission.quotas_open_to(user))
    data = QueryDict(mutable=True)
    for name, value in {**first, **said, "key": "api"}.items():
        data.setlist(name, [*value] if isinstance(value, list | tuple) else [value])
    return form_for(user, template, data)


def filled(
    user: User, template: JobTemplate, answers: Mapping[str, Any], *, install: bool = False
) -> Document:
    """The job file that the answers make; with `install` it brings what the template needs."""
    known: dict[str, Any] = {
        name: value for name, value in answers.items() if name not in {"key", "place", "jobs"}
    }
    if any(parameter.kind is Kind.JOBS for parameter in template.parameters):
        known["jobs"] = _folders(user, answers.get("jobs") or [])
    complete: Answers = known
    return fill(template, complete, install=install)


def own_jobs(user: User, asked: Iterable[str]) -> list[str]:
    """The ones of these jobs whose folders the person may show."""
    known = {public_id for public_id, _label in _sources(user)}
    return [each for each in asked if each in known]


def _gpu_types(user: User) -> list[str]:
    clusters = {quota.cluster_id for quota in submission.quotas_open_to(user)}
    nodes = Node.objects.filter(cluster__in=clusters).values_list("gpus", flat=True)
    return sorted({kind for gpus in nodes for kind in gpus if kind})


def _secrets(user: User) -> list[str]:
    return list(PersonalSecret.objects.filter(owner=user).order_by("name").values_list("name", flat=True))


def _sources(user: User) -> list[tuple[str, str]]:
    """The person's own jobs that have run, the latest first: only their folders may be shown."""
    rows = Job.objects.visible_to(user).filter(owner=user, started_at__isnull=False).order_by("-pk")
    return [(job.public_id, f"{job.name} ({job.public_id})") for job in rows[:MOST_SOURCES]]


def _folders(user: User, public_ids: Sequence[str]) -> list[dict[str, str]]:
    """Where the replicas of these jobs keep what they wrote, and where that is to be seen."""
    found = []
    for job in Job.objects.visible_to(user).filter(owner=user, public_id__in=public_ids).order_by("-pk"):
        tasks = Task.objects.filter(attempt__job=job, attempt__number=job.attempt_number, run=job.run_number)
        found += [_folder(job, task) for task in tasks.order_by("ordinal")[:MOST_REPLICAS]]
    return found


def _folder(job: Job, task: Task) -> dict[str, str]:
    return {
        "uri": f"job://{job.public_id}/{quote(task.role, safe='')}/{task.index}",
        "path": f"{OUTPUTS}/{_plain(job.name)}-{job.public_id}/{_plain(task.role)}-{task.index}",
    }


def _plain(name: str) -> str:
    """A name as one part of a path that every engine understands."""
    return "".join(each if each.isascii() and (each.isalnum() or each in "._-") else "_" for each in name)[
        :80
    ]

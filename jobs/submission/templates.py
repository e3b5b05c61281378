"""My templates: access to them, their versions, and jobs that come from them.

A version never changes, and a job that starts from one keeps its locked fields.  Links and forms send a
`ref`, ID@VERSION, which is checked here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from django.db import transaction
from django.db.models import F, Q
from django.http import Http404
from django.utils import timezone

from jobs.dialects.base import MAX_BYTES, Params, Problem
from jobs.dialects.document import Document
from jobs.jobtemplates import SHIPPED, JobTemplate
from jobs.jobtemplates.constraints import BrokenConstraint, Constraint, find_broken
from jobs.messages.jobtemplates import template_words
from jobs.models import Job, Template, TemplateUse, TemplateVersion
from jobs.submission.access import Forbidden
from quotas.access import Verb, can
from quotas.models import User, Workspace

REF: Final = re.compile(r"(?P<id>[a-z][a-z0-9-]{0,62})(?:@(?P<number>[1-9]\d{0,5}))?")
MOST: Final = 500
"""Of one person, or of one workspace."""

MOST_VERSIONS: Final = 500
MOST_OFFERED: Final = 300


class TooMany(Exception):
    """There are `MOST` of them already, or `MOST_VERSIONS`."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A version of a template; `row` is None for a shipped one."""

    template: JobTemplate
    row: TemplateVersion | None = None

    @property
    def ref(self) -> str:
        """Return the reference that forms and drafts use, ID@VERSION."""
        return self.template.ref

    @property
    def name(self) -> str:
        """Return its name; a built-in template's is translated."""
        return self.template.title if self.row else template_words(self.template.title)


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a new version."""

    document: Document
    parameters: Sequence[Mapping[str, Any]] = ()
    constraints: Mapping[str, str] | None = None
    metadata: Mapping[str, Any] | None = None
    notes: str = ""


@dataclass(frozen=True, slots=True)
class About:
    """Name, description and icon of a template, as lists show them."""

    name: str
    description: str = ""
    icon: str = "bolt"


# --- finding ---------------------------------------------------------------------------------------------


def find(user: User, ref: str) -> Chosen | None:
    """Return the version that `ref` names, or the default one; None where the person may see none."""
    match = REF.fullmatch(ref)
    if match is None:
        return None
    number = int(match["number"]) if match["number"] else None
    if (shipped := SHIPPED.get(match["id"])) is not None:
        return Chosen(shipped) if number in (None, shipped.version) else None
    template = Template.objects.visible_to(user).filter(public_id=match["id"]).first()
    if template is None:
        return None
    rows = template.versions.select_related("template")
    row = rows.filter(number=template.default_number if number is None else number).first()
    return chosen(row) if row else None


def find_template(user: User, public_id: str, version: str = "") -> Chosen:
    """Return that version of the template, or the default one.  Raises Http404."""
    found = find(user, f"{public_id}@{version}" if version else public_id)
    if found is None:
        raise Http404
    return found


def list_offered(user: User, words: str = "") -> list[Chosen]:
    """Return the default versions of what the person may start from, named or described by `words`."""
    rows = TemplateVersion.objects.filter(
        number=F("template__default_number"), template__in=Template.objects.offered_to(user)
    )
    if words:
        rows = rows.filter(Q(template__name__icontains=words) | Q(template__description__icontains=words))
    rows = rows.select_related("template__workspace", "template__owner").order_by("template__name", "pk")
    return [chosen(row) for row in rows[:MOST_OFFERED]]


def chosen(row: TemplateVersion) -> Chosen:
    """Return a stored version as a template that can be filled."""
    template = row.template
    values = {
        "id": template.public_id,
        "title": template.name,
        "about": template.description,
        "icon": template.icon,
        "version": row.number,
        "dialect": row.dialect,
        "text": row.content,
        "parameters": row.parameters,
        "constraints": row.constraints,
        "opens": row.metadata.get("opens", ""),
        "interactive": bool(row.metadata.get("interactive", False)),
        "sweep": row.metadata.get("sweep", ""),
    }
    return Chosen(JobTemplate.model_validate(values, strict=False), row)


def of_job(user: User, job: Job | None) -> Chosen | None:
    """Return the version that the job came from, where the person may start from it too."""
    use = _use_of(job) if job else None
    if use is None:
        return None
    public_id, number = use.shipped, use.number
    if use.version is not None:
        public_id, number = use.version.template.public_id, use.version.number
    return find(user, f"{public_id}@{number}")


def source_of(job: Job) -> Chosen | None:
    """Return the version that the job came from, whoever may see it."""
    use = _use_of(job)
    if use is None:
        return None
    if use.version is not None:
        return chosen(use.version)
    shipped = SHIPPED.get(use.shipped)
    return Chosen(shipped) if shipped else None


def _use_of(job: Job) -> TemplateUse | None:
    return TemplateUse.objects.filter(job=job).select_related("version__template").first()


def keeps(user: User, template: Template) -> bool:
    """Tell whether the person may change it: their own, or one of a workspace that they administer."""
    if template.workspace is None:
        return template.owner_id == user.pk
    return can(user, Verb.MANAGE, template.workspace)


# --- keeping ---------------------------------------------------------------------------------------------


@transaction.atomic
def create(user: User, about: About, content: Content, workspace: Workspace | None = None) -> Template:
    """Store a new template of the person's, or of a workspace that they administer, with its first version.

    Raises Forbidden, TooMany, ValueError, `dialects.base.Refused`.
    """
    template = Template(owner=user, workspace=workspace, **asdict(about))
    _require(user, template)
    beside = Template.objects.filter(workspace=workspace, **({} if workspace else {"owner": user}))
    if beside.count() >= MOST:
        raise TooMany
    template.save()
    _add(user, template, content)
    return template


@transaction.atomic
def change(
    user: User, template: Template, about: About, content: Content | None, *, as_default: bool = True
) -> Template:
    """Change name, description and icon, and with `content` add a version.

    Raises Forbidden, TooMany, ValueError, `dialects.base.Refused`.
    """
    now = Template.objects.select_for_update(of=("self",)).get(pk=template.pk)
    _require(user, now)
    for name, value in asdict(about).items():
        setattr(now, name, value)
    now.save()
    if content is not None:
        _add(user, now, content, as_default=as_default)
    return now


def _add(user: User, template: Template, content: Content, *, as_default: bool = True) -> None:
    """Store the next version.  It is read first: a version that could not be started is not stored."""
    if template.latest_number >= MOST_VERSIONS:
        raise TooMany
    if len(content.document.text.encode()) > MAX_BYTES:
        raise ValueError("the job file is too large")
    row = TemplateVersion(
        template=template,
        number=template.latest_number + 1,
        dialect=content.document.dialect,
        content=content.document.parsed.text,
        parameters=list(content.parameters),
        constraints=dict(content.constraints or {}),
        metadata=dict(content.metadata or {}),
        notes=content.notes,
        made_by=user,
    )
    chosen(row)
    row.save()
    template.latest_number = row.number
    if as_default:
        template.default_number = row.number
    template.save()


def make_default(user: User, template: Template, number: int) -> bool:
    """Make that version the default; return whether there is one of that number.  Raises Forbidden."""
    _require(user, template)
    if not template.versions.filter(number=number).exists():
        return False
    template.default_number = number
    template.save(update_fields=["default_number", "updated_at"])
    return True


def retire(user: User, template: Template, *, back: bool = False) -> None:
    """Retire the template: nothing can be started from it; with `back`, undo that.  Raises Forbidden."""
    _require(user, template)
    template.retired_at = None if back else timezone.now()
    template.save(update_fields=["retired_at", "updated_at"])


def propose(user: User, template: Template, workspace: Workspace | None) -> None:
    """Offer one's own to a workspace's admins, or withdraw the offer (None).  Raises Forbidden."""
    _require(user, template)
    if template.workspace is not None or (workspace and not can(user, Verb.READ, workspace)):
        raise Forbidden
    template.proposed_to = workspace
    template.save(update_fields=["proposed_to", "updated_at"])


@transaction.atomic
def adopt(user: User, template: Template) -> Template:
    """Copy the proposed template's default version to the workspace.  Raises Forbidden, TooMany."""
    workspace = _proposed_to(user, template)
    row = template.versions.get(number=template.default_number)
    document = Document(row.content, row.dialect)
    content = Content(document, row.parameters, row.constraints, row.metadata, row.notes)
    made = create(user, About(template.name, template.description, template.icon), content, workspace)
    decline(user, template)
    return made


def decline(user: User, template: Template) -> None:
    """Refuse the offer of a template.  Raises Forbidden."""
    _proposed_to(user, template)
    template.proposed_to = None
    template.save(update_fields=["proposed_to", "updated_at"])


def _proposed_to(user: User, template: Template) -> Workspace:
    if template.proposed_to is None or not can(user, Verb.MANAGE, template.proposed_to):
        raise Forbidden
    return template.proposed_to


def _require(user: User, template: Template) -> None:
    if not keeps(user, template):
        raise Forbidden


# --- jobs that come from one -----------------------------------------------------------------------------


def problems(chosen: Chosen, document: Document) -> tuple[Problem, ...]:
    """Return where the job file is not as its template wants it, each with its position."""
    template = chosen.template
    if not template.constraints:
        return ()
    theirs = template.document.parsed
    wrong = find_broken(template.constraints, template.dialect, theirs, document.parsed, document.dialect)
    return tuple(_problem(each, chosen, document) for each in wrong)


def _problem(each: BrokenConstraint, chosen: Chosen, document: Document) -> Problem:
    code = "locked_by_template" if each.constraint is Constraint.LOCKED else "required_by_template"
    locate = document.locate if each.extra else document.places.of_field
    line, column = locate(each.pointer) or (None, None)
    params: Params = {"template": chosen.name, "version": chosen.template.version, "field": each.pointer}
    return Problem(code, pointer=each.pointer, line=line, column=column, params=params)


def note_use(job: Job, chosen: Chosen) -> None:
    """Record the version that a job came from."""
    shipped = "" if chosen.row else chosen.template.id
    TemplateUse.objects.create(job=job, version=chosen.row, shipped=shipped, number=chosen.template.version)

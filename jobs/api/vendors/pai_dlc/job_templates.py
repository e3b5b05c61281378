"""Job templates of PAI-DLC, over the console's own: created, listed, read, changed, retired."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from django.db.models import Q, QuerySet
from django.http import Http404
from pydantic import ValidationError

from jobs.api.vendors.alibaba import page_slice
from jobs.api.vendors.api import VendorError
from jobs.api.vendors.operations import (
    Call,
    InvalidParameters,
    JsonObject,
    Kind,
    Location,
    MissingScopeError,
    Operation,
    Parameter,
    Support,
    WrongValue,
    render_time,
)
from jobs.api.vendors.pai_dlc.pages import ORDER, PAGE_NUMBER, PAGE_SIZE
from jobs.dialects.document import Document
from jobs.jobtemplates.constraints import Constraint
from jobs.models import Template, TemplateVersion
from jobs.submission import templates
from jobs.submission.templates import About, Content
from quotas.access import Verb, can, workspaces_of
from quotas.models import User, Workspace

SINCE: Final = "1.11.6"
DIALECT: Final = "dlc"
LONGEST_NAME: Final = 80
LONGEST_DESCRIPTION: Final = 2000
ALL_VERSIONS: Final = "all"

_COLUMNS: Final[Mapping[str, str]] = {
    "GmtCreateTime": "created_at",
    "GmtModifyTime": "updated_at",
    "TemplateName": "name",
}
_FILTERS: Final[Mapping[str, str]] = {
    "TemplateId": "public_id",
    "TemplateName": "name__icontains",
    "Description": "description__icontains",
    "UserId": "owner__username",
}


# --- operations ------------------------------------------------------------------------------------------


def create_template(call: Call) -> JsonObject:
    """Create a template: the workspace's where the caller manages it, else one of the caller's own."""
    values = call.values
    workspace = _find_workspace(call.person, values["WorkspaceId"])
    is_shared = can(call.person, Verb.MANAGE, workspace) and call.allows("admin")
    about = _about(values["TemplateName"], values["Description"] or "")
    content = _content(values["Content"], values["Constraints"] or {}, values["Metadata"] or {})
    with _vendor_errors():
        template = templates.create(call.person, about, content, workspace if is_shared else None)
    version = template.versions.get(number=template.default_number)
    return {**_render(template), "Version": version.number, "Metadata": version.metadata}


def list_templates(call: Call) -> JsonObject:
    """Answer the templates of a workspace, and the caller's own."""
    workspace = _find_workspace(call.person, call.values["WorkspaceId"])
    rows = _filter(_list_offered(call.person, workspace), call.values)
    sign = "-" if call.values["Order"] == "desc" else ""
    column = _COLUMNS[call.values["SortBy"]]
    page = list(rows.order_by(f"{sign}{column}", f"{sign}pk")[page_slice(call)])
    return {
        "JobTemplates": [_render(each) for each in page],
        "TotalCount": rows.count(),
        "PageNumber": call.values["PageNumber"],
        "PageSize": call.values["PageSize"],
    }


def get_template(call: Call) -> JsonObject:
    """Answer a template with its default version, one version or all of them."""
    template = _find(call)
    rows = template.versions.select_related("made_by").order_by("-number")
    wanted: str = call.values["Version"]
    if wanted != ALL_VERSIONS:
        rows = rows.filter(number=_number(wanted) if wanted else template.default_number)
    versions = list(rows)
    if not versions:
        raise Http404
    return {
        **_render(template),
        "Metadata": versions[0].metadata,
        "Versions": [_render_version(each) for each in versions],
        "TotalCount": len(versions),
    }


def update_template(call: Call) -> JsonObject:
    """Change a template; a content or metadata of its own makes a new version."""
    template, values = _find_own(call), call.values
    if values["Constraints"] is not None and values["Content"] is None:
        raise InvalidParameters([WrongValue("Content", "string", missing=True)])
    name, description = values["TemplateName"], values["Description"]
    about = _about(
        template.name if name is None else name,
        template.description if description is None else description,
        template.icon,
    )
    content = _new_content(template, values)
    with _vendor_errors():
        after = templates.change(
            call.person, template, about, content, as_default=bool(values["SetAsDefault"])
        )
    return {
        "DefaultVersion": after.default_number,
        "GmtModifyTime": render_time(after.updated_at),
        "Version": after.latest_number if content else after.default_number,
        "VersionCreated": content is not None,
    }


def set_default_version(call: Call) -> JsonObject:
    """Make one of a template's versions the default."""
    template = _find_own(call)
    if not templates.make_default(call.person, template, call.values["Version"]):
        raise Http404
    return {"DefaultVersion": template.default_number, "GmtModifyTime": render_time(template.updated_at)}


def delete_template(call: Call) -> JsonObject:
    """Retire a template: it stays for the jobs that came from it."""
    template = _find_own(call)
    templates.retire(call.person, template)
    return {"TemplateId": template.public_id}


# --- rows ------------------------------------------------------------------------------------------------


def _find_workspace(user: User, slug: str) -> Workspace:
    """Return a workspace of the person's.  Raises Http404."""
    found = workspaces_of(user).filter(slug=slug).first()
    if found is None:
        raise Http404
    return found


def _list_offered(user: User, workspace: Workspace) -> QuerySet[Template]:
    own = Q(workspace=None, owner=user)
    rows = Template.objects.offered_to(user).filter(own | Q(workspace=workspace))
    return rows.select_related("owner", "workspace")


def _filter(rows: QuerySet[Template], values: Mapping[str, Any]) -> QuerySet[Template]:
    given = {column: values[name] for name, column in _FILTERS.items() if values[name]}
    return rows.filter(**given)


def _find(call: Call) -> Template:
    """Return a template that the caller may start from.  Raises Http404."""
    rows = Template.objects.offered_to(call.person).select_related("owner", "workspace")
    found = rows.filter(public_id=call.values["TemplateId"]).first()
    if found is None:
        raise Http404
    return found


def _find_own(call: Call) -> Template:
    """Return a template that the caller is about to change; that of a workspace needs `admin` too."""
    template = _find(call)
    if templates.keeps(call.person, template) and template.workspace is not None and not call.allows("admin"):
        raise MissingScopeError("admin")
    return template


def _number(text: str) -> int:
    """Return the number of a version.  Raises InvalidParameters."""
    if not (text.isascii() and text.isdecimal() and len(text) < 7):
        raise InvalidParameters([WrongValue("Version", f"number | {ALL_VERSIONS}", value=text)])
    return int(text)


# --- what a person wrote ---------------------------------------------------------------------------------


def _about(name: str, description: str, icon: str = "bolt") -> About:
    wrong = []
    if not 0 < len(name.strip()) <= LONGEST_NAME:
        wrong.append(WrongValue("TemplateName", f"string of 1 to {LONGEST_NAME} characters", value=name))
    if len(description) > LONGEST_DESCRIPTION:
        wrong.append(WrongValue("Description", f"string of at most {LONGEST_DESCRIPTION} characters"))
    if wrong:
        raise InvalidParameters(wrong)
    return About(name.strip(), description, icon)


def _content(text: str, constraints: Mapping[str, Any], metadata: Mapping[str, Any]) -> Content:
    """Return the content of a version.  Raises InvalidParameters."""
    known = {each.value for each in Constraint}
    wrong = [
        WrongValue(f"Constraints[{path!r}]", " | ".join(sorted(known)), value=value)
        for path, value in constraints.items()
        if not isinstance(value, str) or value not in known
    ]
    if wrong:
        raise InvalidParameters(wrong)
    return Content(Document(text, DIALECT), constraints=dict(constraints), metadata=metadata)


def _new_content(template: Template, values: Mapping[str, Any]) -> Content | None:
    """Return the content of the next version; None where the request names no part of it."""
    if values["Content"] is None and values["Metadata"] is None:
        return None
    last = template.versions.get(number=template.latest_number)
    metadata = last.metadata if values["Metadata"] is None else values["Metadata"]
    if values["Content"] is not None:
        return _content(values["Content"], values["Constraints"] or {}, metadata)
    return Content(Document(last.content, last.dialect), last.parameters, last.constraints, metadata)


@contextmanager
def _vendor_errors() -> Iterator[None]:
    """Turn what the templates refuse into the vendor's errors."""
    try:
        yield
    except templates.TooMany:
        raise VendorError(400, "QuotaExceeded.JobTemplate", "There are too many templates.") from None
    except ValidationError as error:
        expected = "; ".join(each["msg"] for each in error.errors(include_input=False, include_url=False))
        raise InvalidParameters([WrongValue("Content", expected)]) from None
    except ValueError as error:
        raise InvalidParameters([WrongValue("Content", str(error))]) from None


# --- answers ---------------------------------------------------------------------------------------------


def _render(template: Template) -> JsonObject:
    return {
        "TemplateId": template.public_id,
        "TemplateName": template.name,
        "Description": template.description,
        "DefaultVersion": template.default_number,
        "WorkspaceId": template.workspace.slug if template.workspace else "",
        "UserId": template.owner.get_username(),
        "GmtCreateTime": render_time(template.created_at),
        "GmtModifyTime": render_time(template.updated_at),
    }


def _render_version(version: TemplateVersion) -> JsonObject:
    return {
        "Version": version.number,
        "Content": version.content,
        "Constraints": version.constraints,
        "CreatedBy": version.made_by.get_username(),
        "GmtCreateTime": render_time(version.made_at),
    }


# --- table -----------------------------------------------------------------------------------------------

_ID: Final = Parameter("TemplateId", location=Location.PATH, required=True)
_CONTENT_NOTE: Final = "A body of CreateJob as JSON; values of secrets are not stored."


def _body(name: str, kind: Kind = Kind.TEXT, *, required: bool = False, **more: Any) -> Parameter:
    return Parameter(name, kind, Location.BODY, required=required, **more)


OPERATIONS: Final = (
    Operation(
        "CreateJobTemplate",
        "POST",
        "api/v1/jobtemplates",
        create_template,
        scope="submit",
        parameters=(
            _body("TemplateName", required=True),
            _body("Content", required=True, note=_CONTENT_NOTE),
            _body("WorkspaceId", required=True),
            _body("Constraints", Kind.OBJECT),
            _body("Metadata", Kind.OBJECT),
            _body("Description"),
        ),
        support=Support.PARTIAL,
        note=(
            "A caller who does not manage the workspace, or whose key lacks the scope admin, gets a template "
            "of their own. TenantId and LastUsedTime are not answered."
        ),
        since=SINCE,
    ),
    Operation(
        "ListJobTemplates",
        "GET",
        "api/v1/jobtemplates",
        list_templates,
        parameters=(
            Parameter("WorkspaceId", required=True),
            *(
                Parameter(name, default="")
                for name in ("TemplateId", "TemplateName", "Description", "UserId")
            ),
            Parameter("SortBy", choices=tuple(_COLUMNS), default="GmtCreateTime"),
            ORDER,
            PAGE_NUMBER,
            PAGE_SIZE,
        ),
        support=Support.PARTIAL,
        note="TenantId, Metadata, ModifiedBy and LastUsedTime are not answered.",
        since=SINCE,
    ),
    Operation(
        "GetJobTemplate",
        "GET",
        "api/v1/jobtemplates/<str:TemplateId>",
        get_template,
        parameters=(_ID, Parameter("Version", default="", note="A number, or all.")),
        support=Support.PARTIAL,
        note="TenantId, ModifiedBy and LastUsedTime are not answered; Metadata is that of the first version.",
        since=SINCE,
    ),
    Operation(
        "UpdateJobTemplate",
        "PUT",
        "api/v1/jobtemplates/<str:TemplateId>",
        update_template,
        scope="submit",
        parameters=(
            _ID,
            _body("TemplateName"),
            _body("Content", note=_CONTENT_NOTE),
            _body("Constraints", Kind.OBJECT),
            _body("Metadata", Kind.OBJECT, note="Makes a new version."),
            _body("Description"),
            _body("SetAsDefault", Kind.BOOLEAN, default=False),
            _body(
                "version",
                Kind.ANY,
                support=Support.IGNORED,
                note="The vendor calls it an invalid field.",
            ),
        ),
        since=SINCE,
    ),
    Operation(
        "SetJobTemplateDefaultVersion",
        "PUT",
        "api/v1/jobtemplates/<str:TemplateId>/defaultversion",
        set_default_version,
        scope="submit",
        parameters=(_ID, _body("Version", Kind.INTEGER, required=True, least=1, most=999_999)),
        since=SINCE,
    ),
    Operation(
        "DeleteJobTemplate",
        "DELETE",
        "api/v1/jobtemplates/<str:TemplateId>",
        delete_template,
        scope="submit",
        parameters=(_ID,),
        support=Support.PARTIAL,
        note="The template is retired: an admin can bring it back, and jobs that came from it name it still.",
        since=SINCE,
    ),
)

"""One template over the native API: its versions and their file, changes, proposals."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.native import shapes, versions
from jobs.api.native.auth import MissingScope
from jobs.api.native.base import ABSENT, REFUSED, NativeView
from jobs.api.native.idempotency import IDEMPOTENCY_KEY, idempotent
from jobs.api.native.sparse_fields import FIELDS, Sparse
from jobs.api.native.template_content import NewVersionShape, store
from jobs.api.native.templates import TemplateShape, find_workspace, render
from jobs.api.native.versions import IF_MATCH, IF_NONE_MATCH
from jobs.models import Template
from jobs.submission import templates
from jobs.submission.templates import About, find_template

CHANGED = {
    **dict.fromkeys((404, 409, 412, 413), shapes.ProblemDetails),
    **REFUSED,
}


class WholeTemplateShape(TemplateShape):
    """A template with the file of one version; the fields below are null for a built-in one."""

    file = serializers.CharField()
    constraints = serializers.DictField(child=serializers.CharField())
    latest = serializers.IntegerField(allow_null=True, help_text="its newest version")
    retired = serializers.BooleanField()
    proposed_to = serializers.CharField(allow_null=True, help_text="a workspace")


class TemplateChangeShape(shapes.ApiShape):
    """What of a template can be changed; what is left out stays."""

    name = shapes.TextField(max_length=80, required=False)
    description = shapes.TextField(max_length=2000, allow_blank=True, required=False)
    icon = serializers.RegexField(r"^[a-z0-9-]+\Z", max_length=32, required=False)
    default = serializers.IntegerField(
        min_value=1, max_value=999_999, required=False, help_text="the version that one gets"
    )
    retired = serializers.BooleanField(required=False)
    proposed_to = serializers.SlugField(
        allow_null=True, required=False, help_text="offer it to this workspace's admins; null withdraws"
    )


class TemplateVersionShape(shapes.ApiShape):
    """A version in a list."""

    number = serializers.IntegerField()
    dialect = serializers.CharField()
    notes = serializers.CharField(allow_blank=True)
    made_by = serializers.CharField(source="made_by.username")
    made_at = serializers.DateTimeField()


class TemplateVersionsShape(shapes.ApiShape):
    """The versions of a template, the newest first."""

    versions = TemplateVersionShape(many=True)


class MyTemplateView(NativeView):
    """Every view of this module."""

    def template(self, public_id: str) -> Template:
        """Return a stored template that the caller sees.  Raises Http404."""
        rows = Template.objects.visible_to(self.person).select_related("owner", "workspace", "proposed_to")
        row = rows.filter(public_id=public_id).first()
        if row is None:
            raise Http404
        return row

    def own_template(self, public_id: str) -> Template:
        """Return one to be changed; a workspace's needs the scope `admin`.

        Raises Http404, MissingScope, PreconditionFailed.
        """
        row = self.template(public_id)
        if (row.workspace_id is not None or row.owner_id != self.person.pk) and not self.allows("admin"):
            raise MissingScope("admin")
        if self.if_match:
            row = Template.objects.select_for_update(of=("self",)).get(pk=row.pk)
            versions.require_version(self.if_match, version_of(row))
        return row


class OneTemplate(MyTemplateView):
    """One template."""

    scopes = {"PATCH": "submit", "DELETE": "submit"}
    sparse = Sparse(WholeTemplateShape)
    has_versions = True

    @extend_schema(
        operation_id="templates_read",
        parameters=[FIELDS, IF_NONE_MATCH],
        responses={200: WholeTemplateShape, 304: None, **REFUSED, **ABSENT},
    )
    def get(self, request: Request, template: str) -> Response:
        """Return its default version."""
        return Response(self._render(template))

    @extend_schema(
        operation_id="templates_change",
        request=TemplateChangeShape,
        parameters=[IF_MATCH],
        responses={200: WholeTemplateShape, **CHANGED},
    )
    def patch(self, request: Request, template: str) -> Response:
        """Change its name, default version or owner-to-be, retire it or bring it back."""
        row = self.own_template(template)
        data = TemplateChangeShape.parse(request.data)
        about = {name: data.get(name, getattr(row, name)) for name in ("name", "description", "icon")}
        if about.keys() & data.keys():
            templates.change(self.person, row, About(**about), None)
            row.refresh_from_db()
        if "default" in data and not templates.make_default(self.person, row, data["default"]):
            raise ValidationError({"default": [ErrorDetail(_("There is no such version."), "not_found")]})
        if "retired" in data:
            templates.retire(self.person, row, back=not data["retired"])
        if "proposed_to" in data:
            templates.propose(self.person, row, find_workspace(self, data["proposed_to"]))
        return Response(self._render(template))

    @extend_schema(
        operation_id="templates_delete",
        parameters=[IF_MATCH],
        responses={204: None, 412: shapes.ProblemDetails, **ABSENT},
    )
    def delete(self, request: Request, template: str) -> Response:
        """Retire it: nothing starts from it any more; jobs that came from it keep it."""
        templates.retire(self.person, self.own_template(template))
        return Response(status=204)

    def _render(self, public_id: str) -> dict[str, Any]:
        chosen = find_template(self.person, public_id)
        self.version = version_of(chosen.row.template) if chosen.row else chosen.template.version
        return render_whole(chosen)


class Versions(MyTemplateView):
    """Versions of a template."""

    scopes = {"POST": "submit"}
    has_versions = True

    @extend_schema(operation_id="templates_versions", responses={200: TemplateVersionsShape, **ABSENT})
    def get(self, request: Request, template: str) -> Response:
        """List them, the newest first."""
        rows = self.template(template).versions.select_related("made_by").order_by("-number")
        return Response({"versions": [TemplateVersionShape.render(row) for row in rows]})

    @extend_schema(
        operation_id="templates_version_create",
        request=NewVersionShape,
        parameters=[IDEMPOTENCY_KEY, IF_MATCH],
        responses={201: WholeTemplateShape, 200: WholeTemplateShape, **CHANGED},
    )
    @idempotent
    def post(self, request: Request, template: str) -> Response:
        """Add a version."""
        row = self.own_template(template)
        data = NewVersionShape.parse(request.data)
        about = About(row.name, row.description, row.icon)
        made = store(
            data,
            lambda content: templates.change(self.person, row, about, content, as_default=data["as_default"]),
        )
        if isinstance(made, Response):
            return made
        chosen = find_template(self.person, template, str(made.latest_number))
        return Response(render_whole(chosen), status=201)


class OneVersion(MyTemplateView):
    """One version of a template."""

    sparse = Sparse(WholeTemplateShape)

    @extend_schema(
        operation_id="templates_version_read",
        parameters=[FIELDS, IF_NONE_MATCH],
        responses={200: WholeTemplateShape, 304: None, **REFUSED, **ABSENT},
    )
    def get(self, request: Request, template: str, number: int) -> Response:
        """Return it with its file; a version never changes."""
        return Response(render_whole(find_template(self.person, template, str(number))))


class Adopt(MyTemplateView):
    """Taking a proposed template over."""

    scopes = {"POST": "admin"}

    @extend_schema(
        operation_id="templates_adopt",
        request=None,
        parameters=[IDEMPOTENCY_KEY],
        responses={
            201: WholeTemplateShape,
            200: WholeTemplateShape,
            409: shapes.ProblemDetails,
            **REFUSED,
            **ABSENT,
        },
    )
    @idempotent
    def post(self, request: Request, template: str) -> Response:
        """Copy its default version to the workspace that it was proposed to."""
        try:
            made = templates.adopt(self.person, self.template(template))
        except templates.TooMany as error:
            text = _("Template limit reached. Retire some templates first.")
            raise ValidationError({"": [ErrorDetail(text, code="too_many")]}) from error
        return Response(render_whole(find_template(self.person, made.public_id)), status=201)


class Decline(MyTemplateView):
    """Refusing a proposed template."""

    scopes = {"POST": "admin"}

    @extend_schema(operation_id="templates_decline", request=None, responses={204: None, **ABSENT})
    def post(self, request: Request, template: str) -> Response:
        """Refuse the proposal."""
        templates.decline(self.person, self.template(template))
        return Response(status=204)


def version_of(row: Template) -> int:
    """Return a number that grows with each change of the template."""
    return int(row.updated_at.timestamp() * 1_000_000)


def render_whole(chosen: templates.Chosen) -> dict[str, Any]:
    """Return WholeTemplateShape."""
    template, row = chosen.template, chosen.row.template if chosen.row else None
    return {
        **render(chosen),
        "file": template.text,
        "constraints": {path: rule.value for path, rule in template.constraints.items()},
        "latest": row.latest_number if row else None,
        "retired": row is not None and row.retired_at is not None,
        "proposed_to": row.proposed_to.slug if row and row.proposed_to else None,
    }

"""Templates over the native API: which there are, new ones, and the job file that answers make of one."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.native import shapes
from jobs.api.native.auth import MissingScope
from jobs.api.native.base import ABSENT, REFUSED, NativeView
from jobs.api.native.idempotency import IDEMPOTENCY_KEY, idempotent
from jobs.api.native.sparse_fields import FIELDS, Sparse
from jobs.api.native.template_content import NewTemplateShape, about_of, store
from jobs.api.native.versions import IF_NONE_MATCH
from jobs.jobtemplates import SHIPPED
from jobs.messages.jobtemplates import question, template_words
from jobs.submission import templates
from jobs.submission.forms import fill_form, fill_template
from jobs.submission.templates import Chosen, find_template, list_offered
from quotas.access import workspaces_of
from quotas.models import Workspace


class ParameterShape(shapes.ApiShape):
    """A question of a template."""

    name = serializers.CharField()
    kind = serializers.CharField(source="kind.value")
    label = serializers.CharField()  # type: ignore[assignment]  # the field of that name
    default = serializers.CharField(help_text="what is answered by who says nothing")
    choices = serializers.ListField(child=serializers.CharField())
    required = serializers.BooleanField()  # type: ignore[assignment]  # the field of that name


class TemplateShape(shapes.ApiShape):
    """A template; `version` is the one that one gets, `workspace` null unless one keeps it."""

    id = serializers.CharField(source="template.id")
    version = serializers.IntegerField(source="template.version")
    title = serializers.CharField(source="name")
    about = serializers.CharField()
    dialect = serializers.CharField(source="template.dialect")
    owner = serializers.CharField(allow_null=True, help_text="null of one that came with the console")
    workspace = serializers.CharField(allow_null=True)
    parameters = ParameterShape(many=True)


class TemplatesShape(shapes.ApiShape):
    """What one may start from."""

    templates = TemplateShape(many=True)


class AnswersShape(shapes.ApiShape):
    """Answers by the names of the parameters; who gives none has the first ones."""

    version = serializers.IntegerField(allow_null=True, default=None, min_value=1, max_value=999_999)
    answers = serializers.DictField(default=dict)


class FilledShape(shapes.ApiShape):
    """The job file, and the version that it comes from, as a submission names it."""

    template = serializers.CharField()
    dialect = serializers.CharField()
    text = serializers.CharField()


class Templates(NativeView):
    """The templates that can be started from."""

    scopes = {"POST": "submit"}
    sparse = Sparse(TemplateShape, "templates")

    @extend_schema(
        operation_id="templates_list",
        parameters=[FIELDS, IF_NONE_MATCH],
        responses={200: TemplatesShape, 304: None, **REFUSED},
    )
    def get(self, request: Request) -> Response:
        """One's own, those of one's workspaces, and those that came with the console."""
        found = [*list_offered(self.person), *(Chosen(each) for each in SHIPPED.values())]
        return Response({"templates": [render(each) for each in found]})

    @extend_schema(
        operation_id="templates_create",
        request=NewTemplateShape,
        parameters=[IDEMPOTENCY_KEY],
        responses={
            201: TemplateShape,
            200: TemplateShape,
            **dict.fromkeys((404, 409, 413), shapes.ProblemDetails),
            **REFUSED,
        },
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Create a template with its first version; in a workspace, for its admins (scope `admin`)."""
        data = NewTemplateShape.parse(request.data)
        workspace = find_workspace(self, data["workspace"])
        if workspace is not None and not self.allows("admin"):
            raise MissingScope("admin")
        made = store(data, lambda content: templates.create(self.person, about_of(data), content, workspace))
        if isinstance(made, Response):
            return made
        return Response(render(find_template(self.person, made.public_id)), status=201)


def find_workspace(view: NativeView, slug: str | None) -> Workspace | None:
    """Return a workspace of the caller, None for none.  Raises Http404."""
    if slug is None:
        return None
    found = workspaces_of(view.person).filter(slug=slug).first()
    if found is None:
        raise Http404
    return found


class TemplateFileView(NativeView):
    """The job file that answers make.  Nothing is stored: `read` is enough."""

    @extend_schema(
        operation_id="templates_file",
        request=AnswersShape,
        responses={200: FilledShape, 400: shapes.ProblemDetails, **ABSENT},
    )
    def post(self, request: Request, template: str) -> Response:
        """What to submit, with `template` beside it: then the template's locks hold, and the job names it."""
        find_template(self.person, template)  # whoever does not see it learns nothing of what was wrong
        data = AnswersShape.parse(request.data)
        chosen = find_template(self.person, template, str(data["version"] or ""))
        if chosen.row is not None and chosen.row.template.retired_at is not None:
            raise PermissionDenied(_("This template is retired and can't be used for new jobs."))
        known = {each.name for each in chosen.template.parameters}
        if unknown := sorted(set(data["answers"]) - known):
            text = _("The template has no parameter %(name)s. Available: %(names)s.")
            names = ", ".join(each.name for each in chosen.template.parameters)
            raise ValidationError({unknown[0][:80]: [text % {"name": unknown[0][:80], "names": names}]})
        form = fill_form(self.person, chosen.template, data["answers"])
        if not form.is_valid():
            wrong = {name: [str(each) for each in errors] for name, errors in form.errors.items()}
            raise ValidationError(wrong)
        document = fill_template(self.person, chosen.template, form.cleaned_data)
        return Response({"template": chosen.ref, "dialect": chosen.template.dialect, "text": document.text})


def render(chosen: Chosen) -> dict[str, Any]:
    """Return a template's version as lists show it."""
    template, row = chosen.template, chosen.row.template if chosen.row else None
    parameters = [
        ParameterShape.render(each, label=each.label or question(each.name), default=str(each.default))
        for each in template.parameters
    ]
    return TemplateShape.render(
        chosen,
        about=template.about if row else template_words(template.about),
        owner=row.owner.get_username() if row else None,
        workspace=row.workspace.slug if row and row.workspace else None,
        parameters=parameters,
    )

"""Drafts over the native API: job files in the making, each its owner's alone."""

from __future__ import annotations

from typing import Any, Final

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from jobs import dialects
from jobs.api.native import problems, shapes, versions
from jobs.api.native.base import ABSENT, AFTER, LIMIT, REFUSED, NativeView
from jobs.api.native.idempotency import IDEMPOTENCY_KEY, idempotent
from jobs.api.native.sparse_fields import FIELDS, Sparse
from jobs.api.native.versions import IF_MATCH, IF_NONE_MATCH
from jobs.dialects.document import Document
from jobs.models import Draft
from jobs.submission import drafts
from jobs.submission.drafts import DraftContent
from quotas.access import Verb

PAGE: Final = 50


class DraftContentShape(shapes.ApiShape):
    """The content of a draft; nothing in `file` is refused, but that it is empty."""

    file = shapes.TextField(trim_whitespace=False)
    dialect = serializers.ChoiceField(choices=dialects.NAMES, allow_null=True, default=None)
    target = shapes.TextField(
        max_length=drafts.LONGEST_PLACE, allow_blank=True, default="", help_text="WORKSPACE/CLUSTER/QUOTA"
    )
    template = shapes.TextField(max_length=drafts.LONGEST_TEMPLATE, allow_blank=True, default="")
    sweep = shapes.TextField(trim_whitespace=False, allow_blank=True, default="")
    at_once = serializers.IntegerField(allow_null=True, default=None, min_value=1, max_value=10_000)


class NewDraftShape(DraftContentShape):
    """The content, and the job that it was copied from."""

    like = serializers.SlugField(allow_null=True, default=None)


class DraftSummaryShape(shapes.ApiShape):
    """A draft in a list."""

    id = serializers.IntegerField(source="pk")
    name = serializers.CharField(allow_blank=True, help_text="the job's name in the file, if it can be read")
    dialect = serializers.CharField(allow_blank=True)
    target = serializers.CharField(allow_blank=True, source="place")
    template = serializers.CharField(allow_blank=True)
    version = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class DraftShape(DraftSummaryShape):
    """A draft with its job file and the sweep beside it."""

    file = serializers.CharField(source="text")
    sweep = serializers.CharField(allow_blank=True)
    at_once = serializers.IntegerField(allow_null=True)
    like = serializers.CharField(allow_null=True)


class DraftPage(shapes.ApiShape):
    """Drafts, the newest first, and the address of the next ones."""

    drafts = DraftSummaryShape(many=True)
    next = serializers.CharField(allow_null=True)


class DraftVersionShape(shapes.ApiShape):
    """An earlier version of a draft, or the text of another window of the browser."""

    number = serializers.IntegerField()
    file = serializers.CharField(source="text")
    dialect = serializers.CharField(allow_blank=True)
    from_another_window = serializers.BooleanField(source="beside")
    saved_at = serializers.DateTimeField()


class DraftVersionsShape(shapes.ApiShape):
    """The stored versions of a draft, the latest first."""

    versions = DraftVersionShape(many=True)


class Drafts(NativeView):
    """The caller's drafts."""

    scopes = {"POST": "submit"}
    sparse = Sparse(DraftSummaryShape, "drafts")

    @extend_schema(
        operation_id="drafts_list",
        parameters=[AFTER, LIMIT, FIELDS, IF_NONE_MATCH],
        responses={200: DraftPage, 304: None, **REFUSED},
    )
    def get(self, request: Request) -> Response:
        """List them by keys, the newest first."""
        rows = Draft.objects.filter(owner=self.person).defer("text", "sweep").order_by("-pk")
        if after := self.number("after", 0):
            rows = rows.filter(pk__lt=after)
        found, following = self.page(rows, PAGE)
        return Response({"drafts": [DraftSummaryShape.render(row) for row in found], "next": following})

    @extend_schema(
        operation_id="drafts_create",
        request=NewDraftShape,
        parameters=[IDEMPOTENCY_KEY],
        responses={
            201: DraftShape,
            200: DraftShape,
            **dict.fromkeys((404, 409, 413), shapes.ProblemDetails),
            **REFUSED,
        },
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Save a new draft."""
        data = NewDraftShape.parse(request.data)
        origin = self.job(data["like"], Verb.LIST) if data["like"] else None
        saved = drafts.keep(self.person, "", _content(data), origin)
        if saved is None:
            raise ValidationError({"file": [problems.blank()]})
        return Response(_render(saved.draft), status=201)


class OneDraft(NativeView):
    """One draft."""

    scopes = {"PUT": "submit", "DELETE": "submit"}
    sparse = Sparse(DraftShape)
    has_versions = True

    @extend_schema(
        operation_id="drafts_read",
        parameters=[FIELDS, IF_NONE_MATCH],
        responses={200: DraftShape, 304: None, **REFUSED, **ABSENT},
    )
    def get(self, request: Request, draft: int) -> Response:
        """Return the draft with its file, which may have secrets in it."""
        row = _find(self, draft)
        self.version = row.version
        return Response(_render(row))

    @extend_schema(
        operation_id="drafts_save",
        request=DraftContentShape,
        parameters=[IF_MATCH],
        responses={
            200: DraftShape,
            **dict.fromkeys((412, 413), shapes.ProblemDetails),
            **REFUSED,
            **ABSENT,
        },
    )
    def put(self, request: Request, draft: int) -> Response:
        """Save its content; the former one stays as a version."""
        row = _find(self, draft)
        saved = drafts.keep(self.person, str(row.pk), _content(DraftContentShape.parse(request.data)))
        if saved is None:
            raise Http404
        return Response(_render(saved.draft))

    @extend_schema(
        operation_id="drafts_delete",
        parameters=[IF_MATCH],
        responses={204: None, 412: shapes.ProblemDetails, **ABSENT},
    )
    def delete(self, request: Request, draft: int) -> Response:
        """Delete the draft with its versions."""
        _find(self, draft).delete()
        return Response(status=204)


class DraftVersions(NativeView):
    """Earlier versions of a draft."""

    @extend_schema(operation_id="drafts_versions", responses={200: DraftVersionsShape, **ABSENT})
    def get(self, request: Request, draft: int) -> Response:
        """List those that are stored, at most one a minute."""
        rows = _find(self, draft).versions.order_by("-saved_at", "-pk")
        return Response({"versions": [DraftVersionShape.render(row) for row in rows]})


def _find(view: NativeView, pk: int) -> Draft:
    """Return the caller's draft; one that is changed is locked.  Raises Http404, PreconditionFailed."""
    row = drafts.find(view.person, str(pk))
    if row is None:
        raise Http404
    if view.if_match:
        row = Draft.objects.select_for_update(of=("self",)).get(pk=row.pk)
        versions.require_version(view.if_match, row.version)
    return row


def _content(data: dict[str, Any]) -> DraftContent:
    return DraftContent(
        document=Document(data["file"], data["dialect"]),
        place=data["target"],
        template=data["template"],
        sweep=data["sweep"],
        at_once=str(data["at_once"] or ""),
        window="api",
        take=True,
    )


def _render(row: Draft) -> dict[str, Any]:
    at_once = int(row.at_once) if row.at_once.isascii() and row.at_once.isdigit() else None
    return DraftShape.render(row, at_once=at_once, like=row.origin.public_id if row.origin else None)

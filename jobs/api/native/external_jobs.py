"""External jobs over the native API: those on a cluster that were not submitted here; read-only."""

from __future__ import annotations

from typing import Any, Final

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.native import shapes
from jobs.api.native.base import ABSENT, AFTER, LIMIT, REFUSED, NativeView
from jobs.api.native.sparse_fields import FIELDS, Sparse
from jobs.api.native.versions import IF_NONE_MATCH
from jobs.logs import external_logs
from jobs.messages.backend_texts import pending_message
from jobs.models import ExternalJob

PAGE: Final = 50


class ExternalJobShape(shapes.ApiShape):
    """A job as the cluster's scheduler names it."""

    id = serializers.IntegerField(source="pk")
    cluster = serializers.CharField(source="cluster.slug")
    number = serializers.CharField(help_text="the scheduler's own")
    name = serializers.CharField(allow_blank=True)
    user = serializers.CharField(allow_blank=True, help_text="a UNIX name")
    partition = serializers.CharField(allow_blank=True)
    running = serializers.BooleanField()
    reason = serializers.CharField(allow_blank=True, help_text="why it waits")
    cpu_milli = serializers.IntegerField()
    memory_mib = serializers.IntegerField()
    gpus = serializers.DictField(child=serializers.IntegerField())
    nodes = serializers.ListField(child=serializers.CharField())
    submitted_at = serializers.DateTimeField(allow_null=True)
    started_at = serializers.DateTimeField(allow_null=True)
    ends_at = serializers.DateTimeField(allow_null=True, help_text="the latest end")
    has_log = serializers.BooleanField()


class ExternalJobPage(shapes.ApiShape):
    """External jobs, newest first, and the address of the next ones."""

    jobs = ExternalJobShape(many=True)
    next = serializers.CharField(allow_null=True)


class ExternalLogShape(shapes.ApiShape):
    """A part of a log; bytes that are no UTF-8 are replaced."""

    text = serializers.CharField(allow_blank=True)
    start = serializers.IntegerField(help_text="the offset of its first byte")
    end = serializers.IntegerField()
    size = serializers.IntegerField(help_text="of the whole log")


class ExternalJobs(NativeView):
    """External jobs of the clusters that the caller's workspaces may use."""

    sparse = Sparse(ExternalJobShape, "jobs")

    @extend_schema(
        operation_id="external_jobs_list",
        parameters=[
            AFTER,
            LIMIT,
            OpenApiParameter("cluster", str),
            OpenApiParameter("user", str, description="a UNIX name"),
            FIELDS,
            IF_NONE_MATCH,
        ],
        responses={200: ExternalJobPage, 304: None, **REFUSED},
    )
    def get(self, request: Request) -> Response:
        """List them by keys, the newest first."""
        rows = ExternalJob.objects.visible_to(self.person).select_related("cluster").order_by("-pk")
        if cluster := request.query_params.get("cluster"):
            rows = rows.filter(cluster__slug=cluster)
        if user := request.query_params.get("user"):
            rows = rows.filter(user=user)
        if after := self.number("after", 0):
            rows = rows.filter(pk__lt=after)
        found, following = self.page(rows, PAGE)
        return Response({"jobs": [_render(row) for row in found], "next": following})


class ExternalLog(NativeView):
    """The log of an external job."""

    @extend_schema(
        operation_id="external_jobs_log",
        parameters=[
            OpenApiParameter("before", int, description="the part that ends at this offset"),
            OpenApiParameter("after", int, description="the part that begins at this offset"),
        ],
        responses={200: ExternalLogShape, **REFUSED, **ABSENT},
    )
    def get(self, request: Request, job: int) -> Response:
        """Return the end of the log, or the part at an offset."""
        row = ExternalJob.objects.visible_to(self.person).select_related("cluster").filter(pk=job).first()
        if row is None:
            raise Http404
        after = self.number("after", 0) if "after" in request.query_params else None
        found = external_logs.read(row, before=self.number("before", 0) or None, after=after)
        if found is None:
            raise Http404
        return Response(ExternalLogShape.render(found, text=found.data.decode("utf-8", "replace")))


def _render(row: ExternalJob) -> dict[str, Any]:
    backend = row.cluster.backend
    reason = "" if row.running else pending_message(backend, {backend: row.reason})
    return ExternalJobShape.render(row, reason=reason, has_log=external_logs.has_log(row))

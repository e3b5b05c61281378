"""Maintenance windows over the administration's API, with a preview of what one would do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.db import transaction
from django.http import Http404
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.admin_api.base import CHANGED, PAGE, AdminView, JobNameShape, set_fields
from jobs.admin import admin_actions
from jobs.admin.holders import find_jobs
from jobs.api.native import shapes
from jobs.api.native.base import ABSENT, AFTER, LIMIT, REFUSED
from jobs.api.native.idempotency import IDEMPOTENCY_KEY, idempotent
from quotas.admission import snapshot
from quotas.models import Cluster, Maintenance

MOST_NAMED: Final = 100
_LONGEST: Final = 500


class WindowShape(shapes.ApiShape):
    """A maintenance window; `cluster` null is all clusters."""

    id = serializers.IntegerField(source="pk")
    cluster = serializers.CharField(allow_null=True)
    from_at = serializers.DateTimeField()
    until_at = serializers.DateTimeField()
    text = serializers.CharField()
    text_zh_hans = serializers.CharField(allow_blank=True)
    text_ja = serializers.CharField(allow_blank=True)
    keeps_free = serializers.BooleanField(help_text="jobs that would overlap the window don't start")
    lead_hours = serializers.IntegerField(
        help_text="so long before it, jobs without a time limit don't start"
    )


class WindowsPage(shapes.ApiShape):
    """Windows, the newest first, and the address of the next ones."""

    windows = WindowShape(many=True)
    next = serializers.CharField(allow_null=True)


class WindowChangeShape(shapes.ApiShape):
    """Fields of a window; what is absent stays."""

    cluster = shapes.TextField(max_length=63, allow_null=True, required=False)
    from_at = serializers.DateTimeField(required=False)
    until_at = serializers.DateTimeField(required=False)
    text = shapes.TextField(max_length=_LONGEST, required=False)
    text_zh_hans = shapes.TextField(max_length=_LONGEST, allow_blank=True, required=False)
    text_ja = shapes.TextField(max_length=_LONGEST, allow_blank=True, required=False)
    keeps_free = serializers.BooleanField(required=False)
    lead_hours = serializers.IntegerField(required=False, min_value=0, max_value=24 * 60)


class NewWindowShape(WindowChangeShape):
    """A new window."""

    from_at = serializers.DateTimeField()
    until_at = serializers.DateTimeField()
    text = shapes.TextField(max_length=_LONGEST)


class WindowPreviewShape(shapes.ApiShape):
    """What a window would do now; at most 100 jobs of each kind are named.

    `blocked` wait and could not start before it is over; `overlapping` run, and may still run when it begins.
    """

    blocked_count = serializers.IntegerField()
    blocked = JobNameShape(many=True)
    overlapping_count = serializers.IntegerField()
    overlapping = JobNameShape(many=True)


class Windows(AdminView):
    """All maintenance windows."""

    @extend_schema(
        operation_id="admin_maintenance_list",
        parameters=[AFTER, LIMIT],
        responses={200: WindowsPage, **REFUSED},
    )
    def get(self, request: Request) -> Response:
        """List them by keys, the newest first."""
        rows = Maintenance.objects.select_related("cluster").order_by("-pk")
        if after := self.number("after", 0):
            rows = rows.filter(pk__lt=after)
        found, following = self.page(rows, PAGE)
        return Response({"windows": [_render(row) for row in found], "next": following})

    @extend_schema(
        operation_id="admin_maintenance_create",
        request=NewWindowShape,
        parameters=[IDEMPOTENCY_KEY],
        responses={201: WindowShape, 200: WindowShape, **CHANGED},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Add a window, and notify the owners of jobs there."""
        row = Maintenance()
        _set(row, NewWindowShape.parse(request.data))
        _save(row)
        return Response(_render(row), status=201)


class WindowPreview(AdminView):
    """What a window would do."""

    @extend_schema(
        operation_id="admin_maintenance_preview",
        request=NewWindowShape,
        responses={200: WindowPreviewShape, **REFUSED},
    )
    def post(self, request: Request) -> Response:
        """Name the jobs that it would keep from starting, or meet; nothing is saved."""
        row = Maintenance()
        _set(row, NewWindowShape.parse(request.data))
        found = snapshot.preview_window(row)
        return Response(
            {
                "blocked_count": len(found.blocked),
                "blocked": _name(found.blocked),
                "overlapping_count": len(found.overlapping),
                "overlapping": _name(found.overlapping),
            }
        )


class OneWindow(AdminView):
    """One window."""

    @extend_schema(operation_id="admin_maintenance_read", responses={200: WindowShape, **ABSENT})
    def get(self, request: Request, window: int) -> Response:
        """Return it."""
        return Response(_render(_find(window)))

    @extend_schema(
        operation_id="admin_maintenance_update",
        request=WindowChangeShape,
        responses={200: WindowShape, **CHANGED},
    )
    def patch(self, request: Request, window: int) -> Response:
        """Change it; owners are notified where its time, cluster or text changed."""
        row = _find(window)
        values = WindowChangeShape.parse(request.data)
        before = _render(row)
        _set(row, values)
        after = _render(row)
        _save(row, is_news=any(before[name] != after[name] for name in ANNOUNCED))
        return Response(after)

    @extend_schema(operation_id="admin_maintenance_remove", responses={204: None, **ABSENT})
    def delete(self, request: Request, window: int) -> Response:
        """Remove it; jobs that it kept from starting may start."""
        _find(window).delete()
        return Response(status=204)


ANNOUNCED: Final = ("cluster", "from_at", "until_at", "text")
"""Fields whose change owners are told of."""


def _find(pk: int) -> Maintenance:
    row = Maintenance.objects.select_related("cluster").filter(pk=pk).first()
    if row is None:
        raise Http404
    return row


def _set(row: Maintenance, values: dict[str, Any]) -> None:
    """Set and check the fields of a window.  Raises ValidationError."""
    if values.get("cluster") is not None:
        slug = values["cluster"]
        values["cluster"] = Cluster.objects.filter(slug=slug).first()
        if values["cluster"] is None:
            raise ValidationError({"cluster": [_("Unknown cluster: %(name)s.") % {"name": slug}]})
    set_fields(row, values)


@transaction.atomic
def _save(row: Maintenance, *, is_news: bool = True) -> None:
    row.save()
    if is_news:
        admin_actions.announce(row)


def _name(holders: Sequence[str]) -> list[dict[str, Any]]:
    jobs = find_jobs(holders[:MOST_NAMED])
    return [JobNameShape.render(jobs[holder]) for holder in holders[:MOST_NAMED] if holder in jobs]


def _render(row: Maintenance) -> dict[str, Any]:
    return WindowShape.render(row, cluster=row.cluster.slug if row.cluster else None)

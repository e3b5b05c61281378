"""Notifications over the native API: the caller's inbox, and the channels that they manage."""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.native import problems, shapes
from jobs.api.native.base import ABSENT, REFUSED, NativeView
from jobs.api.native.sparse_fields import FIELDS, Sparse
from jobs.messages.deliveries import channel_message
from jobs.models import Channel
from jobs.notifications import channels, inbox


class NotificationShape(shapes.ApiShape):
    """A notification; `others` are earlier ones of the same kind in a row.

    `line` is the line of the log that says why the job failed.
    """

    id = serializers.IntegerField(source="pk")
    kind = serializers.CharField()
    level = serializers.CharField()
    at = serializers.DateTimeField()
    title = serializers.CharField(source="told.title")
    text = serializers.CharField(allow_blank=True, source="told.text")
    unread = serializers.BooleanField()
    job = serializers.CharField(allow_null=True)
    sweep = serializers.CharField(allow_null=True)
    line = serializers.CharField(allow_blank=True)
    others = serializers.ListField(child=serializers.IntegerField(), help_text="ids")


class NotificationPage(shapes.ApiShape):
    """Notifications, newest first, and the address of earlier ones."""

    notifications = NotificationShape(many=True)
    next = serializers.CharField(allow_null=True)


class ReadUpToShape(shapes.ApiShape):
    """The newest notification that was read."""

    up_to = serializers.IntegerField(min_value=1, max_value=2**63 - 1)


class ReadShape(shapes.ApiShape):
    """How many were unread until now."""

    read = serializers.IntegerField()


class ChannelShape(shapes.ApiShape):
    """A channel of the caller, or of a workspace whose channels they manage."""

    id = serializers.IntegerField(source="pk")
    kind = serializers.ChoiceField(Channel.Kind.values)
    title = serializers.CharField(allow_blank=True)
    destination = serializers.CharField(allow_blank=True, source="shown", help_text="shortened")
    workspace = serializers.CharField(allow_null=True)
    enabled = serializers.BooleanField()
    confirmed = serializers.BooleanField()


class ChannelsShape(shapes.ApiShape):
    """The channels that the caller manages."""

    channels = ChannelShape(many=True)


class ChannelChangeShape(shapes.ApiShape):
    """What of a channel can be changed."""

    enabled = serializers.BooleanField()


class Notifications(NativeView):
    """The caller's notifications."""

    sparse = Sparse(NotificationShape, "notifications")

    @extend_schema(
        operation_id="notifications_list",
        parameters=[OpenApiParameter("before", int, description="go on before this one"), FIELDS],
        responses={200: NotificationPage, **REFUSED},
    )
    def get(self, request: Request) -> Response:
        """List them, the newest first; a run of the same kind is one."""
        found = inbox.list_notifications(self.person, self.number("before", 0))
        address = request.build_absolute_uri(request.path)
        following = f"{address}?before={found.older}" if found.older else None
        return Response({"notifications": [_render(row) for row in found.rows], "next": following})


class ReadNotifications(NativeView):
    """Marking notifications as read."""

    scopes = {"POST": "submit"}

    @extend_schema(
        operation_id="notifications_read",
        request=ReadUpToShape,
        responses={200: ReadShape, 413: shapes.ProblemDetails, **REFUSED},
    )
    def post(self, request: Request) -> Response:
        """Mark everything up to a notification as read."""
        return Response({"read": inbox.read(self.person, ReadUpToShape.parse(request.data)["up_to"])})


class Channels(NativeView):
    """Notification channels.  New ones are added in the settings, where their secret is shown once."""

    @extend_schema(operation_id="channels_list", responses={200: ChannelsShape, **REFUSED})
    def get(self, request: Request) -> Response:
        """List the caller's own, with `admin` also those of workspaces that they manage."""
        mine = Q(person=self.person)
        if self.allows("admin"):
            mine |= Q(workspace__in=channels.find_managed_workspaces(self.person))
        rows = Channel.objects.filter(mine).exclude(kind=Channel.Kind.PAGE).select_related("workspace")
        return Response({"channels": [_render_channel(row) for row in rows.order_by("pk")]})


class OneChannel(NativeView):
    """One channel."""

    scopes = {"PATCH": "submit", "DELETE": "submit"}

    @extend_schema(
        operation_id="channels_change",
        request=ChannelChangeShape,
        responses={200: ChannelShape, 413: shapes.ProblemDetails, **REFUSED, **ABSENT},
    )
    def patch(self, request: Request, channel: int) -> Response:
        """Turn it on, with its failures reset, or off."""
        row = self._find(channel)
        channels.switch(row, on=ChannelChangeShape.parse(request.data)["enabled"])
        row.refresh_from_db()
        return Response(_render_channel(row))

    @extend_schema(operation_id="channels_remove", responses={204: None, **ABSENT})
    def delete(self, request: Request, channel: int) -> Response:
        """Remove it."""
        self._find(channel).delete()
        return Response(status=204)

    def _find(self, pk: int) -> Channel:
        return find_channel(self, pk)


class ChannelTest(NativeView):
    """A test message."""

    scopes = {"POST": "submit"}

    @extend_schema(
        operation_id="channels_test",
        request=None,
        responses={202: ChannelShape, 409: shapes.ProblemDetails, **ABSENT},
    )
    def post(self, request: Request, channel: int) -> Response:
        """Send a test message; 409 right after another."""
        row = find_channel(self, channel)
        try:
            channels.test(row)
        except channels.Refused as refused:
            body = problems.details(409, channel_message(refused.code), code=refused.code)
            return Response(body, status=409, content_type=problems.CONTENT_TYPE)
        return Response(_render_channel(row), status=202)


def find_channel(view: NativeView, pk: int) -> Channel:
    """Return a channel that the caller manages; one of a workspace needs `admin`.  Raises Http404."""
    row = channels.find(view.person, pk)
    if row is None or (row.workspace_id is not None and not view.allows("admin")):
        raise Http404
    return row


def _render(row: inbox.NotificationRow) -> dict[str, Any]:
    others = [each.pk for each in row.others]
    return NotificationShape.render(row, job=row.job or None, sweep=row.sweep or None, others=others)


def _render_channel(row: Channel) -> dict[str, Any]:
    return ChannelShape.render(
        row,
        workspace=row.workspace.slug if row.workspace else None,
        enabled=not row.off,
        confirmed=row.verified_at is not None,
    )

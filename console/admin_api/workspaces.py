"""Workspaces and their members over the administration's API."""

from __future__ import annotations

from typing import Final

from django.http import Http404
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.admin_api.base import CHANGED, PAGE, AdminView, StateConflict, set_fields
from jobs.api.native import shapes
from jobs.api.native.base import ABSENT, AFTER, LIMIT, REFUSED
from jobs.api.native.idempotency import IDEMPOTENCY_KEY, idempotent
from quotas.accounts import members
from quotas.models import Membership, Role, User, Workspace

LONGEST_DESCRIPTION: Final = 10_000


class AdminWorkspaceShape(shapes.ApiShape):
    """A workspace; `egress` says where its jobs may connect to."""

    slug = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField(allow_blank=True)
    vendor_id = serializers.CharField(allow_blank=True)
    egress = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()


class AdminWorkspacesPage(shapes.ApiShape):
    """Workspaces in the order in which they were made, and the address of the next ones."""

    workspaces = AdminWorkspaceShape(many=True)
    next = serializers.CharField(allow_null=True)


class WorkspaceChangeShape(shapes.ApiShape):
    """Fields of a workspace; what is absent stays."""

    name = shapes.TextField(max_length=200, required=False)
    description = shapes.TextField(max_length=LONGEST_DESCRIPTION, allow_blank=True, required=False)
    vendor_id = shapes.TextField(max_length=200, allow_blank=True, required=False)
    egress = serializers.ListField(
        child=shapes.TextField(max_length=100),
        required=False,
        max_length=200,
        help_text='["internet"], [] for nothing, or ranges as 192.0.2.0/24:443',
    )


class NewWorkspaceShape(WorkspaceChangeShape):
    """A new workspace, without members and quotas."""

    slug = shapes.TextField(max_length=63)
    name = shapes.TextField(max_length=200)


class MemberShape(shapes.ApiShape):
    """A member of a workspace; one who came `by_groups` follows them."""

    username = serializers.CharField(source="user.username")
    role = serializers.ChoiceField(Role.values)
    by_groups = serializers.BooleanField()
    since = serializers.DateTimeField(source="created_at")


class MembersPage(shapes.ApiShape):
    """Members in the order in which they came, and the address of the next ones."""

    members = MemberShape(many=True)
    next = serializers.CharField(allow_null=True)


class RoleShape(shapes.ApiShape):
    """A role in a workspace."""

    role = serializers.ChoiceField(Role.values)


class Workspaces(AdminView):
    """All workspaces."""

    @extend_schema(
        operation_id="admin_workspaces_list",
        parameters=[AFTER, LIMIT],
        responses={200: AdminWorkspacesPage, **REFUSED},
    )
    def get(self, request: Request) -> Response:
        """List them by keys."""
        rows = Workspace.objects.order_by("pk")
        if after := self.number("after", 0):
            rows = rows.filter(pk__gt=after)
        found, following = self.page(rows, PAGE)
        return Response({"workspaces": [AdminWorkspaceShape.render(row) for row in found], "next": following})

    @extend_schema(
        operation_id="admin_workspaces_create",
        request=NewWorkspaceShape,
        parameters=[IDEMPOTENCY_KEY],
        responses={201: AdminWorkspaceShape, 200: AdminWorkspaceShape, **CHANGED},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Add a workspace."""
        row = Workspace()
        set_fields(row, NewWorkspaceShape.parse(request.data))
        row.save()
        return Response(AdminWorkspaceShape.render(row), status=201)


class OneWorkspace(AdminView):
    """One workspace."""

    @extend_schema(operation_id="admin_workspaces_read", responses={200: AdminWorkspaceShape, **ABSENT})
    def get(self, request: Request, workspace: str) -> Response:
        """Return it."""
        return Response(AdminWorkspaceShape.render(_find(workspace)))

    @extend_schema(
        operation_id="admin_workspaces_update",
        request=WorkspaceChangeShape,
        responses={200: AdminWorkspaceShape, **CHANGED},
    )
    def patch(self, request: Request, workspace: str) -> Response:
        """Change its fields."""
        values = WorkspaceChangeShape.parse(request.data)
        row = _find(workspace)
        set_fields(row, values)
        if values:
            row.save(update_fields=list(values))
        return Response(AdminWorkspaceShape.render(row))


class Members(AdminView):
    """The members of a workspace."""

    @extend_schema(
        operation_id="admin_members_list",
        parameters=[AFTER, LIMIT],
        responses={200: MembersPage, **REFUSED, **ABSENT},
    )
    def get(self, request: Request, workspace: str) -> Response:
        """List them by keys."""
        rows = Membership.objects.filter(workspace=_find(workspace)).select_related("user").order_by("pk")
        if after := self.number("after", 0):
            rows = rows.filter(pk__gt=after)
        found, following = self.page(rows, PAGE)
        return Response({"members": [MemberShape.render(row) for row in found], "next": following})


class OneMember(AdminView):
    """One person in a workspace."""

    @extend_schema(
        operation_id="admin_members_save",
        request=RoleShape,
        responses={200: MemberShape, 201: MemberShape, **CHANGED},
    )
    def put(self, request: Request, workspace: str, username: str) -> Response:
        """Add the person, or change their role; a role that came by groups follows them, and is 409."""
        role = Role(RoleShape.parse(request.data)["role"])
        space = _find(workspace)
        person = User.objects.filter(username=username).first()
        if person is None:
            raise Http404
        row, is_new = Membership.objects.select_related("user", "workspace").get_or_create(
            workspace=space, user=person, defaults={"role": role}
        )
        if not is_new and row.role != role:
            try:
                members.change_role(self.person, row, role, knowing=True)
            except members.Refused as refused:
                raise StateConflict(_by_groups()) from refused
        return Response(MemberShape.render(row), status=201 if is_new else 200)

    @extend_schema(operation_id="admin_members_remove", responses={204: None, **CHANGED})
    def delete(self, request: Request, workspace: str, username: str) -> Response:
        """Take the person out of the workspace; one who came by groups is 409."""
        rows = Membership.objects.select_related("user", "workspace")
        row = rows.filter(workspace=_find(workspace), user__username=username).first()
        if row is None:
            raise Http404
        try:
            members.remove(self.person, row, knowing=True)
        except members.Refused as refused:
            raise StateConflict(_by_groups()) from refused
        return Response(status=204)


def _by_groups() -> str:
    """Return why a member can't be changed: admins may do everything else."""
    return _("This membership comes from a group. Change the group or its mapping.")


def _find(slug: str) -> Workspace:
    row = Workspace.objects.filter(slug=slug).first()
    if row is None:
        raise Http404
    return row

"""People over the administration's API: list, add, change, deactivate, and links to set a password.

Accounts of admins and of services are shown, and changed on the pages only.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import Http404
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.admin_api.base import CHANGED, PAGE, AdminView, ReasonShape, StateConflict, set_fields
from jobs.admin import admin_actions
from jobs.api.native import shapes
from jobs.api.native.account import MembershipShape
from jobs.api.native.base import ABSENT, AFTER, LIMIT, REFUSED
from jobs.api.native.idempotency import IDEMPOTENCY_KEY, idempotent
from quotas.accounts import resets
from quotas.models import Membership, Role, User, Workspace

LONGEST_NAME: Final = 150


class PersonShape(shapes.ApiShape):
    """A person, or a service account."""

    username = serializers.CharField()
    first_name = serializers.CharField(allow_blank=True)
    last_name = serializers.CharField(allow_blank=True)
    email = serializers.CharField(allow_blank=True)
    unix_name = serializers.CharField(allow_blank=True)
    kind = serializers.ChoiceField(User.Kind.values)
    is_active = serializers.BooleanField()
    is_admin = serializers.BooleanField(source="is_superuser")
    last_login = serializers.DateTimeField(allow_null=True)
    workspaces = MembershipShape(many=True)


class PeoplePage(shapes.ApiShape):
    """People in the order in which they came, and the address of the next ones."""

    people = PersonShape(many=True)
    next = serializers.CharField(allow_null=True)


class PersonChangeShape(shapes.ApiShape):
    """Fields of a person; what is absent stays."""

    first_name = shapes.TextField(max_length=LONGEST_NAME, allow_blank=True, required=False)
    last_name = shapes.TextField(max_length=LONGEST_NAME, allow_blank=True, required=False)
    email = shapes.TextField(max_length=254, allow_blank=True, required=False)
    unix_name = shapes.TextField(allow_blank=True, required=False)


class NewPersonShape(PersonChangeShape):
    """A new person, who has no password: they sign in by a link, the directory or a provider."""

    username = shapes.TextField(max_length=LONGEST_NAME)
    workspaces = serializers.DictField(
        child=serializers.ChoiceField(Role.values),
        required=False,
        help_text="the person's role in each workspace, by its short name",
    )


class DeactivationShape(ReasonShape):
    """Why the account is deactivated; with `preview` nothing is done."""

    preview = serializers.BooleanField(default=False)


class PresenceShape(shapes.ApiShape):
    """Numbers of everything of the person that ends, or would end."""

    jobs = serializers.IntegerField()
    sessions = serializers.IntegerField()
    tokens = serializers.IntegerField()
    service_tokens = serializers.IntegerField(help_text="of service accounts that they made")
    access_keys = serializers.IntegerField()
    service_keys = serializers.IntegerField(help_text="of service accounts that they made")
    invitations = serializers.IntegerField()
    ssh_keys = serializers.IntegerField()
    entries = serializers.IntegerField(help_text="shells and terminals that are open")
    visits = serializers.IntegerField(help_text="links into jobs' endpoints")


class PasswordLinkShape(shapes.ApiShape):
    """A link by which the person sets a password, once, within three days."""

    url = serializers.CharField()


class People(AdminView):
    """Everybody who has an account."""

    @extend_schema(
        operation_id="admin_people_list",
        parameters=[
            AFTER,
            LIMIT,
            OpenApiParameter("workspace", str, description="members of this workspace"),
            OpenApiParameter("active", bool),
            OpenApiParameter("q", str, description="part of a user name or an e-mail address"),
        ],
        responses={200: PeoplePage, **REFUSED},
    )
    def get(self, request: Request) -> Response:
        """List people and service accounts by keys."""
        rows = _people().order_by("pk")
        if workspace := request.query_params.get("workspace"):
            rows = rows.filter(pk__in=Membership.objects.filter(workspace__slug=workspace).values("user"))
        if active := request.query_params.get("active"):
            rows = rows.filter(is_active=active.lower() in {"true", "1"})
        if part := request.query_params.get("q"):
            rows = rows.filter(Q(username__icontains=part) | Q(email__icontains=part))
        if after := self.number("after", 0):
            rows = rows.filter(pk__gt=after)
        found, following = self.page(rows, PAGE)
        return Response({"people": [_render(row) for row in found], "next": following})

    @extend_schema(
        operation_id="admin_people_create",
        request=NewPersonShape,
        parameters=[IDEMPOTENCY_KEY],
        responses={201: PersonShape, 200: PersonShape, **CHANGED},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Add a person, with memberships."""
        values = NewPersonShape.parse(request.data)
        roles = values.pop("workspaces", {})
        spaces = {row.slug: row for row in Workspace.objects.filter(slug__in=roles)}
        if unknown := sorted(roles.keys() - spaces.keys()):
            text = _("Unknown workspace: %(names)s.") % {"names": ", ".join(unknown)}
            raise ValidationError({"workspaces": [text]})
        person = User()
        person.set_unusable_password()
        set_fields(person, values)
        with transaction.atomic():
            person.save()
            for slug, role in roles.items():
                Membership.objects.create(workspace=spaces[slug], user=person, role=role)
        return Response(_render(_find(person.username)), status=201)


class OnePerson(AdminView):
    """One account."""

    @extend_schema(operation_id="admin_people_read", responses={200: PersonShape, **ABSENT})
    def get(self, request: Request, username: str) -> Response:
        """Return the account."""
        return Response(_render(_find(username)))

    @extend_schema(
        operation_id="admin_people_update",
        request=PersonChangeShape,
        responses={200: PersonShape, **CHANGED},
    )
    def patch(self, request: Request, username: str) -> Response:
        """Change a person's fields; a UNIX name that is set here no directory changes."""
        values = PersonChangeShape.parse(request.data)
        person = _find_changeable(username)
        if "unix_name" in values:
            values["unix_name_from"] = ""
        set_fields(person, values)
        if values:
            person.save(update_fields=list(values))
        return Response(_render(_find(username)))


class Deactivation(AdminView):
    """The end of a person's access."""

    @extend_schema(
        operation_id="admin_people_deactivate",
        request=DeactivationShape,
        responses={200: PresenceShape, **CHANGED},
    )
    def post(self, request: Request, username: str) -> Response:
        """Deactivate the account, end its sessions, tokens and keys, and stop its jobs."""
        values = DeactivationShape.parse(request.data)
        person = _find_changeable(username)
        if values["preview"]:
            return Response(asdict(admin_actions.count_presence(person)))
        ended = admin_actions.end_everything(self.actor(values["reason"]), person, disable=True)
        return Response(asdict(ended))


class Activation(AdminView):
    """Access again."""

    @extend_schema(
        operation_id="admin_people_activate", request=None, responses={200: PersonShape, **CHANGED}
    )
    def post(self, request: Request, username: str) -> Response:
        """Activate the account; tokens and keys that ended stay so."""
        person = _find_changeable(username)
        set_fields(person, {"is_active": True, "disabled_by": ""})
        person.save(update_fields=["is_active", "disabled_by"])
        return Response(_render(_find(username)))


class PasswordLink(AdminView):
    """A first password, or a forgotten one."""

    @extend_schema(
        operation_id="admin_people_password_link",
        request=None,
        responses={201: PasswordLinkShape, **CHANGED},
    )
    def post(self, request: Request, username: str) -> Response:
        """Make a link; it is returned this once."""
        person = _find_changeable(username)
        if not person.is_active:
            raise StateConflict(_("This account is not active."))
        return Response({"url": f"{settings.CONSOLE_URL}{resets.path_for(person)}"}, status=201)


def _people() -> QuerySet[User]:
    return User.objects.prefetch_related("memberships__workspace")


def _find(username: str) -> User:
    person = _people().filter(username=username).first()
    if person is None:
        raise Http404
    return person


def _find_changeable(username: str) -> User:
    """Return a person.  Raises StateConflict for admins and service accounts."""
    person = _find(username)
    if person.is_superuser or person.is_staff or person.kind != User.Kind.PERSON:
        raise StateConflict(
            _("Accounts of admins and service accounts can only be changed on the console's pages.")
        )
    return person


def _render(person: User) -> dict[str, Any]:
    memberships = sorted(person.memberships.all(), key=lambda row: row.pk)
    return PersonShape.render(person, workspaces=[MembershipShape.render(row) for row in memberships])

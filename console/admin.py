"""Django admin of the door: who signs in and by what, which groups give rights, what happened."""

from __future__ import annotations

from typing import Any

# Its own admin is registered first, so that it can be taken back: secrets are not to be looked at there.
import allauth.account.admin
import allauth.mfa.admin
import allauth.socialaccount.admin  # noqa: F401
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from quotas.accounts import groups
from quotas.admin.base import MachineWritten, ModelAdmin, TabularInline
from quotas.models import (
    GroupMapping,
    Invitation,
    LocalGroup,
    LocalGroupRole,
    PersonGroup,
    ServiceAccount,
    SignIn,
)

for model in (EmailAddress, Authenticator, SocialAccount, SocialApp, SocialToken):
    if admin.site.is_registered(model):
        admin.site.unregister(model)


@admin.register(GroupMapping)
class GroupMappingAdmin(ModelAdmin[GroupMapping]):
    """Mappings from groups to roles; a change applies at once, to everybody in the group."""

    list_display = ("group", "source", "workspace", "role", "superuser")
    list_filter = ("source", "workspace", "superuser")
    list_select_related = ("workspace",)
    search_fields = ("group", "workspace__name")

    def get_readonly_fields(self, request: HttpRequest, obj: GroupMapping | None = None) -> tuple[str, ...]:
        """Only a superuser makes superusers, of a group too."""
        return () if request.user.is_superuser else ("superuser",)

    def has_change_permission(self, request: HttpRequest, obj: GroupMapping | None = None) -> bool:
        within_reach = request.user.is_superuser or obj is None or not obj.superuser
        return bool(super().has_change_permission(request, obj)) and within_reach

    def save_model(self, request: HttpRequest, obj: GroupMapping, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        groups.apply_to_all()

    def delete_model(self, request: HttpRequest, obj: GroupMapping) -> None:
        super().delete_model(request, obj)
        groups.apply_to_all()

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        super().delete_queryset(request, queryset)
        groups.apply_to_all()


class LocalGroupRoleInline(TabularInline[LocalGroupRole, LocalGroup]):
    """The roles that a group gives."""

    model = LocalGroupRole
    autocomplete_fields = ("workspace",)
    extra = 0


@admin.register(LocalGroup)
class LocalGroupAdmin(ModelAdmin[LocalGroup]):
    """Groups of people by hand, and their roles; a change applies at once."""

    inlines = (LocalGroupRoleInline,)
    list_display = ("name", "description", "people_count")
    search_fields = ("name", "description")
    autocomplete_fields = ("people",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[LocalGroup]:
        """Groups with the number of their people."""
        return super().get_queryset(request).annotate(people_number=Count("people"))

    @admin.display(description=_("people"), ordering="people_number")
    def people_count(self, group: Any) -> int:
        """How many people are in it."""
        return int(group.people_number)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        groups.apply_to_all()

    def delete_model(self, request: HttpRequest, obj: LocalGroup) -> None:
        super().delete_model(request, obj)
        groups.apply_to_all()

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        super().delete_queryset(request, queryset)
        groups.apply_to_all()


class Deletable(MachineWritten):
    """Written by the console; an admin may take a row away, which is how a lost phone is dealt with."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_active and request.user.is_superuser)


@admin.register(Authenticator)
class AuthenticatorAdmin(Deletable):
    """Second factors; what makes codes is not shown."""

    list_display = ("user", "type", "created_at", "last_used_at")
    list_filter = ("type",)
    list_select_related = ("user",)
    search_fields = ("user__username",)
    fields = ("user", "type", "created_at", "last_used_at")


@admin.register(SocialAccount)
class SocialAccountAdmin(Deletable):
    """Accounts at OIDC providers with their last claims."""

    list_display = ("user", "provider", "uid", "last_login", "date_joined")
    list_filter = ("provider",)
    list_select_related = ("user",)
    search_fields = ("user__username", "uid")


@admin.register(EmailAddress)
class EmailAddressAdmin(Deletable):
    """E-mail addresses of people."""

    list_display = ("email", "user", "primary", "verified")
    list_filter = ("verified",)
    list_select_related = ("user",)
    search_fields = ("email", "user__username")


@admin.register(PersonGroup)
class PersonGroupAdmin(MachineWritten):
    """The groups of people, as the directory and the providers last reported them."""

    list_display = ("user", "source", "group")
    list_filter = ("source",)
    list_select_related = ("user",)
    search_fields = ("user__username", "group")


@admin.register(SignIn)
class SignInAdmin(MachineWritten):
    """Active sign-ins."""

    list_display = ("user", "how", "address", "browser", "created_at")
    list_filter = ("how",)
    list_select_related = ("user",)
    search_fields = ("user__username", "address")
    fields = ("user", "how", "address", "browser", "created_at")


@admin.register(Invitation)
class InvitationAdmin(MachineWritten):
    """Invitations, read-only; workspaces' admins create and revoke them on the members' page."""

    list_display = (
        "workspace",
        "role",
        "email",
        "invited_by",
        "created_at",
        "expires_at",
        "accepted_by",
        "revoked_at",
    )
    list_select_related = ("workspace", "invited_by", "accepted_by")
    search_fields = ("email", "workspace__name", "invited_by__username")


@admin.register(ServiceAccount)
class ServiceAccountAdmin(MachineWritten):
    """Service accounts; workspaces' admins make them on the members' page."""

    list_display = ("user", "workspace", "contact", "about", "made_by", "created_at")
    list_filter = ("workspace",)
    list_select_related = ("user", "workspace", "made_by")
    search_fields = ("user__username", "contact")

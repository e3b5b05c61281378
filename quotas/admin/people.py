"""People, their tokens, and the workspaces that they belong to."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Final

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.forms import AdminPasswordChangeForm, UserChangeForm

from quotas import ledger
from quotas.accounts import first_links, groups, resets
from quotas.accounts.first_links import Delivery
from quotas.admin.base import TABLE_LIST, MachineWritten, ModelAdmin, StackedInline, TabularInline
from quotas.admin.forms import PersonForm, QuotaForm, WorkspaceForm
from quotas.admin.units import UnitFields
from quotas.models import AccessKey, AccessToken, Membership, Quota, User, Workspace

POWERS: Final = (
    "is_staff",
    "is_superuser",
    "groups",
    "user_permissions",
    "break_glass",
    "directory_dn",
    "unix_name",
)
"""Fields of a person that only a superuser changes: by each somebody could become more than they are."""


def _is_within_reach(request: HttpRequest, obj: User | None) -> bool:
    """Whether staff may touch the account: whoever sets a superuser's password or e-mail address is one."""
    return obj is None or request.user.is_superuser or not (obj.is_superuser or obj.is_staff)


class MembershipInline(TabularInline[Membership, Any]):
    """Members, edited where they belong."""

    model = Membership
    autocomplete_fields = ("user", "workspace")
    extra = 0


@admin.register(User)
class UserAdmin(DjangoUserAdmin[User], ModelAdmin[User]):
    """People; a job's owner is never deleted, only made inactive."""

    change_list_template = TABLE_LIST
    form = UserChangeForm
    add_form = PersonForm
    add_form_template = None
    change_password_form = AdminPasswordChangeForm

    inlines = (MembershipInline,)
    list_display = ("username", "email", "kind", "is_active", "is_staff", "is_superuser", "last_login")
    actions = ("make_reset_links",)
    fieldsets = (
        *(DjangoUserAdmin.fieldsets or ()),
        (_("Sign-in"), {"fields": ("break_glass", "directory_dn", "disabled_by")}),
        (_("Jobs"), {"fields": ("unix_name", "unix_name_from")}),
        (_("Preferences"), {"fields": ("language", "time_zone", "theme")}),
    )
    add_fieldsets = (
        (None, {"fields": ("username", "email", ("first_name", "last_name"), "local_groups", "links")}),
    )
    readonly_fields = ("unix_name_from", "disabled_by")

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> tuple[str, ...]:
        """Only a superuser gives powers, or says who may come in whose name."""
        fields = tuple(str(each) for each in super().get_readonly_fields(request, obj))
        return fields if request.user.is_superuser else (*fields, *POWERS)

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return bool(super().has_change_permission(request, obj)) and _is_within_reach(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return bool(super().has_delete_permission(request, obj)) and _is_within_reach(request, obj)

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """A UNIX name that an admin wrote is theirs from then on."""
        if "unix_name" in form.changed_data:
            obj.unix_name_from = ""
        super().save_model(request, obj, form, change)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Put a new person into groups, and give them the link to their first password."""
        super().save_related(request, form, formsets, change)
        if change:
            return
        user = form.instance
        if request.user.has_perm("quotas.change_localgroup"):
            for group in form.cleaned_data["local_groups"]:
                group.people.add(user)
            groups.apply([user])
        way = first_links.parse_delivery(form.cleaned_data["links"])
        shown = first_links.deliver([user], way)
        for person, link in shown:
            self.message_user(request, f"{person}: {link}")
        if way is Delivery.MAIL and not shown:
            self.message_user(request, _("The link was sent to %(email)s.") % {"email": user.email})

    def response_add(self, request: HttpRequest, obj: User, post_url_continue: str | None = None) -> Any:
        """Go back to the list, as everything was on the form."""
        return ModelAdmin.response_add(self, request, obj, post_url_continue)

    @admin.action(description=_("Create password links"), permissions=("reset",))
    def make_reset_links(self, request: HttpRequest, users: Any) -> None:
        """For when no e-mail reaches them: the links are shown here, and nowhere again."""
        for user in users.filter(kind=User.Kind.PERSON):
            path = resets.path_for(user)
            link = f"{settings.CONSOLE_URL}{path}"
            self.message_user(request, f"{user}: {link}")

    def has_reset_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may reset passwords; only a superuser resets a superuser's."""
        return bool(request.user.is_superuser)


admin.site.unregister(Group)


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, ModelAdmin[Group]):
    """Permissions for several people; only a superuser gives permissions."""

    def has_add_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return bool(request.user.is_superuser)

    def has_change_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return bool(request.user.is_superuser)

    def has_delete_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return bool(request.user.is_superuser)


@admin.register(AccessToken)
class AccessTokenAdmin(MachineWritten):
    """Tokens: who has one and for what; the token itself is nowhere."""

    list_display = ("prefix", "name", "user", "scopes", "expires_at", "last_used_at", "revoked_at")
    list_select_related = ("user",)
    search_fields = ("prefix", "name", "user__username")


@admin.register(AccessKey)
class AccessKeyAdmin(MachineWritten):
    """Access keys: who has one and for what; the secret is never shown."""

    list_display = ("key_id", "name", "user", "scopes", "expires_at", "last_used_at", "revoked_at")
    list_select_related = ("user",)
    search_fields = ("key_id", "name", "user__username")


@admin.register(Membership)
class MembershipAdmin(ModelAdmin[Membership]):
    """Memberships of all workspaces in one table."""

    change_list_template = TABLE_LIST
    list_display = ("user", "workspace", "role", "created_at")
    list_filter = ("role", "workspace")
    list_select_related = ("user", "workspace")
    search_fields = ("user__username", "workspace__slug")
    autocomplete_fields = ("user", "workspace")


class QuotaInline(UnitFields, StackedInline[Quota, Workspace]):
    """A workspace's quotas."""

    model = Quota
    form = QuotaForm
    fk_name = "workspace"
    extra = 0
    prepopulated_fields = {"slug": ("name",)}
    fields = (
        ("name", "slug"),
        "cluster",
        "parent",
        "gpus",
        "gpus_by_type",
        "cpu_milli",
        "memory_mib",
        "most_jobs",
    )


@admin.register(Workspace)
class WorkspaceAdmin(ModelAdmin[Workspace]):
    """Workspaces with their members and quotas on one page."""

    form = WorkspaceForm
    inlines = (MembershipInline, QuotaInline)
    fields = ("name", "slug", "vendor_id", "description", "egress_kind", "egress_rules")
    list_display = ("name", "slug", "created_at")
    search_fields = ("name", "slug")
    prepopulated_fields = {"slug": ("name",)}

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        """Quotas change under the locks of their clusters, so that no admission decides by half of them."""
        if formset.model is not Quota:
            super().save_formset(request, form, formset, change)
            return
        with ExitStack() as locks:
            for cluster_id in sorted(
                {each.instance.cluster_id for each in formset.forms if each.has_changed()}
            ):
                locks.enter_context(ledger.lock_cluster(cluster_id))
            super().save_formset(request, form, formset, change)

"""Django admin of people, workspaces, clusters and quotas."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from quotas.models import (
    AccessToken,
    Cluster,
    Membership,
    Node,
    Quota,
    Request,
    Reservation,
    User,
    Workspace,
)
from quotas.paging import UncountedPaginator


class MachineWritten(admin.ModelAdmin[Any]):
    """Rows that only the console writes: to be looked at, never changed by hand."""

    show_full_result_count = False
    paginator = UncountedPaginator

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class MembershipInline(admin.TabularInline[Membership, Any]):
    """Members, edited where they belong."""

    model = Membership
    autocomplete_fields = ("user", "workspace")
    extra = 0


class QuotaInline(admin.TabularInline[Quota, Workspace]):
    """A workspace's quotas."""

    model = Quota
    extra = 0
    prepopulated_fields = {"slug": ("name",)}
    fields = ("name", "slug", "cluster", "gpus", "gpus_by_type", "cpu_milli", "memory_mib", "most_jobs")


@admin.register(User)
class UserAdmin(DjangoUserAdmin[User]):
    """People; a job's owner is never deleted, only made inactive."""

    inlines = (MembershipInline,)
    list_display = ("username", "email", "is_active", "is_staff", "is_superuser", "last_login")
    fieldsets = (
        *(DjangoUserAdmin.fieldsets or ()),
        (_("Preferences"), {"fields": ("language", "time_zone", "theme")}),
    )


@admin.register(Workspace)
class WorkspaceAdmin(admin.ModelAdmin[Workspace]):
    """Workspaces with their members and quotas on one page."""

    inlines = (MembershipInline, QuotaInline)
    list_display = ("name", "slug", "created_at")
    search_fields = ("name", "slug")
    prepopulated_fields = {"slug": ("name",)}


@admin.register(Cluster)
class ClusterAdmin(admin.ModelAdmin[Cluster]):
    """Clusters, and whether they answer."""

    list_display = ("name", "slug", "backend", "admission", "enabled", "answered_at", "trouble")
    list_filter = ("backend", "admission", "enabled")
    search_fields = ("name", "slug")
    readonly_fields = ("answered_at", "trouble")


@admin.register(Node)
class NodeAdmin(admin.ModelAdmin[Node]):
    """Nodes; an admin says whether they may be used, the inventory says what they have."""

    list_display = ("name", "cluster", "cpu_milli", "memory_mib", "gpus", "schedulable", "why", "seen_at")
    list_filter = ("cluster", "schedulable")
    search_fields = ("name",)
    readonly_fields = ("cluster", "name", "cpu_milli", "memory_mib", "gpus", "gpu_list", "seen_at")
    actions = ("cordon", "uncordon")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    @admin.action(description=_("Start nothing more on the chosen nodes"))
    def cordon(self, request: HttpRequest, nodes: Any) -> None:
        """Running jobs go on."""
        nodes.update(schedulable=False, why=f"cordoned by {request.user.get_username()}")

    @admin.action(description=_("Use the chosen nodes again"))
    def uncordon(self, request: HttpRequest, nodes: Any) -> None:
        """The inverse of `cordon`."""
        nodes.update(schedulable=True, why="")


@admin.register(Quota)
class QuotaAdmin(admin.ModelAdmin[Quota]):
    """Quotas of all workspaces."""

    list_display = ("name", "workspace", "cluster", "gpus", "cpu_milli", "memory_mib", "most_jobs")
    list_filter = ("cluster", "workspace")
    list_select_related = ("workspace", "cluster")
    search_fields = ("name", "slug", "workspace__name")
    prepopulated_fields = {"slug": ("name",)}


@admin.register(Request)
class RequestAdmin(MachineWritten):
    """What waits, in the order of admission."""

    list_display = ("holder", "state", "cluster", "quota", "owner", "priority", "created_at")
    list_filter = ("state", "cluster")
    list_select_related = ("cluster", "quota", "owner")
    search_fields = ("holder", "owner__username")


@admin.register(Reservation)
class ReservationAdmin(MachineWritten):
    """What is held."""

    list_display = ("request", "active", "cluster", "quota", "amounts", "created_at", "released_at")
    list_filter = ("active", "cluster")
    list_select_related = ("request", "cluster", "quota")
    search_fields = ("request__holder",)


@admin.register(AccessToken)
class AccessTokenAdmin(MachineWritten):
    """Tokens: who has one and for what; the token itself is nowhere."""

    list_display = ("prefix", "name", "user", "scopes", "expires_at", "last_used_at", "revoked_at")
    list_select_related = ("user",)
    search_fields = ("prefix", "name", "user__username")

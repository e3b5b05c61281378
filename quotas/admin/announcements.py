"""Admin pages of banners, maintenance windows and admin actions."""

from __future__ import annotations

from django.contrib import admin

from quotas.admin.base import MachineWritten, ModelAdmin
from quotas.models import AdminAction, Banner


@admin.register(Banner)
class BannerAdmin(ModelAdmin[Banner]):
    """Banners on every page, for all, for a workspace or for a person."""

    list_display = ("text", "level", "workspace", "person", "from_at", "until_at")
    list_filter = ("level",)
    list_select_related = ("workspace", "person")
    autocomplete_fields = ("workspace", "person")


@admin.register(AdminAction)
class AdminActionAdmin(MachineWritten):
    """Admin actions; read-only."""

    list_display = ("at", "by", "address", "kind", "about", "why")
    list_filter = ("kind",)
    list_select_related = ("by",)
    search_fields = ("by__username__exact", "about__startswith")

"""What everybody is told, and what admins did beyond the everyday."""

from __future__ import annotations

from django.contrib import admin

from quotas.admin.base import MachineWritten, ModelAdmin
from quotas.models import Act, Banner


@admin.register(Banner)
class BannerAdmin(ModelAdmin[Banner]):
    """What everybody, a workspace or a person is told on every page."""

    list_display = ("text", "level", "workspace", "person", "from_at", "until_at")
    list_filter = ("level",)
    list_select_related = ("workspace", "person")
    autocomplete_fields = ("workspace", "person")


@admin.register(Act)
class ActAdmin(MachineWritten):
    """What admins did beyond the everyday; written once, by nobody's hand."""

    list_display = ("at", "by", "address", "kind", "about", "why")
    list_filter = ("kind",)
    list_select_related = ("by",)
    search_fields = ("by__username__exact", "about__startswith")

"""GPU types, and what they are called."""

from __future__ import annotations

from django.contrib import admin

from quotas.admin.base import TABLE_LIST, ModelAdmin
from quotas.models import GpuType


@admin.register(GpuType)
class GpuTypeAdmin(ModelAdmin[GpuType]):
    """GPU types and their other names."""

    change_list_template = TABLE_LIST
    list_display = ("name", "aliases")
    search_fields = ("name",)

"""Ready-made sizes, and what is paid for preemptible resources."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from quotas.admin.base import TABLE_LIST, ModelAdmin
from quotas.admin.units import UnitFields, amount_column, types_column
from quotas.models import Spec, SpotPrice


class PricedAdmin(UnitFields, ModelAdmin[Any]):
    """Rows whose prices are remembered one by one, so that they are deleted one by one too."""

    change_list_template = TABLE_LIST

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for row in queryset:
            row.delete()


@admin.register(Spec)
class SpecAdmin(PricedAdmin):
    """Ready-made sizes and what they cost."""

    list_display = (
        "name",
        "cluster",
        "workspace",
        "types",
        "cores",
        "memory",
        "price",
        "offered",
    )
    types, cores, memory = types_column, amount_column("cpu_milli"), amount_column("memory_mib")
    price = amount_column("price_micro")
    list_filter = ("offered", "cluster", "workspace")
    list_select_related = ("cluster", "workspace")
    search_fields = ("name", "description")


@admin.register(SpotPrice)
class SpotPriceAdmin(PricedAdmin):
    """Prices of preemptible resources, at all times or at some hours."""

    list_display = ("cluster", "gpu_type", "from_hour", "until_hour", "market", "price")
    market, price = amount_column("market_micro"), amount_column("price_micro")
    list_filter = ("cluster",)
    list_select_related = ("cluster",)

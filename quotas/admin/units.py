"""Columns of amounts in the admin's forms and lists, in the units that all other pages show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminDecimalFieldWidget, UnfoldAdminTextInputWidget

from quotas.limits.fields import Scaled, Types

MICRO: Final = 1_000_000

SCALES: Final[Mapping[str, tuple[Any, int, int]]] = {
    "cpu_milli": (gettext_lazy("CPU cores"), 1000, 3),
    "memory_mib": (gettext_lazy("Memory (GiB)"), 1024, 3),
    "person_cpu_milli": (gettext_lazy("CPU cores per user"), 1000, 3),
    "person_memory_mib": (gettext_lazy("Memory per user (GiB)"), 1024, 3),
    "price_micro": (gettext_lazy("Price per hour"), MICRO, 6),
    "market_micro": (gettext_lazy("Market price per hour"), MICRO, 6),
}
"""By columns, their label, how much of the column's unit is one of the page's, and decimal places."""

TYPES: Final = frozenset({"gpus_by_type", "gpus"})
"""Columns that count GPUs by type, where they are JSON."""


class UnitFields:
    """A ModelAdmin or inline whose forms have amounts in units that people use."""

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Return the field of a column."""
        if db_field.name in SCALES:
            label, scale, places = SCALES[db_field.name]
            widget = UnfoldAdminDecimalFieldWidget()
            required = not db_field.blank
            return Scaled(scale, places=places, label=label, required=required, widget=widget)
        if db_field.name in TYPES and isinstance(db_field, models.JSONField):
            return Types(
                label=gettext_lazy("GPUs by type"),
                required=False,
                widget=UnfoldAdminTextInputWidget(attrs={"placeholder": "A100: 8, V100: 4"}),
            )
        return super().formfield_for_dbfield(db_field, request, **kwargs)  # type: ignore[misc]


def amount_column(column: str) -> Callable[[Any, Any], str]:
    """Return the column of a list that shows an amount in its unit."""
    label, scale, places = SCALES[column]

    @admin.display(description=label, ordering=column)
    def show(_admin: Any, row: Any) -> str:
        return format_amount(getattr(row, column), scale, places)

    return show


def format_amount(value: int | None, scale: int, places: int = 3) -> str:
    """Return a stored amount in a larger unit; "" for none."""
    return str(Scaled(scale, places=places).prepare_value(value)) if value is not None else ""


@admin.display(description=gettext_lazy("GPUs by type"))
def types_column(_admin: Any, row: Any) -> str:
    """Show GPUs by type as the forms have them."""
    types = row.gpus_by_type if hasattr(row, "gpus_by_type") else row.gpus
    return str(Types().prepare_value(types) or "")

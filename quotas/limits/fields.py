"""Form fields of amounts, in the units that pages show: cores, GiB, currency, and types as in `A100: 8`."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from quotas.clusters import gputypes


class Scaled(forms.DecimalField):
    """A whole number in the database, shown in units of `scale`, with `places` behind the point."""

    def __init__(self, scale: int, *, places: int = 3, required: bool = False, **kwargs: Any) -> None:
        super().__init__(min_value=0, max_digits=15, decimal_places=places, required=required, **kwargs)
        self.scale, self.places = scale, places

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, int):
            shown = Decimal(value) / self.scale
            return (
                shown.quantize(Decimal(1))
                if shown == shown.to_integral()
                else round(shown, self.places).normalize()
            )
        return value

    def clean(self, value: Any) -> int | None:
        """In the database's own unit."""
        found = super().clean(value)
        return None if found is None else int(found * self.scale)


class Types(forms.CharField):
    """Numbers by type."""

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return ", ".join(f"{kind}: {count}" for kind, count in value.items())
        return value

    def clean(self, value: Any) -> dict[str, int]:
        """Types under their own names."""
        known, found = gputypes.names(), {}
        for part in filter(None, (each.strip() for each in str(value or "").split(","))):
            kind, colon, count = part.rpartition(":")
            if not colon or not kind.strip() or not count.strip().isdecimal():
                raise ValidationError(_("Enter types and numbers, such as “A100: 8, V100: 4”."))
            found[gputypes.canonical(kind.strip(), known)] = int(count)
        return found

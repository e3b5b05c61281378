"""Sparse answers: `?fields=id,name` leaves out all other fields of an object, or of each row of a list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ErrorDetail, ValidationError

from jobs.api.native.shapes import ApiShape

NAME: Final = "fields"
LONGEST: Final = 1000
FIELDS: Final = OpenApiParameter(
    NAME, str, description="only these fields, separated by commas; of a list, those of each row"
)


@dataclass(frozen=True, slots=True)
class Sparse:
    """A shape whose fields can be selected; `key` is the field of a list that has its rows."""

    shape: type[ApiShape]
    key: str = ""

    def select(self, query: Mapping[str, str]) -> frozenset[str] | None:
        """Return the selected fields, None for all.  Raises ValidationError for an unknown one."""
        text = query.get(NAME, "")
        if not text:
            return None
        names = frozenset(text[:LONGEST].split(","))
        known = self.shape.field_names()
        if unknown := sorted(names - known):
            sentence = _("Unknown field: %(name)s. Available: %(names)s.")
            params = {"name": unknown[0][:80], "names": ", ".join(sorted(known))}
            raise ValidationError({NAME: [ErrorDetail(sentence % params, code="unknown_field")]})
        return names

    def prune(self, data: Any, names: frozenset[str]) -> Any:
        """Return an answer's data with the selected fields alone."""
        if not self.key:
            return _prune(data, names)
        return {**data, self.key: [_prune(row, names) for row in data[self.key]]}


def _prune(row: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name in names}

"""Lists: the parameters of all of them, the rows of a page, and several values in one text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.db.models import QuerySet

from jobs.api.vendors.alibaba import page_slice
from jobs.api.vendors.operations import Call, Kind, Parameter

PAGE_SIZE: Final = 10
MOST_ROWS: Final = 1000
MOST_PAGES: Final = 1_000_000

BY_TIME: Final[Mapping[str, str]] = {"GmtCreateTime": "created_at", "GmtModifiedTime": "updated_at"}
"""Columns by which assets are sorted, by their names in requests; the first one is the default."""

PAGES: Final = (
    Parameter("PageNumber", Kind.INTEGER, default=1, least=1, most=MOST_PAGES),
    Parameter("PageSize", Kind.INTEGER, default=PAGE_SIZE, least=1, most=MOST_ROWS),
)


def list_parameters(columns: Mapping[str, str]) -> tuple[Parameter, ...]:
    """Return the parameters of a list that can be sorted by `columns`."""
    order = Parameter("Order", default="ASC", choices=("ASC", "DESC", "asc", "desc"))
    return (*PAGES, Parameter("SortBy", default=next(iter(columns)), choices=tuple(columns)), order)


def read_page(call: Call, rows: QuerySet[Any], columns: Mapping[str, str]) -> tuple[list[Any], int]:
    """Return the rows of the page that the call requests, and the number of all rows.  Two queries."""
    sign = "-" if call.values["Order"].upper() == "DESC" else ""
    rows = rows.order_by(f"{sign}{columns[call.values['SortBy']]}", f"{sign}id")
    return list(rows[page_slice(call)]), rows.count()


def split_values(text: str | None) -> frozenset[str]:
    """Return the values of a text that separates them by commas."""
    return frozenset(each.strip() for each in (text or "").split(",") if each.strip())

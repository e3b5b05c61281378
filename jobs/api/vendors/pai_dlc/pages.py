"""Numbered pages and sort orders, as the operations of PAI-DLC name them."""

from __future__ import annotations

from typing import Final

from jobs.api.vendors.operations import Kind, Parameter

LARGEST_PAGE: Final = 100

PAGE_NUMBER: Final = Parameter("PageNumber", Kind.INTEGER, default=1, least=1, most=1_000_000)
PAGE_SIZE: Final = Parameter("PageSize", Kind.INTEGER, default=10, least=1, most=LARGEST_PAGE)
ORDER: Final = Parameter("Order", choices=("asc", "desc"), default="desc")

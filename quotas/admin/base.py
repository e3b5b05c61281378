"""Base classes of the admin: django-unfold's, and one for rows that only the console writes.

Each `admin.py` takes its base classes from here, so that there is one place where the look is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from django.http import HttpRequest
from django.utils.functional import Promise

from quotas.admin.paging import UncountedPaginator
from quotas.models import User

if TYPE_CHECKING:  # unfold is published without types, and its classes are Django's with another look
    from django.contrib.admin import ModelAdmin, StackedInline, TabularInline

    def display(
        *, description: str | Promise, label: Mapping[str, str]
    ) -> Callable[[Callable[[Any, Any], tuple[str, str]]], Any]:
        """Describe a column whose value is (key, text), with a colour for each key."""
else:
    from unfold.admin import ModelAdmin, StackedInline, TabularInline
    from unfold.decorators import display

__all__ = [
    "DELETE_SELECTED",
    "TABLE_LIST",
    "MachineWritten",
    "ModelAdmin",
    "StackedInline",
    "TabularInline",
    "Uncounted",
    "display",
    "signed_in_admin",
    "stay_on_page",
]

DELETE_SELECTED: Final = "delete_selected"
"""Django's action that deletes the selected rows of a list."""

TABLE_LIST: Final = "administration/table_list.html"
"""The template of a list whose rows also come from a CSV and go into one."""


def signed_in_admin(request: HttpRequest) -> User:
    """Return the user who is signed in to the admin."""
    assert isinstance(request.user, User)
    return request.user


def stay_on_page(request: HttpRequest) -> None:
    """Have the page of a row shown again once it is saved, as its button "Save and continue editing" does."""
    posted = request.POST.copy()
    posted["_continue"] = "1"
    request.POST = posted  # type: ignore[assignment]


class Uncounted(ModelAdmin[Any]):
    """A table that may grow without end: its pages are turned without counting all of it."""

    show_full_result_count = False
    list_max_show_all = 0
    paginator = UncountedPaginator


class MachineWritten(Uncounted):
    """Rows that only the console writes: to be looked at, never changed by hand."""

    list_per_page = 50  # a row of a page takes two milliseconds

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

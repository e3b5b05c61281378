"""The admin as a whole: how one gets in, what its pages may load, how it looks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from csp.decorators import csp_update
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.templatetags.static import static
from django.urls import reverse

from quotas.access import is_active
from quotas.models import User

if TYPE_CHECKING:  # unfold is published without types
    from django.contrib.admin import AdminSite as Site
else:
    from unfold.sites import UnfoldAdminSite as Site

POLICY = {"script-src": ["'self'", "'unsafe-eval'"], "style-src-attr": ["'unsafe-inline'"]}
"""What unfold needs beside the console's own policy: Alpine evaluates the expressions in its attributes, and
widths are style attributes.  Still no inline script, no style element, and nothing from elsewhere.
"""


class ConsoleAdminSite(Site):
    """Django admin for the console's admins, who sign in where everybody does."""

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The console's own sign-in page; whoever is signed in and is no admin is told so."""
        if self.has_permission(request):
            return super().login(request, extra_context)
        if is_active(request.user):
            raise PermissionDenied
        wanted = request.GET.get(REDIRECT_FIELD_NAME) or reverse("admin:index", current_app=self.name)
        return redirect_to_login(wanted)

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Colours come from a style sheet of ours: unfold would write a style element into every page."""
        return {**super().each_context(request), "colors": {}, "border_radius": None}

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Any:
        """Every page of the admin has the admin's policy."""
        return csp_update(POLICY)(super().admin_view(view, cacheable))


def stylesheet(request: HttpRequest) -> str:
    """The console's colours, for unfold."""
    return static("console/css/admin.css")


def mark(request: HttpRequest) -> str:
    """The console's icon."""
    return static("console/icons/mark.svg")


def theme(request: HttpRequest) -> str | None:
    """Light or dark as the person chose; None follows the system."""
    chosen = request.user.theme if isinstance(request.user, User) else User.Theme.AUTO
    return chosen if chosen != User.Theme.AUTO else None

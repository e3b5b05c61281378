"""Quotas and the accounts of a cluster's own scheduler: what would change one way or the other, and doing it.

Only what was shown is done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods

from console.site_yaml import accounts
from console.site_yaml.accounts import Imported, NoAccounts, NotChosen
from console.site_yaml.parser import Wrong
from jobs.backends.base import Unreachable
from jobs.clusters import NoSuchBackend
from quotas.audit import action_record, origin
from quotas.models import AdminAction, Cluster


@dataclass(frozen=True, slots=True)
class Direction:
    """One of the two ways; `run` raises what it can't."""

    run: Callable[..., Imported]
    title: Promise
    about: Promise
    button: Promise
    same: Promise


IMPORT: Final = Direction(
    accounts.import_quotas,
    gettext_lazy("Import quotas from accounts"),
    gettext_lazy("Updates workspaces, members and quotas from this cluster's accounts. Nothing is removed."),
    gettext_lazy("Import"),
    gettext_lazy("No changes: everything matches the accounts."),
)
EXPORT: Final = Direction(
    accounts.export_limits,
    gettext_lazy("Write quotas to accounts"),
    gettext_lazy("Sets the limits of this cluster's accounts from their quotas. No accounts are created."),
    gettext_lazy("Write"),
    gettext_lazy("No changes: all accounts match the quotas."),
)


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest, slug: str, direction: Direction) -> HttpResponse:
    """Show what would change; do what was shown."""
    actor = action_record.actor_of(request)
    cluster = get_object_or_404(Cluster, slug=slug)
    run = partial(direction.run, cluster, by=origin.current())
    found, trouble = _try_import(partial(run, dry=True))
    if request.method == "POST" and found is not None and request.POST.get("shown") == found.applied.digest:
        found, trouble = _try_import(run)
        if found is not None:
            count = len(found.applied.changes)
            action_record.write_down(actor, AdminAction.Kind.QUOTAS, cluster.name, to=cluster, accounts=count)
            text = ngettext("%(count)s change was made.", "%(count)s changes were made.", count)
            messages.success(request, text % {"count": count})
            return redirect(request.path)
    context = {
        **admin.site.each_context(request),
        "title": direction.title,
        "cluster": cluster,
        "direction": direction,
        "writes": direction is EXPORT,
        "found": found,
        "trouble": trouble,
        "moved": request.method == "POST" and found is not None,
    }
    status = HTTPStatus.CONFLICT if request.method == "POST" else HTTPStatus.OK
    return TemplateResponse(request, "administration/accounts.html", context, status=status)


def _try_import(run: Callable[[], Imported]) -> tuple[Imported | None, str]:
    """Return the result of an import, or why it failed."""
    try:
        return run(), ""
    except NoSuchBackend:
        return None, str(NoAccounts())
    except (NoAccounts, NotChosen, Unreachable, Wrong) as error:
        return None, str(error)


def import_page(request: HttpRequest, slug: str) -> Any:
    """Make quotas as the accounts are."""
    return page(request, slug, IMPORT)


def export_page(request: HttpRequest, slug: str) -> Any:
    """Write limits of quotas into the accounts."""
    return page(request, slug, EXPORT)

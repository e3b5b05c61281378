"""Search of the command palette (Ctrl-K): jobs, settings, tokens and keys, admin pages, documentation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypedDict

from django.contrib import admin
from django.db.models import Q
from django.http import HttpResponseBase, JsonResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from console.documentation import pages
from jobs import messages
from jobs.search.job_pages import find_jobs
from jobs.search.query import JobQuery, Term
from jobs.states import State
from jobs.web.http import SignedIn, signed_in
from quotas.models import AccessKey, AccessToken

MOST: Final = 8
"""Results of each kind."""


class Item(TypedDict):
    """A result, as `static/console/palette.js` shows it."""

    label: str
    url: str
    hint: str
    icon: str


@require_safe
@signed_in
def search(request: SignedIn) -> HttpResponseBase:
    """Return `{"items": [Item]}`: jobs newest first, then the other kinds."""
    text = request.GET.get("q", "").strip()[:256]
    items = [
        *_jobs(request, text),
        *_pages(request, text),
        *_tokens(request, text),
        *_access_keys(request, text),
        *_documents(text),
    ]
    return JsonResponse({"items": items if text else []})


def _jobs(request: SignedIn, text: str) -> Iterator[Item]:
    """Yield jobs by a part of their name, or by any id."""
    query = JobQuery((Term("", text),))
    for job in find_jobs(request.user, query, MOST) if text else ():
        hint = f"{messages.state_label(State(job.state))} · {job.public_id}"
        yield Item(label=job.name, url=reverse("job", args=[job.public_id]), hint=hint, icon="list-details")


def _pages(request: SignedIn, text: str) -> list[Item]:
    """Return sections of the settings, and admin pages that the person may open, by words of their title."""
    settings = (
        ("settings", _("Appearance & region")),
        ("sign_in_settings", _("Sign-in & security")),
        ("settings_ssh_keys", _("SSH keys")),
        ("settings_tokens", _("Access tokens")),
        ("settings_access_keys", _("Access keys")),
        ("settings_secrets", _("Secrets")),
        ("channels", _("Notifications")),
        ("settings_workspaces", _("Workspaces")),
    )
    found = [
        Item(label=title, url=reverse(name), hint=_("Settings"), icon="settings") for name, title in settings
    ]
    if request.user.is_staff:
        site: Any = admin.site  # unfold's, whose sidebar has what the person may open
        listed = (page for group in site.get_sidebar_list(request) for page in group["items"])
        found += [
            Item(label=str(page["title"]), url=page["link"], hint=_("Administration"), icon="shield-lock")
            for page in listed
        ]
    words = text.casefold().split()
    return [item for item in found if _fits(f"{item['hint']} {item['label']}", words)][:MOST]


def _fits(title: str, words: list[str]) -> bool:
    return all(word in title.casefold() for word in words)


def _tokens(request: SignedIn, text: str) -> Iterator[Item]:
    """Yield the person's own access tokens by name."""
    rows = AccessToken.objects.filter(user=request.user, revoked_at=None, name__icontains=text)
    for row in rows[:MOST]:
        yield Item(label=str(row), url=reverse("settings_tokens"), hint=_("Access tokens"), icon="key")


def _access_keys(request: SignedIn, text: str) -> Iterator[Item]:
    """Yield the person's own access keys by name or id."""
    rows = AccessKey.objects.filter(user=request.user, revoked_at=None)
    for row in rows.filter(Q(name__icontains=text) | Q(key_id__icontains=text))[:MOST]:
        yield Item(label=str(row), url=reverse("settings_access_keys"), hint=_("Access keys"), icon="key")


def _documents(text: str) -> Iterator[Item]:
    """Yield headings of the documentation."""
    for heading in pages.find_headings(text, MOST):
        yield Item(label=heading.text, url=heading.url, hint=_("Documentation"), icon="help")

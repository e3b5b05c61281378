"""Context of every page.  Computed only when a template uses it: fragments never do."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext as _

from console.views.banners import list_notices
from jobs.client.wheel_builder import version
from jobs.notifications import inbox
from quotas.access import administered_by, workspaces_of
from quotas.models import User

MOST_WORKSPACES = 200


def frame(request: HttpRequest) -> dict[str, Any]:
    """The navigation, the workspaces and what holds for the whole console, for templates/base.html."""
    return {
        "version": version(),
        "notices": SimpleLazyObject(lambda: list_notices(request)),
        "nav": SimpleLazyObject(lambda: navigation(request)),
        "workspaces": SimpleLazyObject(lambda: workspaces(request)),
        "unread_notifications": SimpleLazyObject(lambda: unread(request)),
    }


def unread(request: HttpRequest) -> int:
    """Return how many notifications the person has not read."""
    return inbox.unread(request.user) if isinstance(request.user, User) else 0


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """The person's pages, in the order in which work goes; none before signing in."""
    if not request.user.is_authenticated:
        return []
    listed = [
        ("home", _("Home"), "home", "g h"),
        ("job_new", _("New job"), "plus", "n"),
        ("start", _("Launch"), "bolt", "g i"),
        ("jobs", _("Jobs"), "list-details", "g j"),
        ("drafts", _("Drafts"), "file-pencil", "g d"),
        ("assets", _("Assets"), "database", "g t"),
        ("nodes", _("Nodes"), "server", "g n"),
        ("quotas", _("Quotas"), "chart-line", "g q"),
        ("reports", _("Reports"), "activity", "g r"),
        ("settings", _("Settings"), "settings", "g s"),
    ]
    if administered_by(request.user).exists():
        listed.insert(-1, ("queue", _("Queue"), "clock", "g w"))
        listed.insert(-1, ("audit", _("Audit"), "history", "g u"))
    if request.user.is_staff:
        listed.append(("admin:index", _("Administration"), "shield-lock", "g a"))
    here = request.resolver_match.url_name if request.resolver_match else ""
    return [
        {"url": url, "label": label, "icon": icon, "key": key, "active": name == _section(here)}
        for name, label, icon, key in listed
        if (url := _address(name))
    ]


SECTIONS = {
    "asset": "assets",
    "asset_new": "assets",
    "asset_edit": "assets",
    "asset_version_new": "assets",
    "asset_version_choose": "assets",
    "job": "jobs",
    "job_opening": "jobs",
    "job_history": "jobs",
    "job_difference": "job_new",
    "job_form_panel": "job_new",
    "job_form_dry_run_new": "job_new",
    "job_form_dry_run": "job_new",
    "jobs_others": "jobs",
    "jobs_others_log": "jobs",
    "sweeps": "jobs",
    "sweep": "jobs",
    "draft_versions": "drafts",
    "start_template": "start",
    "templates": "start",
    "template": "start",
    "template_new": "start",
    "template_edit": "start",
    "template_change": "start",
    "queue_change": "queue",
    **dict.fromkeys(
        (
            "workspace_quotas",
            "workspace_quota_new",
            "workspace_quota",
            "workspace_policy_new",
            "workspace_policy",
        ),
        "quotas",
    ),
    "members": "settings",
    "settings_access_keys": "settings",
    "settings_secrets": "settings",
    "settings_ssh_keys": "settings",
    "settings_tokens": "settings",
    "settings_workspaces": "settings",
    "sign_in_settings": "settings",
    "channels": "settings",
    "channel": "settings",
    "channel_new": "settings",
    "workspace_channels": "settings",
    "workspace_channel_new": "settings",
}
"""Pages that stand under another one in the navigation."""


def _section(name: str | None) -> str:
    return SECTIONS.get(name or "", name or "")


def _address(name: str) -> str:
    try:
        return reverse(name)
    except NoReverseMatch:
        return ""


def workspaces(request: HttpRequest) -> list[dict[str, Any]]:
    """The person's workspaces, each leading to its jobs; the one that the page is about is active."""
    rows = list(workspaces_of(request.user).order_by("name")[:MOST_WORKSPACES])
    wanted = request.GET.get("workspace", "")
    every = {"name": _("All workspaces"), "url": reverse("jobs"), "active": not wanted}
    each = [
        {"name": row.title, "url": f"{reverse('jobs')}?workspace={row.slug}", "active": row.slug == wanted}
        for row in rows
    ]
    if len(each) == 1:
        each[0]["active"] = True
        return each
    return [every, *each] if each else []

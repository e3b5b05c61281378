"""The admin as a whole: how one gets in, what its pages may load, how it looks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from csp.decorators import csp_update
from django.apps import AppConfig
from django.contrib.admin import autodiscover
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.views import redirect_to_login
from django.core.checks import CheckMessage
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.templatetags.static import static
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from quotas.access import administers, is_active
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
        """The console's own sign-in page; it rejects whoever is signed in and is no admin."""
        if self.has_permission(request):
            return super().login(request, extra_context)
        if is_active(request.user):
            raise PermissionDenied
        wanted = request.GET.get(REDIRECT_FIELD_NAME) or reverse("admin:index", current_app=self.name)
        return redirect_to_login(wanted)

    def check(self, app_configs: Sequence[AppConfig] | None) -> list[CheckMessage]:
        """Check every page, which may not have been imported yet."""
        autodiscover()
        return list(super().check(app_configs))

    def extra_urls(self) -> list[URLPattern]:
        """Pages about the whole console, before those of single tables (unfold asks for them)."""
        from console.administration import (  # noqa: PLC0415  # they need this site
            accounts,
            day,
            incidents,
            interruptions,
            quota_tree,
            retention,
            support,
            tables,
            virtual_clusters,
        )

        return [
            path("health/", self.admin_view(day.health_parts), name="health_parts"),
            path("tree/", self.admin_view(quota_tree.index), name="quota_trees"),
            path("tree/<slug:slug>/", self.admin_view(quota_tree.tree), name="quota_tree"),
            path(
                "clusters/<slug:slug>/accounts/", self.admin_view(accounts.import_page), name="accounts_take"
            ),
            path(
                "clusters/<slug:slug>/accounts/write/",
                self.admin_view(accounts.export_page),
                name="accounts_give",
            ),
            path(
                "clusters/<slug:slug>/virtual-clusters/",
                self.admin_view(virtual_clusters.page),
                name="virtual_clusters",
            ),
            path("tables/", self.admin_view(tables.page), name="site"),
            path("tables/download/", self.admin_view(tables.download), name="site_download"),
            path("tables/<slug:name>/", self.admin_view(tables.page), name="table"),
            path("tables/<slug:name>/download/", self.admin_view(tables.download), name="table_download"),
            path("interruptions/", self.admin_view(interruptions.page), name="interruptions"),
            path("retention/", self.admin_view(retention.page), name="retention"),
            path("retention/<slug:slug>/", self.admin_view(retention.page), name="retention_of"),
            path("support-bundle/", self.admin_view(support.download), name="support_bundle"),
            path("incidents/", self.admin_view(incidents.page), name="incidents"),
            path("incidents/<slug:name>", self.admin_view(incidents.act), name="incident"),
        ]

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """The day, for the console's admins; the tables that they may see, for other staff."""
        from console.administration import day  # noqa: PLC0415  # it needs this site

        if isinstance(request.user, User) and administers(request.user):
            return day.page(request)
        return super().index(request, extra_context)

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Colours come from a style sheet of ours: unfold would write a style element into every page."""
        return {**super().each_context(request), "colors": {}, "border_radius": None}

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Return the applications and their models by name, each name translated once.

        Django sorts lazy names: each comparison translates both, a third of the time of a small page.
        """
        apps = self._build_app_dict(request, app_label)
        for app in apps.values():
            for model in app["models"]:
                model["name"] = str(model["name"])
            app["models"].sort(key=itemgetter("name"))
        return sorted(apps.values(), key=lambda app: str(app["name"]).lower())

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Any:
        """Every page of the admin has the admin's policy."""
        return csp_update(POLICY)(super().admin_view(view, cacheable))


def stylesheet(request: HttpRequest) -> str:
    """The console's colours, for unfold."""
    return static("console/css/admin.css")


def script(request: HttpRequest) -> str:
    """Return the address of the script that gives unfold's pages landmarks and names."""
    return static("console/admin.js")


def mark(request: HttpRequest) -> str:
    """The console's icon."""
    return static("console/icons/mark.svg")


def theme(request: HttpRequest) -> str | None:
    """Light or dark as the person chose; None follows the system."""
    chosen = request.user.theme if isinstance(request.user, User) else User.Theme.AUTO
    return chosen if chosen != User.Theme.AUTO else None


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the navigation by tasks of an admin; every table is behind "All applications"."""
    return [
        _group(
            request,
            _("Operations"),
            (_("Overview"), "dashboard", "index", ""),
            (_("Quota tree"), "account_tree", "quota_trees", ""),
            (_("Incidents"), "emergency_home", "incidents", ""),
            (_("Interruptions"), "report", "interruptions", ""),
            (_("Retention"), "auto_delete", "retention", ""),
            (_("Maintenance"), "construction", "quotas_maintenance_changelist", "quotas.view_maintenance"),
            (_("Banners"), "campaign", "quotas_banner_changelist", "quotas.view_banner"),
        ),
        _group(
            request,
            _("Workloads"),
            (_("Jobs"), "list_alt", "jobs_job_changelist", "jobs.view_job"),
            (_("Requests"), "hourglass_top", "quotas_request_changelist", "quotas.view_request"),
            (_("Reservations"), "lock_clock", "quotas_reservation_changelist", "quotas.view_reservation"),
            (_("Nodes"), "dns", "quotas_node_changelist", "quotas.view_node"),
            (_("Clusters"), "hub", "quotas_cluster_changelist", "quotas.view_cluster"),
            (_("Instance specs"), "memory_alt", "quotas_spec_changelist", "quotas.view_spec"),
        ),
        _group(
            request,
            _("Quotas and prices"),
            (_("Resource quotas"), "pie_chart", "quotas_quota_changelist", "quotas.view_quota"),
            (_("Hourly usage"), "bar_chart", "quotas_usagehour_changelist", "quotas.view_usagehour"),
            (_("GPU types"), "memory", "quotas_gputype_changelist", "quotas.view_gputype"),
            (_("Prices"), "payments", "quotas_spotprice_changelist", "quotas.view_spotprice"),
            ("site.yaml", "upload_file", "site", ""),
        ),
        _group(
            request,
            _("Assets"),
            (_("Images"), "deployed_code", "jobs_image_changelist", "jobs.view_image"),
            (_("Datasets"), "database", "jobs_dataset_changelist", "jobs.view_dataset"),
            (_("Code sources"), "code", "jobs_codesource_changelist", "jobs.view_codesource"),
            (_("VPCs"), "lan", "jobs_vpc_changelist", "jobs.view_vpc"),
            (_("RAM roles"), "badge", "jobs_ramrole_changelist", "jobs.view_ramrole"),
            (_("Storage"), "folder_managed", "jobs_sitestorage_changelist", "jobs.view_sitestorage"),
        ),
        _group(
            request,
            _("People"),
            (_("People"), "person", "quotas_user_changelist", "quotas.view_user"),
            (_("Local groups"), "group", "quotas_localgroup_changelist", "quotas.view_localgroup"),
            (_("Workspaces"), "groups", "quotas_workspace_changelist", "quotas.view_workspace"),
            (_("Members"), "group", "quotas_membership_changelist", "quotas.view_membership"),
            (
                _("Group mappings"),
                "group_work",
                "quotas_groupmapping_changelist",
                "quotas.view_groupmapping",
            ),
            (
                _("Service accounts"),
                "smart_toy",
                "quotas_serviceaccount_changelist",
                "quotas.view_serviceaccount",
            ),
            (_("Log sinks"), "output", "jobs_logsink_changelist", "jobs.view_logsink"),
            (_("Access tokens"), "key", "quotas_accesstoken_changelist", "quotas.view_accesstoken"),
            (_("Access keys"), "encrypted", "quotas_accesskey_changelist", "quotas.view_accesskey"),
            (_("SSH keys"), "vpn_key", "jobs_sshkey_changelist", "jobs.view_sshkey"),
            (_("Sessions"), "login", "jobs_accesssession_changelist", "jobs.view_accesssession"),
            (_("Audit trail"), "history", "quotas_auditentry_changelist", "quotas.view_auditentry"),
            (_("Admin actions"), "gavel", "quotas_adminaction_changelist", "quotas.view_adminaction"),
        ),
    ]


def _group(request: HttpRequest, title: str, *items: tuple[str, str, str, str]) -> dict[str, Any]:
    """Return the items (label, symbol, address, permission) that the user may open; "" is for admins."""
    shown = [
        {"title": label, "icon": icon, "link": reverse(f"admin:{name}")}
        for label, icon, name, permission in items
        if _may_open(request, permission)
    ]
    return {"title": title, "separator": True, "items": shown}


def _may_open(request: HttpRequest, permission: str) -> bool:
    user = request.user
    return user.has_perm(permission) if permission else isinstance(user, User) and administers(user)

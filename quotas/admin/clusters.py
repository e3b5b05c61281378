"""Clusters, and what their GPUs are called."""

from __future__ import annotations

import os
import pwd

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from quotas.admin.base import TABLE_LIST, ModelAdmin
from quotas.admin.forms import ClusterForm
from quotas.clusters import pace
from quotas.models import Cluster, GpuType, unixnames


@admin.register(Cluster)
class ClusterAdmin(ModelAdmin[Cluster]):
    """Clusters, and whether they answer."""

    list_display = ("name", "slug", "region", "backend", "admission", "enabled", "answered_at", "trouble")
    list_filter = ("backend", "admission", "enabled")
    search_fields = ("name", "slug")
    readonly_fields = ("answered_at", "trouble", "looks", "container_engine", "runs_as", "accounts")
    form = ClusterForm

    @admin.display(description=_("jobs run as"))
    def runs_as(self, cluster: Cluster) -> str:
        """Whether people's jobs are told apart there."""
        if cluster.backend != unixnames.CHOOSING:
            return "–"
        if unixnames.needed(cluster) and cluster.config["identity"] == unixnames.BY_TOKENS:
            return gettext(
                "Each job runs as its owner's own UNIX user (People, UNIX name), by tokens that the console "
                "makes."
            )
        if unixnames.needed(cluster):
            return gettext("Each job runs as its owner's own UNIX user (People, UNIX name).")
        told = gettext(
            "Everything runs as the console's own UNIX user, %(user)s: whoever submits here can read and end "
            "everybody's jobs."
        )
        return told % {"user": pwd.getpwuid(os.geteuid()).pw_name}

    @admin.display(description=_("accounts"))
    def accounts(self, cluster: Cluster) -> str:
        """The way to the accounts that the engine itself keeps."""
        if not cluster.slug or cluster.backend != unixnames.CHOOSING:
            return "–"
        address = reverse("admin:accounts_take", args=[cluster.slug])
        return format_html(
            '<a class="house-button" href="{}">{}</a>',
            address,
            gettext("Import quotas from accounts, or write them back"),
        )

    @admin.display(description=_("container engine"))
    def container_engine(self, cluster: Cluster) -> str:
        """Which container engine runs images there, or why none does."""
        found = (cluster.facilities or {}).get("engines")
        if found is None:
            return "–"
        engines = dict(sorted(found.items()))  # a database keeps no order of keys
        if used := [name for name, state in engines.items() if state == "used"]:
            return ", ".join(used)
        if not engines:
            return gettext("None: the cluster's settings switch it off.")
        told = {
            "absent": gettext("%(engine)s is not installed"),
            "silent": gettext("%(engine)s is installed, but does not answer: is its daemon running?"),
        }
        causes = [told[state] % {"engine": name} for name, state in engines.items()]
        return gettext("None: %(causes)s") % {"causes": "; ".join(causes)}

    @admin.display(description=_("looks"))
    def looks(self, cluster: Cluster) -> str:
        """How often the console looks at it, and why."""
        if cluster.look_ms is None:
            return gettext("As often as anything is due.")
        took_s = cluster.look_ms / 1000
        told = gettext("Every %(seconds).0f s: the last look took %(took).2f s.")
        return told % {"seconds": pace.interval_s(took_s), "took": took_s}


@admin.register(GpuType)
class GpuTypeAdmin(ModelAdmin[GpuType]):
    """GPU types and their other names."""

    change_list_template = TABLE_LIST
    list_display = ("name", "aliases")
    search_fields = ("name",)

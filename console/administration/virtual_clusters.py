"""Virtual clusters of OpenPAI as quotas of a cluster: pasted or uploaded, shown first, done as shown."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from console.site_yaml.accounts import Imported, import_tree
from console.site_yaml.parser import Wrong
from console.site_yaml.virtual_clusters import WrongAnswer, parse_virtual_clusters
from quotas.audit import action_record, origin
from quotas.models import AdminAction, Cluster

MOST_BYTES: Final = 1 << 20


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest, slug: str) -> HttpResponse:
    """Take the virtual clusters, show what would change, and do what was shown."""
    actor = action_record.actor_of(request)
    cluster = get_object_or_404(Cluster, slug=slug)
    found: Imported | None = None
    problems: tuple[str, ...] = ()
    text = ""
    if request.method == "POST":
        text, problems = _read_text(request)
        if not problems:
            found, problems = _run(cluster, text, dry=True)
        if found is not None and request.POST.get("shown") == found.applied.digest:
            found, problems = _run(cluster, text, dry=False)
            if found is not None:
                count = len(found.applied.changes)
                action_record.write_down(
                    actor, AdminAction.Kind.QUOTAS, cluster.name, to=cluster, virtual_clusters=count
                )
                done = ngettext("%(count)s change was made.", "%(count)s changes were made.", count)
                messages.success(request, done % {"count": count})
                return redirect("admin:quota_tree", cluster.slug)
    context: dict[str, Any] = {
        **admin.site.each_context(request),
        "title": _("Import virtual clusters of OpenPAI"),
        "cluster": cluster,
        "found": found,
        "problems": problems,
        "text": text,
        "moved": found is not None and "shown" in request.POST,
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if problems else HTTPStatus.OK
    return TemplateResponse(request, "administration/virtual_clusters.html", context, status=status)


def _read_text(request: HttpRequest) -> tuple[str, tuple[str, ...]]:
    """Return the text that was pasted or uploaded, and why it can't be read."""
    upload = request.FILES.get("file")
    if upload is None:
        return request.POST.get("text", ""), ()
    if (upload.size or 0) > MOST_BYTES:
        return "", (_("The file is larger than %(most)s MiB.") % {"most": MOST_BYTES >> 20},)
    try:
        return upload.read().decode("utf-8-sig"), ()
    except UnicodeDecodeError:
        return "", (_("The file is not UTF-8 text."),)


def _run(cluster: Cluster, text: str, *, dry: bool) -> tuple[Imported | None, tuple[str, ...]]:
    """Return the result of the import, or why it failed."""
    name = f"virtual clusters of {cluster.slug}"
    try:
        tree = parse_virtual_clusters(text)
        return import_tree(cluster, tree, dry=dry, name=name, by=origin.current()), ()
    except WrongAnswer as error:
        return None, error.problems
    except Wrong as error:
        return None, (str(error),)

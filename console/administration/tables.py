"""site.yaml and tables as CSV: what a file would change, doing it, and the files of what there is.

Only what was shown is done.
"""

from __future__ import annotations

from http import HTTPStatus

from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import BadRequest
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.text import capfirst
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_safe
from unfold.widgets import UnfoldAdminFileFieldWidget

from console.site_yaml import export, parser, tables
from console.site_yaml.import_plan import apply
from console.site_yaml.parser import Wrong
from console.site_yaml.tables import TABLES, Table
from jobs.dialects.base import MAX_BYTES, Refused
from jobs.dialects.source import decode
from quotas import audit
from quotas.accounts import first_links
from quotas.audit import action_record, origin
from quotas.models import Action


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest, name: str = "") -> HttpResponse:
    """Show what a file would change, or all that is wrong with it; do what was shown."""
    action_record.actor_of(request)
    table = _table(name)
    context = {
        **admin.site.each_context(request),
        "title": _title(table) if table else "site.yaml",
        "name": name,
        "columns": table.columns if table else (),
        "file": UnfoldAdminFileFieldWidget().render("file", None, {"id": "file"}),
        "tables": [(each, _title(of_name)) for each, of_name in TABLES.items()],
    }
    status = HTTPStatus.OK
    if request.method == "POST":
        confirmed = "apply" in request.POST
        try:
            context["text"] = text = _text(request)
            read = tables.read(text, table) if table else parser.read(text)
            with transaction.atomic():
                applied = apply(read, name=f"{name}.csv" if table else "site.yaml", by=origin.current())
                moved = confirmed and request.POST.get("shown") != applied.digest
                done = confirmed and not moved and ("drain" in request.POST or not applied.drains)
                transaction.set_rollback(not done)
        except Wrong as wrong:
            context["faults"] = wrong.faults
            status = HTTPStatus.UNPROCESSABLE_ENTITY
        else:
            if done:
                count = len(applied.changes)
                text = ngettext("%(count)s change was made.", "%(count)s changes were made.", count)
                messages.success(request, text % {"count": count})
                way = first_links.parse_delivery(request.POST.get("links", ""))
                links = first_links.deliver(applied.people, way)
                if not links:
                    return redirect(request.path)
                context |= {"text": "", "links": links}
            else:
                context |= {"applied": applied, "moved": moved, "ways": first_links.list_deliveries()}
                status = HTTPStatus.CONFLICT if confirmed else HTTPStatus.OK
    return TemplateResponse(request, "administration/tables.html", context, status=status)


@require_safe
def download(request: HttpRequest, name: str = "") -> HttpResponse:
    """Send site.yaml, or the rows of a table that the filters of its list leave."""
    action_record.actor_of(request)
    table = _table(name)
    if table is None:
        content, kind, filename = export.export().encode(), "application/yaml", "site.yaml"
    else:
        try:
            rows = admin.site.get_model_admin(table.model).get_changelist_instance(request)
        except IncorrectLookupParameters as error:
            raise BadRequest("There is no such filter.") from error
        content = table.export(rows.get_queryset(request))
        kind, filename = "text/csv; charset=utf-8", f"{name}.csv"
    audit.log(Action.EXPORT, details={"what": table.model.__name__ if table else filename})
    headers = {
        "Content-Type": kind,
        "Content-Disposition": f'attachment; filename="{filename}"',
        "Cache-Control": "no-store",
    }
    return HttpResponse(content, headers=headers)


def _table(name: str) -> Table | None:
    """The table of that name; none is the whole site.yaml.  Raises Http404."""
    if name and name not in TABLES:
        raise Http404
    return TABLES.get(name)


def _title(table: Table) -> str:
    return str(capfirst(table.model._meta.verbose_name_plural))  # noqa: SLF001  # Django's name for it


def _text(request: HttpRequest) -> str:
    """The file that was chosen, or what stands in the field.  Raises Wrong."""
    file = request.FILES.get("file")
    try:
        text = decode(file.read(MAX_BYTES + 1)) if file else request.POST.get("text", "")
    except Refused as refused:
        raise parser.unreadable(refused) from None
    return text.replace("\r\n", "\n")

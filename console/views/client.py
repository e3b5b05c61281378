"""The command line for download, as the console's own sources make it."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from jobs.client import wheel_builder


@require_safe
@cache_control(max_age=3600, public=True)
def client(request: HttpRequest, name: str) -> HttpResponseBase:
    """Return the wheel; it has sources and translations, and nothing of what there is here."""
    if name != wheel_builder.file_name():
        raise Http404
    return HttpResponse(wheel_builder.wheel(), content_type="application/zip")

"""The documentation in the browser, for everybody who is signed in."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.utils.http import content_disposition_header
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from console.documentation import pages
from jobs.web.http import SignedIn, page, signed_in


@require_safe
@signed_in
def show(request: SignedIn, name: str = pages.FIRST) -> HttpResponseBase:
    """Show a page of the documentation, or send a file to which one links."""
    if name in pages.list_files():
        path = pages.DOCS / name
        as_download = {
            "Content-Disposition": content_disposition_header(as_attachment=True, filename=path.name)
        }
        return HttpResponse(path.read_bytes(), content_type="application/octet-stream", headers=as_download)
    if name not in pages.list_pages():
        raise Http404
    return page(request, "console/documentation.html", {"shown": pages.render(name)})


@require_safe
@cache_control(max_age=3600, public=True)
def image(request: HttpRequest, name: str) -> HttpResponseBase:
    """Send a picture of the documentation."""
    path = pages.DOCS / "images" / f"{name}.png"
    if not path.is_file():
        raise Http404
    return HttpResponse(path.read_bytes(), content_type="image/png")

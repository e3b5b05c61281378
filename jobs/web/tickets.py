"""Pages that links in messages lead to: an address is confirmed, or wants no more.  Nobody has to sign in.

Opening them changes nothing, since programs that look through mail open every link; the button does.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from jobs.notifications import channels, composing


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def confirm(request: HttpRequest, ticket: str) -> HttpResponse:
    """Whoever reads the address wants to be told there."""
    if request.method == "POST":
        channel = channels.confirm(ticket)
    else:
        channel = composing.channel_of(ticket, "on", days=composing.CONFIRM_DAYS)
    return _page(request, "confirm", channel is not None, channel.shown if channel else "")


@csrf_exempt  # mail programs POST here by themselves: RFC 8058; the ticket is the proof
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def unsubscribe(request: HttpRequest, ticket: str) -> HttpResponse:
    """Whoever reads the address wants no more."""
    if request.method == "POST":
        channel = channels.unsubscribe(ticket)
    else:
        channel = composing.channel_of(ticket, "off")
    return _page(request, "unsubscribe", channel is not None, channel.shown if channel else "")


def _page(request: HttpRequest, what: str, good: bool, shown: str) -> HttpResponse:
    context = {"what": what, "good": good, "done": request.method == "POST", "shown": shown}
    return render(request, "notices/ticket.html", context, status=200 if good else 404)

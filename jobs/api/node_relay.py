"""The relay API of programs on nodes that share no folder with the console.

The token of the attempt authenticates them; it is good for nothing else, and no session and no other token is
accepted here.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from jobs.api.native.auth import bearer
from jobs.scheduling import relay


@require_GET
@never_cache
def answer_node(request: HttpRequest) -> HttpResponse:
    """Answer a node that checks whether it reaches the console."""
    return JsonResponse({"console": True})


@csrf_exempt  # no browser comes here, and no cookie counts
@require_POST
@never_cache
def take_delivery(request: HttpRequest, key: str) -> HttpResponse:
    """Take what a node delivers."""
    return _response(relay.receive(key, bearer(request), request.body))


@require_GET
@never_cache
def fetch(request: HttpRequest, key: str, name: str) -> HttpResponse:
    """Return what a node fetches."""
    at = request.GET.get("at", "0")
    number = int(at) if at.isascii() and at.isdigit() and len(at) < 16 else 0
    return _response(relay.read_input(key, bearer(request), name, number))


def _response(answer: relay.RelayAnswer) -> HttpResponse:
    if answer.value is not None:
        return JsonResponse(answer.value)
    return HttpResponse(answer.data, content_type="application/octet-stream", status=answer.status)

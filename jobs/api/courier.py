"""Where couriers knock: programs on nodes that share no folder with the console.

The token of the attempt is the proof; it opens nothing else, and no session and no other token opens this.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from jobs.api.native.auth import bearer
from jobs.scheduling import couriers


@require_GET
@never_cache
def here(request: HttpRequest) -> HttpResponse:
    """A node asks whether it reaches the console."""
    return JsonResponse({"console": True})


@csrf_exempt  # no browser comes here, and no cookie counts
@require_POST
@never_cache
def courier(request: HttpRequest, key: str) -> HttpResponse:
    """Something is brought."""
    return _response(couriers.received(key, bearer(request), request.body))


@require_GET
@never_cache
def fetch(request: HttpRequest, key: str, name: str) -> HttpResponse:
    """Something is fetched."""
    at = request.GET.get("at", "0")
    number = int(at) if at.isascii() and at.isdigit() and len(at) < 16 else 0
    return _response(couriers.offered(key, bearer(request), name, number))


def _response(answered: couriers.Answered) -> HttpResponse:
    if answered.value is not None:
        return JsonResponse(answered.value)
    return HttpResponse(answered.data, content_type="application/octet-stream", status=answered.status)

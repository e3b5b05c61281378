"""MLflow's API at the console's web address, for programs of jobs that have no service address of their own.

The token of the attempt authenticates them, and the path says which replica asks; no session and no other
token is accepted.  Jobs with a network of their own ask at their service address (`jobs.access.job_service`).
"""

from __future__ import annotations

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from jobs.access import attempt_tokens, job_service
from jobs.access.attempt_tokens import Purpose
from jobs.access.job_service import RequestRefused, ServiceRequest
from jobs.api.native.auth import bearer
from jobs.tracking import mlflow


@csrf_exempt  # no browser comes here, and no cookie counts
@require_http_methods(["GET", "POST"])
@never_cache
def track(request: HttpRequest, key: str, position: int, operation: str) -> HttpResponse:
    """Serve one operation for the replica at that position of the attempt with that key."""
    try:
        if not attempt_tokens.is_token(bearer(request), key, Purpose.TRACKING):
            raise RequestRefused(HTTPStatus.UNAUTHORIZED)
        found = mlflow.OPERATIONS.get((request.method or "", f"/api/2.0/mlflow/{operation}"))
        if found is None:
            raise RequestRefused(HTTPStatus.NOT_FOUND)
        caller = job_service.find_caller(key, position)
        query = request.META.get("QUERY_STRING", "").encode()
        return JsonResponse(job_service.track(found, ServiceRequest(caller, query, request.body)))
    except RequestRefused as refused:
        return JsonResponse(refused.content, status=refused.status)

"""The JSON Schema of site.yaml, for editors."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from console.site_yaml.shape import json_schema


@require_safe
@cache_control(max_age=3600, public=True)
def site(request: HttpRequest) -> HttpResponseBase:
    """It says what such a file may have, and nothing of what there is here."""
    return JsonResponse(json_schema(), content_type="application/schema+json")

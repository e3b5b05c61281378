"""URLs of the vendors' APIs, and of the formats' schemas."""

from __future__ import annotations

from django.urls import path

from jobs.api import schemas
from jobs.api.vendors import registry

urlpatterns = [
    path("schemas/<slug:dialect>.json", schemas.Schema.as_view(), name="dialect_schema"),
    *registry.urls(),
]

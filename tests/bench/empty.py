"""A project that does nothing: what Django, uvicorn and Celery cost by themselves."""

from __future__ import annotations

import os

from celery import Celery
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path

settings.configure(
    SECRET_KEY="empty",
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["*"],
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
)


def page(request: HttpRequest) -> HttpResponse:
    """Nothing."""
    return HttpResponse()


urlpatterns = [path("", page)]
application = get_asgi_application()
app = Celery("empty", broker=os.environ["BENCH_BROKER"])

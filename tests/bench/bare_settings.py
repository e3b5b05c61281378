"""The console's own settings and database, with nothing between uvicorn and `tests.bench.bare`."""

import django_stubs_ext

from console.settings import *  # noqa: F403  # all of them

django_stubs_ext.monkeypatch()  # as the console's own app does, which is none of those here

ROOT_URLCONF = "tests.bench.bare"
MIDDLEWARE = []
# Those that have the tables; others want their own middleware.
INSTALLED_APPS = ["jobs", "quotas", "django.contrib.auth", "django.contrib.contenttypes", "auditlog"]
# Django's own backend, opened for each request as Django has it where each has a thread of its own.
DATABASES["default"]["CONN_MAX_AGE"] = 0  # noqa: F405
if DATABASES["default"]["ENGINE"] == "console.sqlite":  # noqa: F405
    DATABASES["default"]["ENGINE"] = "django.db.backends.sqlite3"  # noqa: F405

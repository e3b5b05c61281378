"""The console's own settings and database, with nothing between uvicorn and `tests.bench.bare`."""

from console.settings import *  # noqa: F403  # all of them

ROOT_URLCONF = "tests.bench.bare"
MIDDLEWARE = []
# Those that have the tables; others want their own middleware.
INSTALLED_APPS = ["jobs", "quotas", "django.contrib.auth", "django.contrib.contenttypes", "auditlog"]
# Django's own backend, opened for each request as Django has it where each has a thread of its own.
DATABASES["default"]["CONN_MAX_AGE"] = 0  # noqa: F405
if DATABASES["default"]["ENGINE"] == "console.sqlite":  # noqa: F405
    DATABASES["default"]["ENGINE"] = "django.db.backends.sqlite3"  # noqa: F405

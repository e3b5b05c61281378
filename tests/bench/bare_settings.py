"""The console's own settings and database, with nothing between uvicorn and `tests.bench.bare`."""

from console.settings import *  # noqa: F403  # all of them

ROOT_URLCONF = "tests.bench.bare"
MIDDLEWARE = []
DATABASES["default"]["CONN_MAX_AGE"] = 0  # noqa: F405  # as Django has it, where each request has a thread of its own

"""The console's own settings and database, with nothing between uvicorn and `tests.bench.bare`."""

from console.settings import *  # noqa: F403  # all of them

ROOT_URLCONF = "tests.bench.bare"
MIDDLEWARE = []

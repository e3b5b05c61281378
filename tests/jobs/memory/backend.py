"""The engine of the running test."""

from typing import Final

from tests.jobs.engine import current

BACKEND: Final = current

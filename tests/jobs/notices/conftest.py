"""The people of the pages' tests."""

from tests.jobs.views.conftest import people

__all__ = ["people"]

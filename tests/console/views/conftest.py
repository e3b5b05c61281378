"""The people of the pages' tests."""

from tests.jobs.web.conftest import people

__all__ = ["people"]

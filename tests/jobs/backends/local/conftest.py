from tests.jobs.backends.local.images import store

__all__ = ["store"]

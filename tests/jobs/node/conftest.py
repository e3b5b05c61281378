from tests.jobs.backends.conftest import local, place
from tests.jobs.backends.local.conftest import bench_of, store

__all__ = ["bench_of", "local", "place", "store"]

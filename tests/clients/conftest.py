"""A console in this process with the real local backend, for the vendors' own clients."""

from __future__ import annotations

import pytest
from django.conf import LazySettings

from quotas.models import Cluster
from tests.factories import make_cluster
from tests.jobs.client.conftest import console, person, redis_server, worker

__all__ = ["cluster", "console", "person", "redis_server", "worker"]


@pytest.fixture
def cluster(transactional_db: None, settings: LazySettings) -> Cluster:
    """This machine, where an image is not needed: the vendors' job files name one."""
    settings.CONSOLE_LOCAL = {
        "cpu_milli": 8000,
        "memory_mib": 65536,
        "gpus": {},
        "engine": "none",
        "allow_plain": True,
    }
    return make_cluster("local")

"""From a cluster's row to the backend that serves it."""

from typing import Any

import pytest

from jobs.clusters import BadSettings, backend_for
from jobs.scheduling import reconcile
from quotas.models import Cluster
from tests.factories import make_cluster

pytestmark = pytest.mark.django_db

NONSENSE: list[dict[str, Any]] = [
    {"gpu": {}},
    {"folders": ["/data"]},
    {"folders": {"/data": ["vision"]}},
    {"folders": {"data": {"workspaces": ["*"]}}},
    {"datasets": {"d-1": "/data/x"}},
    {"code_sources": {"c-1": {"url": "https://git.example.org/x"}}},
    {"isolation": "some"},
    {"code_from": "https://git.example.org"},
]


@pytest.mark.parametrize("config", NONSENSE, ids=str)
def test_cluster_with_invalid_settings_raises_error_and_shows_trouble(config: dict[str, Any]) -> None:
    cluster = make_cluster("local", config=config)
    with pytest.raises(BadSettings, match="The settings of local make no sense: "):
        backend_for(cluster)
    reconcile.take_inventory(cluster.pk)
    assert "make no sense" in Cluster.objects.get(pk=cluster.pk).trouble

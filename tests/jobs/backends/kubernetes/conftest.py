from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jobs.backends.kubernetes_bench import KubernetesBench
from tests.kubernetes.cluster import Cluster


@pytest.fixture(scope="module")
def namespace(kubernetes: Cluster) -> Iterator[str]:
    """A namespace for the tests of a module."""
    with kubernetes.make_namespace() as name:
        yield name


@pytest.fixture
def bench(tmp_path: Path, kubernetes: Cluster, namespace: str) -> Iterator[KubernetesBench]:
    """The backend with an admin's rights, for the contract and the tests of jobs."""
    made = KubernetesBench(tmp_path, kubernetes, namespace)
    yield made
    made.close()

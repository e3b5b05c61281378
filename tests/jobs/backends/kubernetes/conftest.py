from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jobs.backends.kubernetes.accounts import RBAC, bind, read_token
from tests.jobs.backends.kubernetes_bench import STORAGE_CLASS, KubernetesBench
from tests.kubernetes.cluster import Cluster


@pytest.fixture(scope="module")
def namespace(kubernetes: Cluster) -> Iterator[str]:
    """A namespace for the tests of a module."""
    with kubernetes.make_namespace() as name:
        yield name


@pytest.fixture(scope="module")
def account(kubernetes: Cluster, namespace: str) -> Iterator[str]:
    """The token of the console's account, with its rights in the tests' namespace."""
    kubernetes.kubectl("apply", "-f", str(RBAC))
    bind(kubernetes, namespace)
    yield read_token(kubernetes, "job-console", "job-console")
    kubernetes.kubectl("delete", "-f", str(RBAC))  # and wait: other tests create the same


@pytest.fixture
def bench(
    request: pytest.FixtureRequest, tmp_path: Path, kubernetes: Cluster, namespace: str
) -> Iterator[KubernetesBench]:
    """The backend with an admin's rights, for the contract and the tests of jobs."""
    settings = {}
    if "checkpoint" in request.node.name:
        settings = {"checkpoint_class": STORAGE_CLASS, "checkpoint_gib": 1}
        kubernetes.make_storage_class(STORAGE_CLASS)
    made = KubernetesBench(tmp_path, kubernetes, namespace, settings)
    yield made
    made.close()

from collections.abc import Iterator

import pytest

from tests.kubernetes.cluster import Cluster


@pytest.fixture(scope="module")
def namespace(kubernetes: Cluster) -> Iterator[str]:
    """A namespace for the tests of a module."""
    with kubernetes.make_namespace() as name:
        yield name

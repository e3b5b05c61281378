"""A bench with this machine's GPUs; without any, or without PyTorch, nothing here runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import gpu
from tests.jobs.backends.benches import LocalBench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[LocalBench]:
    """Jobs of this machine, each in its own folder."""
    if lacking := gpu.missing():
        pytest.skip(lacking)
    pytest.importorskip("torch", reason="there is no PyTorch for the tests with a GPU")
    made = LocalBench(tmp_path)
    yield made
    made.close()

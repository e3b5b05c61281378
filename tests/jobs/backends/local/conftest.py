from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.jobs.backends.benches import LocalBench
from tests.jobs.backends.local.images import store

__all__ = ["store"]


@pytest.fixture
def bench_of(tmp_path: Path) -> Iterator[Callable[..., LocalBench]]:
    """Makes benches with settings of their own, and closes them."""
    benches: list[LocalBench] = []

    def make(**settings: object) -> LocalBench:
        benches.append(LocalBench(tmp_path, settings))
        return benches[-1]

    yield make
    for bench in benches:
        bench.close()

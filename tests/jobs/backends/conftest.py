from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.local.isolation import Isolation
from tests.jobs.backends.benches import Bench, LocalBench

BENCHES = ("local", "local-none")


def make(name: str, folder: Path) -> Bench:
    """A bench by name; a new backend joins the contract by a line here."""
    settings: dict[str, dict[str, Any]] = {"local": {}, "local-none": {"isolation": Isolation.NONE}}
    return LocalBench(folder, settings[name])


@pytest.fixture(params=BENCHES)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    made = make(request.param, tmp_path)
    yield made
    made.close()


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalBench]:
    made = LocalBench(tmp_path)
    yield made
    made.close()

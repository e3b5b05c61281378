"""Four processes at once on one PostgreSQL: what holds for one pass holds for all of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from console.home import CHECKOUT
from tests import postgres, prepared

pytestmark = pytest.mark.postgres

PROCESSES = 4
STEPS = 80


@pytest.fixture
def database() -> Iterator[str]:
    """A database with all tables, on the server that the tests run on or on one of our own."""
    given = os.environ.get("DATABASE_URL", "")
    programs = postgres.find_programs()
    if given:
        url = postgres.fresh_database(given, f"crowd_{os.getpid()}", prepared.template(given))
        yield url
        postgres.drop_database(url)
    elif programs is None:
        pytest.skip("there is neither DATABASE_URL nor a PostgreSQL server to start")
    else:
        with postgres.server(programs) as url:
            yield postgres.fresh_database(url, "crowd", prepared.template(url))


def test_concurrent_processes_never_exceed_a_limit(database: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.quotas.admission.crowd", str(PROCESSES), str(STEPS)],
        env={**os.environ, "DATABASE_URL": database, "REDIS_URL": "redis://127.0.0.1:1/0"},
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    jobs, reserved, borrowed, _taken = map(int, done.stdout.split())
    assert jobs > 20
    assert reserved > 20
    assert borrowed > 0

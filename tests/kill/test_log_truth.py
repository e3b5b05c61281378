"""Hostile output at full speed, with kills in between: bytes stored as written, and each shown once."""

from __future__ import annotations

from tests import log_truth
from tests.kill.conftest import Arena


def test_hostile_log_is_stored_and_shown_once_through_kills(arena: Arena) -> None:
    found = log_truth.run(arena.stack, arena.token, arena.judge, 20_000_000, ("web", "redis", "worker-logs"))
    assert found["connections"] > 1

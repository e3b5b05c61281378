"""What has to be there for the tests: where all of them are asked for, none leaves itself out."""

from __future__ import annotations

import pytest

from tests import required


def skipped(reason: str) -> pytest.CollectReport:
    return pytest.CollectReport("tests/test_it.py", "skipped", ("test_it.py", 1, reason), [])


@pytest.mark.parametrize(
    ("asked", "reason", "outcome"),
    [
        ("1", "Skipped: there is no slurmctld", "failed"),
        ("1", "Skipped: this machine has no GPU", "skipped"),
        ("1", "Skipped: Kubernetes 1.20 needs control groups of version 1", "skipped"),
        ("", "Skipped: there is no slurmctld", "skipped"),
    ],
)
def test_skipped_test_fails_with_require_all_set(
    monkeypatch: pytest.MonkeyPatch, asked: str, reason: str, outcome: str
) -> None:
    monkeypatch.setenv("REQUIRE_ALL", asked)
    report = required.all_of(skipped(reason))
    assert report.outcome == outcome
    assert reason in str(report.longrepr)

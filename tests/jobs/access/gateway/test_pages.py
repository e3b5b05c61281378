"""What the gateway itself says, for people and for scripts."""

from __future__ import annotations

import pytest

from jobs.access.gateway import pages
from jobs.access.gateway.pages import PageText

AGAIN = ["This page retries automatically."]


@pytest.mark.parametrize(
    ("said", "lines"),
    [
        (pages.STARTING, ["Starting …", "The job has not opened this port yet.", *AGAIN]),
        (pages.AWAY, ["Console database unavailable", "Open connections are not affected.", *AGAIN]),
        (pages.FULL, ["Too many connections", "Close some pages of running jobs, and try again."]),
    ],
)
def test_gateway_page_mentions_reloading_only_when_reloading_itself(said: PageText, lines: list[str]) -> None:
    assert pages.render(said, language="en").body.decode().splitlines() == lines

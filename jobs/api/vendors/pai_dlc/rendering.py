"""Values as PAI-DLC's services write them."""

from __future__ import annotations

from datetime import UTC, datetime


def render_time(moment: datetime | None) -> str:
    """Return a time in UTC to the second; "" for none."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""

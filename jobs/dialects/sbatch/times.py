"""Times as Slurm writes them: lengths, and moments."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

FOREVER: Final = frozenset({"UNLIMITED", "INFINITE", "-1"})

_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86400
_MOST_MINUTES: Final = 2**32 - 3
_LENGTH: Final = re.compile(
    r"(?:(?P<days>\d{1,9})-(?P<hours>\d{1,9})(?::(?P<minutes>\d{1,9})(?::(?P<seconds>\d{1,9}))?)?"
    r"|(?P<parts>\d{1,9}(?::\d{1,9}){0,2}))",
    re.ASCII,
)
_EPOCH: Final = re.compile(r"uts(\d{7,12})", re.ASCII | re.IGNORECASE)


def seconds(text: str) -> int | None:
    """A length in seconds, rounded up to whole minutes as Slurm does; 0 is no limit; None is no length.

    `minutes`, `minutes:seconds`, `hours:minutes:seconds`, `days-hours`, `days-hours:minutes` and
    `days-hours:minutes:seconds` (sbatch(1), --time).
    """
    if text.upper() in FOREVER:
        return 0
    match = _LENGTH.fullmatch(text)
    if not match:
        return None
    if match["parts"]:
        parts = [int(part) for part in match["parts"].split(":")]
        hours, minutes, rest = [0] * (3 - len(parts)) + parts if len(parts) != 1 else [0, parts[0], 0]
        exact = hours * _HOUR + minutes * _MINUTE + rest
    else:
        days, hours, minutes, rest = (
            int(match[name] or 0) for name in ("days", "hours", "minutes", "seconds")
        )
        exact = days * _DAY + hours * _HOUR + minutes * _MINUTE + rest
    return -(-exact // _MINUTE) * _MINUTE


def length(total: int) -> str:
    """Seconds as `h:mm:ss` or `d-hh:mm:ss`, rounded up to whole minutes; "" for more than Slurm holds."""
    minutes = -(-total // _MINUTE)
    if minutes > _MOST_MINUTES:
        return ""
    days, rest = divmod(minutes, _DAY // _MINUTE)
    hours, minutes = divmod(rest, 60)
    return f"{days}-{hours:02}:{minutes:02}:00" if days else f"{hours}:{minutes:02}:00"


def moment(text: str) -> str | None:
    """Return a moment as an RFC 3339 time; None for one that only Slurm's own clock and time zone tell.

    Slurm reads `uts` and a number as seconds since 1970 (its parse_time).
    """
    match = _EPOCH.fullmatch(text)
    if not match:
        return None
    try:
        return datetime.fromtimestamp(int(match[1]), UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OSError, OverflowError):
        return None


def epoch(text: str) -> str | None:
    """Return an RFC 3339 time as Slurm reads it in any time zone; None when it is no such time."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    return f"uts{int(when.timestamp())}" if when.tzinfo is not None else None

"""Durations on the command line."""

from __future__ import annotations

import re
from typing import Final

from jobs.client.failure import CommandFailure
from jobs.language import gettext as _

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_AMOUNT: Final = re.compile(r"(?P<number>\d{1,9}(?:\.\d{1,3})?)(?P<unit>[smhd])")
_CLOCK: Final = re.compile(r"(?:(?P<d>\d{1,5})-)?(?P<h>\d{1,9}):(?P<m>\d{1,2}):(?P<s>\d{1,2})")


def parse_duration(text: str) -> int:
    """Return the seconds of `90s`, `30m`, `2h`, `1d`, `1-12:00:00` (as in Slurm).  Raises CommandFailure."""
    if match := _AMOUNT.fullmatch(text):
        found = round(float(match["number"]) * _SECONDS[match["unit"]])
    elif match := _CLOCK.fullmatch(text):
        found = sum(int(number or 0) * _SECONDS[unit] for unit, number in match.groupdict().items())
    else:
        found = 0
    if found < 1:
        example = _("Invalid duration: %(text)s. Examples: 30m, 2h, 1-12:00:00.")
        raise CommandFailure(example % {"text": text}, 2)
    return found

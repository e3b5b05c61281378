"""Times of sending: at once, with a digest, after quiet hours, or after a failed try."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.utils import timezone

from jobs.models import Channel, NotificationRule

FIRST_RETRY: Final = timedelta(seconds=15)
LONGEST_RETRY: Final = timedelta(hours=1)

HOUR: Final = timedelta(hours=1)


def zone_of(channel: Channel) -> tzinfo:
    """Return the time zone of the channel's reader: a person's own, else the console's."""
    name = channel.person.time_zone if channel.person else ""
    try:
        return ZoneInfo(name) if name else timezone.get_default_timezone()
    except (ZoneInfoNotFoundError, ValueError):
        return timezone.get_default_timezone()  # one that this machine does not know


def next_due(rule: NotificationRule, now: datetime) -> datetime:
    """Return the time at which this rule sends an event of `now`."""
    here = now.astimezone(zone_of(rule.channel))
    if rule.pace == NotificationRule.Pace.HOURLY:
        here = here.replace(minute=0, second=0, microsecond=0) + HOUR
    elif rule.pace == NotificationRule.Pace.DAILY:
        here = _next(here, rule.hour)
    return after_quiet(rule.channel, here)


def after_quiet(channel: Channel, moment: datetime) -> datetime:
    """Return `moment`, or the end of the channel's quiet hours when it lies in them."""
    start, end = channel.quiet_from, channel.quiet_until
    if start is None or end is None or start == end:
        return moment
    here = moment.astimezone(zone_of(channel))
    quiet = start <= here.hour < end if start < end else here.hour >= start or here.hour < end
    return _next(here, end) if quiet else moment


def _next(here: datetime, hour: int) -> datetime:
    """Return the next `hour` o'clock after `here`."""
    today = here.replace(hour=hour, minute=0, second=0, microsecond=0)
    return today if today > here else today + timedelta(days=1)


def retry(attempts: int) -> timedelta:
    """Return the pause after failed try number `attempts`: 15 s, 30 s, 1 min … 1 h, half of it random.

    The random part keeps messages that failed together from coming back together.
    """
    most: timedelta = min(FIRST_RETRY * (1 << min(attempts - 1, 20)), LONGEST_RETRY)
    return most / 2 + most * (secrets.randbelow(1000) / 2000)

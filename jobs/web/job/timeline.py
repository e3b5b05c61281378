"""Events as sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Any

from django.utils.translation import gettext as _

from jobs.messages.amounts import duration
from jobs.messages.events import event_message
from jobs.models import Event
from jobs.states import ReplicaState, State


@dataclass(frozen=True, slots=True)
class TimelineLine:
    """One line of the timeline.  `level` is "", "ok" or "bad"; `later` is the time since the event
    before it, and `detail` more about it, both in words and maybe empty.
    """

    at: datetime
    later: str
    text: str
    detail: str
    level: str
    attempt: int


def timeline(events: Sequence[Event]) -> list[TimelineLine]:
    """The lines of `events`, which are in their order, the newest first."""
    pairs = zip_longest(events, events[1:])
    return [_render_line(event, earlier) for event, earlier in pairs]


def _render_line(event: Event, earlier: Event | None) -> TimelineLine:
    """Return an event as a line."""
    params: Mapping[str, Any] = event.params
    text, detail = event_message(Event.Kind(event.kind), params)
    if event.actor:
        text = _("%(what)s by %(who)s") % {"what": text, "who": event.actor.get_username()}
    later = _later(event.at - earlier.at) if earlier else ""
    return TimelineLine(event.at, later, text, detail, _level(event), event.attempt)


def _later(span: timedelta) -> str:
    seconds = span.total_seconds()
    if seconds < 1:
        return ""
    return _("%(time)s later") % {"time": duration(round(seconds))}


def _level(event: Event) -> str:
    state = event.params.get("state")
    if event.kind == Event.Kind.LOST or state in {State.FAILED, ReplicaState.FAILED}:
        return "bad"
    return "ok" if state in {State.SUCCEEDED, ReplicaState.SUCCEEDED} else ""

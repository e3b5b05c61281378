"""Conditions of dependencies and their states, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say

_SENTENCES: Final[Mapping[tuple[str, str], str]] = {
    ("succeeded", "open"): _("once it has succeeded"),
    ("succeeded", "met"): _("which has succeeded"),
    ("succeeded", "never"): _("which will never succeed"),
    ("ended", "open"): _("once it has ended"),
    ("ended", "met"): _("which has ended"),
    ("failed", "open"): _("once it has failed"),
    ("failed", "met"): _("which has failed"),
    ("failed", "never"): _("which will never fail"),
}


def dependency_message(when: str, state: str) -> str:
    """Return the condition in a few words; an unknown one as it is."""
    words = _SENTENCES.get((when, state))
    return say((words,), {}) if words else when

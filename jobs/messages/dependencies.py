"""Conditions of dependencies and their states, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say

_SENTENCES: Final[Mapping[tuple[str, str], str]] = {
    ("succeeded", "open"): _("on success"),
    ("succeeded", "met"): _("already succeeded"),
    ("succeeded", "never"): _("can't succeed anymore"),
    ("ended", "open"): _("when ended"),
    ("ended", "met"): _("already ended"),
    ("failed", "open"): _("on failure"),
    ("failed", "met"): _("already failed"),
    ("failed", "never"): _("can't fail anymore"),
}


def dependency_message(when: str, state: str) -> str:
    """Return the condition in a few words; an unknown one as it is."""
    words = _SENTENCES.get((when, state))
    return say((words,), {}) if words else when

"""Sentences about tests of storage mappings from the console's host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say

_SENTENCES: Final[Mapping[str, tuple[str, ...]]] = {
    "writable": (_("Readable and writable."),),
    "readable": (_("Readable."),),
    "missing": (_("There is no such folder on the console's host."),),
    "not_folder": (_("Not a folder."),),
    "unreadable": (_("Not readable: %(detail)s."), _("Not readable.")),
    "not_writable": (_("Readable, but not writable: %(detail)s."), _("Readable, but not writable.")),
    "no_answer": (_("No answer in %(detail)s seconds."),),
    "listed": (_("The bucket answers, and has objects there."),),
    "empty": (_("The bucket answers, and has no objects there."),),
    "failed": (_("Failed: %(detail)s"), _("Failed.")),
}

FINE: Final = frozenset({"writable", "readable", "listed", "empty"})
"""Codes of tests that succeeded."""


def storage_message(code: str, detail: str = "") -> str:
    """Return the sentence for the result of a test."""
    return say(_SENTENCES.get(code, _SENTENCES["failed"]), {"detail": detail})

"""A message to one channel, in its reader's language, before any service's own shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext


@dataclass(frozen=True, slots=True)
class MessageLine:
    """One event in words; `url` is its page, `log` the end of a log."""

    id: int
    kind: str
    level: str
    at: datetime
    title: str
    text: str = ""
    place: str = ""
    url: str = ""
    log: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further fields for webhooks."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message.  `id` is the same at every try.

    `thread` is the same for all messages of one job or sweep, and empty when it is about several.  With
    `confirm`, the link that confirms an address, the message is about nothing else.
    """

    id: str
    at: datetime
    lines: Sequence[MessageLine]
    url: str
    thread: str = ""
    unsubscribe: str = ""
    confirm: str = ""

    @property
    def subject(self) -> str:
        """Return the title of the most serious line, and how many more there are."""
        if not self.lines:
            return ""
        order = ("bad", "warn", "ok", "info")
        first = min(self.lines, key=lambda line: order.index(line.level))
        more = len(self.lines) - 1
        if not more:
            return first.title
        text = ngettext("%(title)s And %(count)s more.", "%(title)s And %(count)s more.", more)
        return text % {"title": first.title, "count": more}

    def first_lines(self, most: int, bytes_of: int, text_of: Any) -> tuple[list[str], int]:
        """Return the first lines as `text_of` writes them, within both limits, and how many are left out."""
        shown: list[str] = []
        size = 0
        for line in self.lines[:most]:
            text = text_of(line)
            size += len(text.encode()) + 8
            if size > bytes_of and shown:
                break
            shown.append(truncate(text, bytes_of))
        return shown, len(self.lines) - len(shown)


def truncate(text: str, most: int) -> str:
    """Return at most `most` bytes of `text`, whole characters."""
    data = text.encode()
    return text if len(data) <= most else data[: most - 3].decode("utf-8", "ignore") + "…"


def more(count: int) -> str:
    """Return the sentence that there is more in the console."""
    return ngettext("And %(count)s more in the console.", "And %(count)s more in the console.", count) % {
        "count": count
    }


def plain(line: MessageLine, *, log: bool = True) -> str:
    """Return a line as text."""
    parts = [line.title, *(part for part in (line.text, line.place, line.url) if part)]
    if log and line.log:
        parts += [_("End of the log:"), *(f"    {each}" for each in line.log)]
    return "\n".join(parts)

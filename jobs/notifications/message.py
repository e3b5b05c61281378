"""A message to one channel, in its reader's language, before any service's own shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext


@dataclass(frozen=True, slots=True)
class Line:
    """One occasion: what it is, said; `url` leads to it; `log` is the end of a log."""

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
    """What webhooks are told besides."""


@dataclass(frozen=True, slots=True)
class Message:
    """Everything that is sent at once.  `id` is the same at every try."""

    id: str
    at: datetime
    lines: Sequence[Line]
    url: str
    thread: str = ""
    """What all messages of one job have in common; empty when it is about several."""
    unsubscribe: str = ""
    confirm: str = ""
    """Where an address that is not yet confirmed is confirmed; the message is about nothing else then."""

    @property
    def subject(self) -> str:
        """One line that says the worst of it, and how much more there is."""
        if not self.lines:
            return ""
        order = ("bad", "warn", "ok", "info")
        first = min(self.lines, key=lambda line: order.index(line.level))
        more = len(self.lines) - 1
        if not more:
            return first.title
        told = ngettext("%(title)s And %(count)s more.", "%(title)s And %(count)s more.", more)
        return told % {"title": first.title, "count": more}

    def within(self, most: int, bytes_of: int, text_of: Any) -> tuple[list[str], int]:
        """The first lines as `text_of` writes them, so many and so long; and how many are left out."""
        shown: list[str] = []
        size = 0
        for line in self.lines[:most]:
            text = text_of(line)
            size += len(text.encode()) + 8
            if size > bytes_of and shown:
                break
            shown.append(cut(text, bytes_of))
        return shown, len(self.lines) - len(shown)


def cut(text: str, most: int) -> str:
    """At most so many bytes of `text`, whole characters."""
    data = text.encode()
    return text if len(data) <= most else data[: most - 3].decode("utf-8", "ignore") + "…"


def more(count: int) -> str:
    """That there is more than was said."""
    return ngettext("And %(count)s more in the console.", "And %(count)s more in the console.", count) % {
        "count": count
    }


def plain(line: Line, *, log: bool = True) -> str:
    """A line as text."""
    return "\n".join(_paragraphs(line, log=log))


def _paragraphs(line: Line, *, log: bool) -> Iterator[str]:
    yield line.title
    if line.text:
        yield line.text
    if line.place:
        yield line.place
    if line.url:
        yield line.url
    if log and line.log:
        yield _("The end of its log:")
        yield from (f"    {each}" for each in line.log)

"""What differs between two jobs, field by field, in words and in one line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from jobs.dialects.losses import ABSENT, differences
from jobs.dialects.spans import split
from jobs.messages import amounts
from jobs.messages.fieldnames import field_name
from jobs.spec import JobSpec
from jobs.submission.comparison import Matcher, Work

LONGEST: Final = 80
"""Characters of a value that are shown."""

MOST_NAMED: Final = 3
"""Changes that one line names; the others are counted."""

MOST_WORDS: Final = 4000
"""Words of a command that are compared one by one."""

_WORD: Final = re.compile(r"\s+")

_MEMORY: Final = frozenset({"memory_mib", "shm_mib", "disk_mib"})


@dataclass(frozen=True, slots=True)
class Change:
    """A field of the JobSpec that is not as it was; `what` is the option that changed, if it is long."""

    pointer: str
    field: str
    before: str
    after: str
    what: str = ""

    def __str__(self) -> str:
        """The change in a few words: `--lr 0.1 → 0.01 (Start command)`."""
        told = {"field": self.field, "before": self.before, "after": self.after, "what": self.what}
        if self.what:
            return _("%(what)s %(before)s → %(after)s (%(field)s)") % told
        if not self.before:
            return _("%(field)s: %(after)s, was empty") % told
        if not self.after:
            return _("%(field)s: empty, was %(before)s") % told
        return _("%(field)s: %(before)s → %(after)s") % told


def changes(before: JobSpec, after: JobSpec) -> tuple[Change, ...]:
    """Every field that differs, in the JobSpec's order."""
    roles = [role.name for role in after.roles]
    found = differences(before.model_dump(mode="json"), after.model_dump(mode="json"), "")
    work = Work()
    return tuple(change for each in found for change in _told(*each, roles, work))


def one_line(found: Sequence[Change], *, without_name: bool = True) -> str:
    """The changes that matter most, and how many more there are; "" where there is none.

    That a copy has a name of its own says nothing, unless nothing else is to be said.
    """
    named = [each for each in found if each.pointer != "/name" or not without_name] or list(found)
    if not named:
        return ""
    told = "; ".join(str(each) for each in named[:MOST_NAMED])
    more = len(named) - MOST_NAMED
    if more <= 0:
        return told
    text = ngettext("%(told)s; and %(count)s more change", "%(told)s; and %(count)s more changes", more)
    return text % {"told": told, "count": more}


def _told(pointer: str, before: object, after: object, roles: Sequence[str], work: Work) -> Iterator[Change]:
    name = field_name(pointer, roles)
    both = isinstance(before, str) and isinstance(after, str) and before and after
    if both and (pointer.endswith("/command") or max(len(str(before)), len(str(after))) > LONGEST // 2):
        yield from _of_text(pointer, name, str(before), str(after), work)
        return
    yield Change(pointer, name, _value(pointer, before), _value(pointer, after))


def _of_text(pointer: str, name: str, before: str, after: str, work: Work) -> Iterator[Change]:
    """The words that differ, each with the option that it belongs to."""
    old, new = _WORD.split(before.strip()), _WORD.split(after.strip())
    if max(len(old), len(new)) > MOST_WORDS:
        yield Change(pointer, name, _short(before), _short(after))
        return
    for tag, begins, ends, first, last in Matcher(old, new, work).get_opcodes():
        if tag == "equal":
            continue
        was, now = " ".join(old[begins:ends]), " ".join(new[first:last])
        what = new[first - 1] if first and new[first - 1].startswith("-") else ""
        what, was, now = _option(what, was, now)
        if was and now:
            yield Change(pointer, name, _short(was), _short(now), what)
        else:
            yield Change(pointer, name, _short(was), _short(now))


def _option(what: str, was: str, now: str) -> tuple[str, str, str]:
    """`--lr=0.1` and `--lr=0.01` are of one option."""
    old, equals, old_value = was.partition("=")
    new, also, new_value = now.partition("=")
    if not what and equals and also and old == new:
        return old, old_value, new_value
    return what, was, now


def _value(pointer: str, value: object) -> str:
    if value is ABSENT or value is None or value == "":
        return ""
    last = split(pointer)[-1] if pointer else ""
    if isinstance(value, int) and not isinstance(value, bool):
        if last in _MEMORY:
            return amounts.quantity("memory_mib", value)
        if last == "cpu_milli":
            return amounts.quantity("cpu_milli", value)
        if last.endswith("_s"):
            return amounts.duration(value)
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return _short(_plain(value))


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(
            f"{key} {_plain(inner)}" for key, inner in value.items() if inner not in (None, "", [], {})
        )
    if isinstance(value, list):
        return ", ".join(_plain(each) for each in value)
    return str(value)


def _short(text: str) -> str:
    line = _WORD.sub(" ", text).strip()
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"

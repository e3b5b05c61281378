"""Differences between two jobs, two texts or two lists of words."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import Match, SequenceMatcher
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from jobs.dialects.losses import ABSENT, differences
from jobs.dialects.spans import split
from jobs.messages import amounts
from jobs.messages.fieldnames import field_name
from jobs.spec import JobSpec

MOST_WORK: Final = 400_000
"""Pairs of lines or words that are compared between anchors, in one answer."""

MOST_LINES: Final = 300

Line = tuple[str, str]
"""The kind of a line (`same`, `old`, `new`, `place`), and the line with its sign."""


class Work:
    """The work that comparisons for one answer may still do."""

    def __init__(self) -> None:
        self._left = MOST_WORK

    def take(self, pairs: int) -> bool:
        """Take that many pairs from it; return False when there is not enough."""
        if pairs > self._left:
            return False
        self._left -= pairs
        return True


class Matcher(SequenceMatcher[str]):
    """A `SequenceMatcher` with limited work.

    `difflib` alone takes the square of the length, or worse, for texts that somebody made so.  Lines that
    both have once are the anchors (patience diff); between two of them `difflib` looks, as long as there is
    work left.  The rest is shown as replaced.
    """

    def __init__(self, a: Sequence[str], b: Sequence[str], work: Work | None = None) -> None:
        super().__init__(None, (), (), autojunk=False)
        self.a, self.b = a, b
        self._work = work or Work()

    def get_matching_blocks(self) -> list[Match]:
        """Return the pieces that both have, in order, and one of no length at the end."""
        blocks: list[Match] = []
        begin_a = begin_b = 0
        for end_a, end_b in [*_anchors(self.a, self.b), (len(self.a), len(self.b))]:
            for start_a, start_b, size in self._between(begin_a, end_a, begin_b, end_b):
                _add(blocks, start_a, start_b, size)
            if end_a < len(self.a) and end_b < len(self.b):
                _add(blocks, end_a, end_b, 1)
            begin_a, begin_b = end_a + 1, end_b + 1
        return [*blocks, Match(len(self.a), len(self.b), 0)]

    def _between(self, begin_a: int, end_a: int, begin_b: int, end_b: int) -> Iterator[Match]:
        """Return what two stretches have in common: at both ends, and in the middle if that is not much."""
        shorter = max(0, min(end_a - begin_a, end_b - begin_b))
        head = _same(self.a, begin_a, self.b, begin_b, shorter, 1)
        tail = _same(self.a, end_a - 1, self.b, end_b - 1, shorter - head, -1)
        yield Match(begin_a, begin_b, head)
        middle_a, middle_b = self.a[begin_a + head : end_a - tail], self.b[begin_b + head : end_b - tail]
        longer = max(len(middle_a), len(middle_b))
        if middle_a and middle_b and self._work.take(len(middle_a) * len(middle_b) * longer // 100 + longer):
            for match in SequenceMatcher(None, middle_a, middle_b, autojunk=False).get_matching_blocks():
                yield Match(match.a + begin_a + head, match.b + begin_b + head, match.size)
        yield Match(end_a - tail, end_b - tail, tail)


def line_difference(before: Sequence[str], after: Sequence[str], context: int = 1) -> list[Line]:
    """Return the lines that differ with some around them, as `diff -u` writes them; at most MOST_LINES."""
    found: list[Line] = []
    for group in Matcher(before, after).get_grouped_opcodes(context):
        first, last = group[0], group[-1]
        old, new = _span(first[1], last[2]), _span(first[3], last[4])
        found.append(("place", f"@@ -{old} +{new} @@"))
        for tag, begin_a, end_a, begin_b, end_b in group:
            if tag == "equal":
                found += [("same", f" {line}") for line in before[begin_a:end_a]]
                continue
            found += [("old", f"-{line}") for line in before[begin_a : min(end_a, begin_a + MOST_LINES)]]
            found += [("new", f"+{line}") for line in after[begin_b : min(end_b, begin_b + MOST_LINES)]]
        if len(found) >= MOST_LINES:
            break
    return found[:MOST_LINES]


def _anchors(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """Return the longest ordered list of positions of items that both have exactly once."""
    count_a, count_b = Counter(a), Counter(b)
    place_b = {item: index for index, item in enumerate(b) if count_b[item] == 1}
    pairs = [(i, place_b[item]) for i, item in enumerate(a) if count_a[item] == 1 and item in place_b]
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for number, (_i, place) in enumerate(pairs):
        pile = bisect_left(tops, place)
        before.append(ends[pile - 1] if pile else -1)
        if pile == len(tops):
            tops.append(place)
            ends.append(number)
        else:
            tops[pile], ends[pile] = place, number
    chain = []
    number = ends[-1] if ends else -1
    while number >= 0:
        chain.append(pairs[number])
        number = before[number]
    return chain[::-1]


def _same(a: Sequence[str], at_a: int, b: Sequence[str], at_b: int, most: int, step: int) -> int:
    """Return how many items are the same from two positions on, forwards or backwards."""
    count = 0
    while count < most and a[at_a + step * count] == b[at_b + step * count]:
        count += 1
    return count


def _add(blocks: list[Match], start_a: int, start_b: int, size: int) -> None:
    """Append a match, joined to the last one where it continues it."""
    if size <= 0:
        return
    last = blocks[-1] if blocks else None
    if last and (last.a + last.size, last.b + last.size) == (start_a, start_b):
        blocks[-1] = Match(last.a, last.b, last.size + size)
    else:
        blocks.append(Match(start_a, start_b, size))


def _span(begin: int, end: int) -> str:
    """Return a stretch as `diff -u` writes it."""
    count = end - begin
    return f"{begin + 1}" if count == 1 else f"{begin + 1 if count else begin},{count}"


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
    """A changed field of the JobSpec; `what` is the changed option of a long text."""

    pointer: str
    field: str
    before: str
    after: str
    what: str = ""

    def __str__(self) -> str:
        """Return the change in a few words: `--lr 0.1 → 0.01 (Start command)`."""
        values = {"field": self.field, "before": self.before, "after": self.after, "what": self.what}
        if self.what:
            return _("%(what)s %(before)s → %(after)s (%(field)s)") % values
        if not self.before:
            return _("%(field)s: %(after)s, was empty") % values
        if not self.after:
            return _("%(field)s: empty, was %(before)s") % values
        return _("%(field)s: %(before)s → %(after)s") % values


def changes(before: JobSpec, after: JobSpec, *, whole: Collection[str] = ()) -> tuple[Change, ...]:
    """Return every field that differs, in the JobSpec's order; texts at pointers of `whole` in one change."""
    roles = [role.name for role in after.roles]
    found = differences(before.model_dump(mode="json"), after.model_dump(mode="json"), "")
    work = Work()
    return tuple(change for each in found for change in _field_changes(*each, roles, work, whole))


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A field that differs between jobs, with the value of each, in their order; `what` as in `Change`."""

    field: str
    what: str
    values: tuple[str, ...]


def field_rows(specs: Sequence[JobSpec]) -> tuple[FieldRow, ...]:
    """Return the fields in which at least one job differs from the first; the name is left out.

    What the first has in common with another is that one's value too.  Words that a command has and the first
    lacks are joined.  A text of which two jobs change other words is one row.
    """
    found = [changes(specs[0], each) for each in specs[1:]]
    if whole := _rewritten(found):
        found = [changes(specs[0], each, whole=whole) for each in specs[1:]]
    rows: dict[tuple[str, str, str], FieldRow] = {}
    for at, theirs in enumerate(found, 1):
        for change in theirs:
            if change.pointer == "/name":
                continue
            key = (change.pointer, change.what, change.before)
            row = rows.get(key) or FieldRow(change.field, change.what, (change.before,) * len(specs))
            was = row.values[at]
            both = f"{was} … {change.after}" if was != change.before else change.after
            rows[key] = replace(row, values=(*row.values[:at], both, *row.values[at + 1 :]))
    return tuple(rows.values())


def _rewritten(found: Sequence[Sequence[Change]]) -> set[str]:
    """Return the pointers of texts of which two jobs change different words that belong to no option.

    Of such a text, the words that the first has at a place would be shown for a job that lacks them.
    """
    words: dict[str, set[frozenset[str]]] = defaultdict(set)
    for theirs in found:
        for pointer in {change.pointer for change in theirs}:
            replaced = (each.before for each in theirs if each.pointer == pointer and not each.what)
            words[pointer].add(frozenset(filter(None, replaced)))
    return {pointer for pointer, sets in words.items() if len(sets) > 1}


def one_line(found: Sequence[Change], *, without_name: bool = True) -> str:
    """Return the first changes in one line, and how many more there are; "" where there is none.

    The name is left out unless it is the only change: every copy has its own.
    """
    named = [each for each in found if each.pointer != "/name" or not without_name] or list(found)
    if not named:
        return ""
    told = "; ".join(str(each) for each in named[:MOST_NAMED])
    more = len(named) - MOST_NAMED
    if more <= 0:
        return told
    text = ngettext("%(told)s; %(count)s more change", "%(told)s; %(count)s more changes", more)
    return text % {"told": told, "count": more}


def _field_changes(
    pointer: str, before: object, after: object, roles: Sequence[str], work: Work, whole: Collection[str]
) -> Iterator[Change]:
    name = field_name(pointer, roles)
    both = isinstance(before, str) and isinstance(after, str) and before and after
    if (
        both
        and pointer not in whole
        and (pointer.endswith("/command") or max(len(str(before)), len(str(after))) > LONGEST // 2)
    ):
        yield from _text_changes(pointer, name, str(before), str(after), work)
        return
    yield Change(pointer, name, _value(pointer, before), _value(pointer, after))


def _text_changes(pointer: str, name: str, before: str, after: str, work: Work) -> Iterator[Change]:
    """Yield the words that differ, each with the option that it belongs to."""
    old, new = _WORD.split(before.strip()), _WORD.split(after.strip())
    if max(len(old), len(new)) > MOST_WORDS:
        yield Change(pointer, name, _short(before), _short(after))
        return
    for tag, begins, ends, first, last in Matcher(old, new, work).get_opcodes():
        if tag == "equal":
            continue
        was, now = " ".join(old[begins:ends]), " ".join(new[first:last])
        what = new[first - 1] if first and new[first - 1].startswith("-") else ""
        what, was, now = _split_option(what, was, now)
        yield Change(pointer, name, _short(was), _short(now), what if was and now else "")


def _split_option(what: str, was: str, now: str) -> tuple[str, str, str]:
    """Split `--lr=0.1` and `--lr=0.01` into the option and its two values."""
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

"""What differs between two lists of lines or words, in time that grows with their length.

`difflib` alone takes the square of it, or worse, for texts that somebody made so.  Lines that both have once
are the anchors (patience diff); between two of them `difflib` looks, as long as there is work left.  What is
too much is shown as replaced.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import Match, SequenceMatcher
from typing import Final

MOST_WORK: Final = 400_000
"""Pairs of lines or words that are looked at between anchors, in one answer."""

MOST_LINES: Final = 300

Line = tuple[str, str]
"""What a line is (`same`, `old`, `new`, `place`), and the line with its sign."""


class Work:
    """What comparisons for one answer may still cost."""

    def __init__(self) -> None:
        self._left = MOST_WORK

    def take(self, pairs: int) -> bool:
        """Use so much of it; False when there is not enough."""
        if pairs > self._left:
            return False
        self._left -= pairs
        return True


class Matcher(SequenceMatcher[str]):
    """A `SequenceMatcher` whose work is bounded."""

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
    """Return the places of what both have exactly once, as many as stand in the same order in both."""
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
    """Return how many are the same from two places on, forwards or backwards."""
    count = 0
    while count < most and a[at_a + step * count] == b[at_b + step * count]:
        count += 1
    return count


def _add(blocks: list[Match], start_a: int, start_b: int, size: int) -> None:
    """Put a piece behind the others, or to the last one where it goes on."""
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

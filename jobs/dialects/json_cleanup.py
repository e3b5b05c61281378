"""JSON cleanup: relaxed JSON made strict without moving a character; what was blanked is reported.

Whatever is tolerated (comments, trailing commas, odd spaces, the line numbers of a pasted listing) is
replaced by spaces, so that an offset in the strict text is an offset in the submitted one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from jobs.dialects.base import Note, refusal
from jobs.dialects.fields import CONSOLE
from jobs.dialects.patterns import compile_pattern
from jobs.dialects.spans import splice

ODD_SPACES: Final = "\ufeff\u00a0\u1680\u2000-\u200d\u2028\u2029\u202f\u205f\u2060\u3000\x0b\x0c\x85"
"""Characters that look like nothing: a regular expression's set, without its brackets."""

MAX_ODDITIES: Final = 20_000
"""Comments, odd spaces, trailing commas or numbered lines in one text."""

_STRING: Final = r'"(?:[^"\\\r\n]|\\[^\r\n])*+"?'
_PIECE: Final = compile_pattern(
    rf"(?P<plain>(?:{_STRING}|[^\"/{ODD_SPACES}]++|/(?![/*]))++)"
    r"|(?P<comment>//[^\r\n]*+|/\*(?s:.*?)(?:\*/|\Z))"
    rf"|(?P<space>[{ODD_SPACES}]+)"
    r"|/"
)
_TRAILING_COMMA: Final = compile_pattern(rf"(?P<plain>(?:{_STRING}|[^\",]++|,(?!\s*+[\]}}]))++)|,")
_CLEAN_STRINGS: Final = compile_pattern(
    r'(?:[^"]++|"(?:[^"\\\x00-\x08\x0a-\x1f]|\\[^\x00-\x1f])*+")*+',
)
_NOT_BREAK: Final = re.compile(r"[^\r\n]")
_LINES: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")


@dataclass(frozen=True, slots=True)
class CleanedText:
    """`strict` is as long as the submitted text; `bare` is the same with its trailing commas.

    `numbered` tells that the text is a listing with line numbers; `tabs` that strings may hold raw tabs,
    which JSON forbids and nobody misreads, and nothing else that JSON forbids in them.
    """

    strict: str
    bare: str
    notes: tuple[Note, ...] = ()
    numbered: bool = False
    tabs: bool = False


def clean_up(text: str) -> CleanedText:
    """Blank everything in `text` that JSON forbids but that can be read without guessing."""
    numbers = _find_line_numbers(text)
    bare, counts = _blank(_replace_numbers(text, numbers, " "))
    strict, commas = _blank_trailing_commas(bare)
    told = {"tolerated_line_numbers": int(bool(numbers)), **counts, "tolerated_trailing_commas": commas}
    notes = tuple(Note(code, params={"count": count}) for code, count in told.items() if count)
    tabs = "\t" in bare and bool(_CLEAN_STRINGS.fullmatch(bare))
    return CleanedText(strict, bare, notes, bool(numbers), tabs)


def without_line_numbers(text: str) -> str:
    """Return a pasted listing without its line numbers; any other text unchanged."""
    return _replace_numbers(text, _find_line_numbers(text), "")


def blank_line_numbers(text: str) -> str:
    """Return a pasted listing with blanks for its line numbers; any other text unchanged."""
    return _replace_numbers(text, _find_line_numbers(text), " ")


def _blank(text: str) -> tuple[str, dict[str, int]]:
    """Blank comments and odd spaces; also how many of each there were."""
    counts = {"tolerated_bom": int(text.startswith("\ufeff")), "tolerated_comments": 0, "tolerated_spaces": 0}

    def replace(match: re.Match[str]) -> str:
        piece = match[0]
        if match.lastgroup == "comment":
            if piece.startswith("/*") and (len(piece) < 4 or not piece.endswith("*/")):
                return piece  # it has no end: the parser will stop here
            _count(counts, "tolerated_comments", 1)
            return _NOT_BREAK.sub(" ", piece)
        if match.lastgroup == "space":
            _count(counts, "tolerated_spaces", len(piece) - int(match.start() == 0 and piece[0] == "\ufeff"))
            return " " * len(piece)
        return piece

    return _PIECE.sub(replace, text), counts


def _blank_trailing_commas(text: str) -> tuple[str, int]:
    """Blank the commas that stand before a closing bracket, and count them."""
    counts = {"commas": 0}

    def replace(match: re.Match[str]) -> str:
        if match[0] != ",":
            return match[0]
        _count(counts, "commas", 1)
        return " "

    return _TRAILING_COMMA.sub(replace, text), counts["commas"]


def _count(counts: dict[str, int], what: str, more: int) -> None:
    """Add to a count; a text with more oddities than this was made to waste time."""
    counts[what] += more
    if counts[what] > MAX_ODDITIES:
        raise refusal("too_many_oddities", CONSOLE, most=MAX_ODDITIES)


def _find_line_numbers(text: str) -> tuple[tuple[int, int], ...]:
    """Return spans of the numbers that count the lines of a pasted listing; empty when it is none.

    JSON text never starts with a digit when it holds a job, and every line that is not blank must carry
    the next number, so a number of the file itself is never taken for one.
    """
    first = re.match(r"\s*(\d{1,6})", text)
    if not first:
        return ()
    expected = int(first[1])
    spans: list[tuple[int, int]] = []
    for line in _LINES.finditer(text):
        content = line[0].lstrip()
        if not content:
            continue
        if not content.startswith(str(expected)) or len(spans) == MAX_ODDITIES:
            return ()
        start = line.start() + len(line[0]) - len(content)
        spans.append((start, start + len(str(expected))))
        expected += 1
    return tuple(spans)


def _replace_numbers(text: str, spans: tuple[tuple[int, int], ...], filler: str) -> str:
    """Return `text` with each character of `spans` replaced by `filler`."""
    return splice(text, ((start, end, filler * (end - start)) for start, end in spans))

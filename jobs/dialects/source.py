"""Reading JSON as people bring it: lenient where nothing has to be guessed, exact about the rest.

The standard library reads a clean text at once.  Only when it stops, or when something in the text looks
suspicious, the slower modules beside this one find out what and where.  Hostile text (too long, too deep,
too many values, numbers nobody can hold, repeated keys, invisible characters) is refused early.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from jobs.dialects import spans, syntax
from jobs.dialects.base import MAX_BYTES, Note, Params, Position, Problem, Refused, refusal
from jobs.dialects.fields import CONSOLE
from jobs.dialects.json_cleanup import CleanedText, clean_up
from jobs.dialects.patterns import compile_pattern
from jobs.dialects.reading_cache import read_once
from jobs.dialects.spans import Node
from jobs.dialects.syntax import examine, find_repeated_keys

if TYPE_CHECKING:
    from jobs.dialects.document import Document

MAX_DEPTH: Final = 64
"""Levels of nesting; the deepest vendor format has nine."""

MAX_VALUES: Final = 30_000
"""Values in one text; a job of 1,000 roles with ports has 20,000."""

_STRING: Final = compile_pattern(r'"(?:[^"\\\r\n]|\\[^\r\n])*+"?')
_NESTING: Final = compile_pattern(r'"(?:[^"\\\r\n]|\\[^\r\n])*+"?|[{}\[\]]')
_SUSPICIOUS: Final = re.compile(
    r"[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]|\\u(?:0000|[dD][89a-fA-F]|20|FE|fe)"
)
_BIG: Final = 16
"""From this many characters on a number might be more than a JSON reader can hold exactly."""


class Source:
    """A JSON text that was read: its `value`, what was tolerated in it, and where everything stands.

    `repeated` are the pointers of keys that are there twice, of which the last counts; `documents` is how
    many the text holds, of which this is one.  In a suspicious text may be what is refused.
    """

    def __init__(self, text: str, cleaned: CleanedText, value: object) -> None:
        self.text = text
        self.cleaned = cleaned
        self.value = value
        self.repeated: tuple[str, ...] = ()
        self.is_suspicious = False
        self.documents = 1

    @property
    def notes(self) -> tuple[Note, ...]:
        """Return the notes on what was tolerated in the text."""
        repeated = (Note("repeated_key", each, {"key": spans.split(each)[-1]}) for each in self.repeated)
        return (*self.cleaned.notes, *repeated)

    @cached_property
    def tree(self) -> Node:
        """Return the offsets of every value."""
        return spans.tree(self.cleaned.strict)

    def position(self, pointer: str, *, key: bool = False) -> Position:
        """Line and column of the value at `pointer` (or of its key), or of what is nearest around it."""
        node, found = spans.find(self.tree, spans.split(pointer))
        return self.at(node.key_start if key and found else node.start)

    def at(self, offset: int) -> Position:
        """Return line and column of an offset."""
        return position(self.text, offset)


def decode(data: bytes) -> str:
    """Return the text of an uploaded file; raises Refused when it is too long or not Unicode."""
    if len(data) > MAX_BYTES:
        raise _refuse_size(len(data))
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        good = data[: error.start].decode(encoding, "ignore")
        line, column = position(good, len(good))
        params = {"byte": f"0x{data[error.start]:02X}"}
        raise Refused((Problem("not_unicode", "", line, column, params, source=syntax.SOURCE),)) from None


def check_size(text: str) -> None:
    """Raise Refused when `text` is over 1 MiB or can't be stored as Unicode."""
    if len(text) * 4 <= MAX_BYTES and text.isascii():
        return
    try:
        size = len(text) if len(text) > MAX_BYTES else len(text.encode())
    except UnicodeEncodeError as error:
        raise Refused((_problem(text, "lone_surrogate", error.start, syntax.SOURCE),)) from None
    if size > MAX_BYTES:
        raise _refuse_size(size)


@read_once
def read(document: Document, *, repeats: bool = False) -> Source:
    """Read JSON; raises Refused when it is not JSON, even leniently, or when it is hostile.

    With `repeats`, the last of equal keys counts where it replaces no text.
    """
    source = _load(document)
    if source.is_suspicious:
        _raise_causes(source, examine(source.tree, source.cleaned.strict, repeats=repeats))
        source.repeated = tuple(find_repeated_keys(source.tree, source.cleaned.strict))
    return source


@read_once
def _load(document: Document) -> Source:
    """Read JSON that may hold what is refused."""
    text = document.text
    check_size(text)
    _check_amount(text, text)
    reader = _Reader()
    try:
        value, cleaned = reader.load(text), CleanedText(text, text)
    except (ValueError, RecursionError):
        cleaned = clean_up(text)
        _check_amount(text, cleaned.strict)
        value, cleaned = _load_cleaned(text, cleaned, reader)
    source = Source(text, cleaned, value)
    source.is_suspicious = reader.suspicious or bool(_SUSPICIOUS.search(text))
    return source


class _Reader:
    """The standard decoder, told to notice what it would let pass."""

    def __init__(self) -> None:
        self.suspicious = False

    def load(self, text: str, *, strict: bool = True) -> object:
        """Decode JSON `text`; without `strict`, control characters in strings are let pass."""
        self.suspicious = False
        decoder = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_int=self._integer,
            parse_float=self._float,
            parse_constant=self._constant,
            strict=strict,
        )
        value: object = decoder.decode(text)
        return value

    def _object(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        members = dict(pairs)
        self.suspicious = self.suspicious or len(members) != len(pairs)
        return members

    def _integer(self, digits: str) -> int:
        if len(digits) < _BIG:
            return int(digits)
        self.suspicious = True
        return int(digits) if len(digits) < 2 * _BIG else 0

    def _float(self, digits: str) -> float:
        self.suspicious = self.suspicious or len(digits) >= _BIG or "e" in digits or "E" in digits
        return float(digits)

    def _constant(self, name: str) -> object:
        self.suspicious = True
        return 0


def _load_cleaned(text: str, cleaned: CleanedText, reader: _Reader) -> tuple[object, CleanedText]:
    """Read the strict text; raises Refused with the cause when even that is not JSON."""
    try:
        return reader.load(cleaned.strict), cleaned
    except json.JSONDecodeError as error:
        stop = error
    if cleaned.tabs and stop.msg.startswith("Invalid control character"):
        try:
            value = reader.load(cleaned.strict, strict=False)
        except json.JSONDecodeError as error:
            stop = error
        else:
            return value, replace(cleaned, notes=(*cleaned.notes, Note("tolerated_tabs")))
    cause = syntax.diagnose(cleaned.bare, stop)
    raise Refused((_problem(text, cause.code, cause.offset, syntax.SOURCE, cause.params),))


def _check_amount(text: str, strict: str) -> None:
    """Raise Refused when there are more values, or they lie deeper, than any job file needs."""
    brackets, commas = _count_brackets(strict), strict.count(",")
    if brackets <= MAX_DEPTH and brackets + commas <= MAX_VALUES:
        return
    bare = _STRING.sub("", strict)
    brackets, commas = _count_brackets(bare), bare.count(",")
    if brackets + commas > MAX_VALUES:
        raise refusal("too_many_values", CONSOLE, most=MAX_VALUES)
    if brackets <= MAX_DEPTH:
        return
    depth = 0
    for match in _NESTING.finditer(strict):
        if match[0] in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise Refused((_problem(text, "too_deep", match.start(), CONSOLE, {"most": MAX_DEPTH}),))
        elif match[0] in "]}":
            depth -= 1


def _count_brackets(text: str) -> int:
    return text.count("[") + text.count("{")


def _raise_causes(source: Source, causes: Iterable[tuple[str, syntax.Cause]]) -> None:
    """Raise Refused when there are causes."""
    problems = []
    for pointer, cause in causes:
        line, column = source.at(cause.offset)
        problems.append(Problem(cause.code, pointer, line, column, cause.params, source=syntax.SOURCE))
    if problems:
        raise Refused(tuple(problems))


def _problem(text: str, code: str, offset: int, source: str, params: Params | None = None) -> Problem:
    """Return a problem of the whole text at `offset`."""
    line, column = position(text, offset)
    return Problem(code, "", line, column, params or {}, source=source)


def _refuse_size(size: int) -> Refused:
    return refusal("too_large", CONSOLE, bytes=size, most=MAX_BYTES)


def position(text: str, offset: int) -> Position:
    """Return line and column of an offset; counting is quick, and a table of a million lines is not small."""
    before = offset - int(text[offset - 1 : offset + 1] == "\r\n")
    feeds, returns = text.count("\n", 0, before), text.count("\r", 0, before)
    line = 1 + feeds + returns - text.count("\r\n", 0, before)
    column = offset - max(text.rfind("\n", 0, before), text.rfind("\r", 0, before))
    return line, column - int(line == 1 and text.startswith("\ufeff") and column > 1)

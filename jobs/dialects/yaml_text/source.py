"""Reading YAML: lenient where nothing has to be guessed, exact about the rest.

The same shape as `jobs.dialects.source` has for JSON: the value, what was tolerated, and places on demand.
Of a stream with several documents one is read, if somebody picks it; else the stream is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final, TypeAlias

import yaml
from yaml import MarkedYAMLError

from jobs.dialects.base import Note, Problem, Refused
from jobs.dialects.fields import CONSOLE
from jobs.dialects.json_cleanup import CleanedText
from jobs.dialects.source import Source, check_size
from jobs.dialects.syntax import Cause, name_of
from jobs.dialects.yaml_text.rules import YamlRules
from jobs.dialects.yaml_text.values import StopReading, YamlNode, YamlReader, trees

SOURCE: Final = "YAML 1.2"

_FORBIDDEN: Final = re.compile(
    r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_DIRECTIVE: Final = re.compile(r"^%(?!YAML )", re.MULTILINE)
_ODD_BLANK: Final = re.compile(r"[ ]*([\t\u00a0\u3000])")
_CAUSES: Final = (
    ("mapping values are not allowed", "yaml_colon"),
    ("block sequence entries are not allowed", "yaml_dash"),
    ("could not find expected ':'", "yaml_no_colon"),
    ("did not find expected key", "yaml_indentation"),
    ("did not find expected '-' indicator", "yaml_indentation"),
    ("did not find expected ',' or", "yaml_unclosed"),
    ("escape", "yaml_escape"),
    ("hexdecimal", "yaml_escape"),
    ("tag", "yaml_tag"),
)
_QUOTED: Final = "while scanning a quoted scalar"


def forbidden(text: str) -> Cause | None:
    """Return a character or directive that may not stand in `text`, if there is one."""
    if found := _FORBIDDEN.search(text):
        return Cause("control_character", found.start(), {"character": name_of(found[0])})
    if found := _DIRECTIVE.search(text):
        return Cause("yaml_directive", found.start())
    return None


def diagnose(text: str, error: MarkedYAMLError) -> Cause:
    """Return the cause for which the YAML parser stopped in `text` with `error`."""
    problem, context = error.problem or "", error.context or ""
    offset = error.problem_mark.index if error.problem_mark else len(text)
    opened = error.context_mark.index if error.context_mark else offset
    line = {"opened_line": text.count("\n", 0, opened) + 1}
    if context == _QUOTED and "escape" not in problem and "hexdecimal" not in problem:
        return Cause("yaml_unclosed_quote", opened)
    start = text.rfind("\n", 0, offset) + 1
    if odd := _ODD_BLANK.match(text, start, offset + 1):
        params = {} if odd[1] == "\t" else {"character": name_of(odd[1])}
        return Cause("yaml_tab", odd.start(1), params)
    code = next((code for words, code in _CAUSES if words in problem), "yaml_syntax")
    if code != "yaml_syntax":
        return Cause(code, offset, line if code == "yaml_unclosed" else {})
    if "cannot start any token" in problem and offset < len(text):
        return Cause("yaml_character", offset, {"character": name_of(text[offset])})
    return Cause(code, offset)


Pick: TypeAlias = Callable[[Sequence[object]], int]
"""Which of several documents is meant, by its place among them; raises Refused when that is not clear."""

_BOM: Final = "\ufeff"
_OURS: Final = frozenset({"too_deep", "too_many_values", "yaml_documents", "expands_too_far"})


class YamlSource(Source):
    """A YAML text that was read by `rules`; `number` is the place of its document in the stream."""

    def __init__(self, text: str, cleaned: CleanedText, value: object, rules: YamlRules, number: int) -> None:
        super().__init__(text, cleaned, value)
        self.rules = rules
        self._pick_document = number

    @cached_property
    def tree(self) -> YamlNode:
        """Return the offsets of every value."""
        return trees(self.cleaned.strict, self.rules)[self._pick_document]


def read(text: str, rules: YamlRules, pick: Pick | None = None) -> YamlSource:
    """Read `text`; raises Refused when it is not YAML, or when it is hostile."""
    check_size(text)
    cleaned = _blank_bom(text)
    place = Source(text, cleaned, None)
    if cause := forbidden(cleaned.strict):
        raise Refused((_problem(place, "", cause),))
    reader = YamlReader(cleaned.strict, rules)
    try:
        reader.read()
    except yaml.MarkedYAMLError as error:
        raise Refused((_problem(place, "", diagnose(cleaned.strict, error)),)) from None
    except StopReading as stop:
        found = [(stop.pointer, stop.cause)] if stop.cause else reader.faults
        raise Refused(tuple(_problem(place, *fault) for fault in found)) from None
    if reader.faults:
        raise Refused(tuple(_problem(place, *fault) for fault in reader.faults))
    number = _pick_document(reader, place, pick)
    source = YamlSource(text, cleaned, reader.documents[number], rules, number)
    source.documents = sum(value is not None for value in reader.documents)
    return source


def _pick_document(reader: YamlReader, place: Source, pick: Pick | None) -> int:
    """Return the document that is meant, of those that are not empty."""
    said = [number for number, value in enumerate(reader.documents) if value is not None]
    if not said:
        raise Refused((_problem(place, "", Cause("empty_text", 0)),))
    if len(said) == 1:
        return said[0]
    if pick is None:
        cause = Cause("yaml_documents", reader.starts[said[1]], {"count": len(said)})
        raise Refused((_problem(place, "", cause),))
    return said[pick([reader.documents[number] for number in said])]


def _blank_bom(text: str) -> CleanedText:
    """Return the text with a line break for a byte order mark."""
    if not text.startswith(_BOM):
        return CleanedText(text, text)
    strict = "\n" + text[1:]
    return CleanedText(strict, strict, (Note("tolerated_bom", params={"count": 1}),))


def _problem(place: Source, pointer: str, cause: Cause) -> Problem:
    line, column = place.at(cause.offset)
    source = CONSOLE if cause.code in _OURS else SOURCE
    return Problem(cause.code, pointer, line, column, cause.params, source=source)

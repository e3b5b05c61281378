"""Reading YAML: lenient where nothing has to be guessed, exact about the rest.

The same shape as `jobs.dialects.source` has for JSON: the value, what was tolerated, and places on demand.
Of a stream with several documents one is read, if somebody picks it; else the stream is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final, TypeAlias

import yaml

from jobs.dialects.base import Note, Problem, Refused
from jobs.dialects.fields import CONSOLE
from jobs.dialects.source import Source, check_size
from jobs.dialects.syntax import Cause
from jobs.dialects.tidy import Tidied
from jobs.dialects.yaml_text import faults
from jobs.dialects.yaml_text.rules import Rules
from jobs.dialects.yaml_text.tree import YamlNode, trees
from jobs.dialects.yaml_text.values import Reader, StopReading

Pick: TypeAlias = Callable[[Sequence[object]], int]
"""Which of several documents is meant, by its place among them; raises Refused when that is not clear."""

_BOM: Final = "\ufeff"
_OURS: Final = frozenset({"too_deep", "too_many_values", "yaml_documents", "expands_too_far"})


class YamlSource(Source):
    """A YAML text that was read by `rules`; `number` is the place of its document in the stream."""

    def __init__(self, text: str, tidied: Tidied, value: object, rules: Rules, number: int) -> None:
        super().__init__(text, tidied, value)
        self.rules = rules
        self._number = number

    @cached_property
    def tree(self) -> YamlNode:
        """The offsets of every value."""
        return trees(self.tidied.strict, self.rules)[self._number]


def read(text: str, rules: Rules, pick: Pick | None = None) -> YamlSource:
    """Read `text`; raises Refused when it is not YAML, or when it is hostile."""
    check_size(text)
    tidied = _tidied(text)
    place = Source(text, tidied, None)
    if cause := faults.forbidden(tidied.strict):
        raise Refused((_problem(place, "", cause),))
    reader = Reader(tidied.strict, rules)
    try:
        reader.read()
    except yaml.MarkedYAMLError as error:
        raise Refused((_problem(place, "", faults.diagnose(tidied.strict, error)),)) from None
    except StopReading as stop:
        found = [(stop.pointer, stop.cause)] if stop.cause else reader.faults
        raise Refused(tuple(_problem(place, *fault) for fault in found)) from None
    if reader.faults:
        raise Refused(tuple(_problem(place, *fault) for fault in reader.faults))
    number = _number(reader, place, pick)
    source = YamlSource(text, tidied, reader.documents[number], rules, number)
    source.documents = sum(value is not None for value in reader.documents)
    return source


def _number(reader: Reader, place: Source, pick: Pick | None) -> int:
    """The document that is meant, of those that are not empty."""
    said = [number for number, value in enumerate(reader.documents) if value is not None]
    if not said:
        raise Refused((_problem(place, "", Cause("empty_text", 0)),))
    if len(said) == 1:
        return said[0]
    if pick is None:
        cause = Cause("yaml_documents", reader.starts[said[1]], {"count": len(said)})
        raise Refused((_problem(place, "", cause),))
    return said[pick([reader.documents[number] for number in said])]


def _tidied(text: str) -> Tidied:
    """The text with a line break for a byte order mark."""
    if not text.startswith(_BOM):
        return Tidied(text, text)
    strict = "\n" + text[1:]
    return Tidied(strict, strict, (Note("tolerated_bom", params={"count": 1}),))


def _problem(place: Source, pointer: str, cause: Cause) -> Problem:
    line, column = place.at(cause.offset)
    source = CONSOLE if cause.code in _OURS else faults.SOURCE
    return Problem(cause.code, pointer, line, column, cause.params, source=source)

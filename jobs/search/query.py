"""The query line of the list of jobs: `state:failed owner:me gpu>4 loss` as terms, and back.

Words stand for a part of the name; a filter is a key, an operator and a value, which may be quoted.  All must
hold, but of several states, owners or workspaces one.  A minus before a term excludes what it matches.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date
from difflib import get_close_matches
from enum import StrEnum
from typing import Final

WORD: Final = ""
"""The key of a plain word."""

LONGEST: Final = 1024
MOST_TERMS: Final = 30


class Kind(StrEnum):
    """Kinds of values."""

    TEXT = "text"
    NUMBER = "number"
    TIME = "time"
    CHOICE = "choice"
    NUMBER_OR_TEXT = "number or text"


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter: its key, the kind of its values, and an example of it."""

    key: str
    kind: Kind
    example: str
    choices: tuple[str, ...] = ()


STATE_WORDS: Final = (
    *("waiting", "queued", "submitting", "pending"),
    *("running", "succeeded", "failed", "stopped", "lost", "replicas-failed"),
)

FILTERS: Final = (
    Filter("state", Kind.CHOICE, "state:failed", STATE_WORDS),
    Filter("owner", Kind.TEXT, "owner:me"),
    Filter("workspace", Kind.TEXT, "workspace:vision"),
    Filter("cluster", Kind.TEXT, "cluster:slurm"),
    Filter("quota", Kind.TEXT, "quota:default"),
    Filter("tag", Kind.TEXT, "tag:nlp"),
    Filter("gpu", Kind.NUMBER_OR_TEXT, "gpu>4"),
    Filter("replicas", Kind.NUMBER, "replicas>1"),
    Filter("priority", Kind.NUMBER, "priority>5"),
    Filter("since", Kind.TIME, "since:7d"),
    Filter("until", Kind.TIME, "until:2026-01-31"),
    Filter("command", Kind.TEXT, 'command:"train.py"'),
    Filter("description", Kind.TEXT, "description:baseline"),
    Filter("sweep", Kind.TEXT, "sweep:ID"),
    Filter("is", Kind.CHOICE, "is:starred", ("starred", "idle")),
)
BY_KEY: Final = {each.key: each for each in FILTERS}

COMPARISONS: Final = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}

_TERM: Final = re.compile(
    r'(?P<minus>-?)(?:(?P<key>[A-Za-z_]+)(?P<operator>:|>=|<=|>|<|=))?(?P<value>"[^"]*"?|\S+)|(?P<bare>\S+)'
)
_AGO: Final = re.compile(r"\d{1,5}[hdw]")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_NUMBER: Final = re.compile(r"\d{1,9}")
_PLAIN: Final = re.compile(r'[^\s":<>=-][^\s":<>=]*')


@dataclass(frozen=True, slots=True)
class Term:
    """A word or a filter; `operator` is `:` or a comparison."""

    key: str
    value: str
    operator: str = ":"
    is_negated: bool = False

    def __str__(self) -> str:
        """Write the term as the query line has it."""
        minus = "-" if self.is_negated else ""
        is_plain = _PLAIN.fullmatch(self.value) or (self.key and " " not in self.value)
        value = self.value if is_plain else f'"{self.value}"'
        return f"{minus}{self.key}{self.operator if self.key else ''}{value}"


@dataclass(frozen=True, slots=True)
class QueryProblem:
    """A term that means nothing; `code` is one of `jobs.messages.searches`, `text` the term as it stands."""

    code: str
    text: str
    key: str = ""
    suggestion: str = ""
    example: str = ""

    @property
    def params(self) -> dict[str, str]:
        """Return what its sentence names."""
        return {
            "text": self.text,
            "key": self.key,
            "suggestion": self.suggestion,
            "example": self.example,
        }


@dataclass(frozen=True, slots=True)
class JobQuery:
    """The terms of a query line, and what was wrong with others."""

    terms: tuple[Term, ...] = ()
    problems: tuple[QueryProblem, ...] = ()

    def __str__(self) -> str:
        """Write the query line."""
        return " ".join(map(str, self.terms))

    def values(self, key: str) -> list[str]:
        """Return the values of a filter that are not negated."""
        return [each.value for each in self.terms if each.key == key and not each.is_negated]

    def toggle(self, term: Term) -> JobQuery:
        """Return the query without the term, or with it where it is not there."""
        rest = tuple(each for each in self.terms if each != term)
        return replace(self, terms=rest if len(rest) < len(self.terms) else (*rest, term))

    def set_only(self, key: str, value: str) -> JobQuery:
        """Return the query with this value alone of a filter, or without the filter if it is empty."""
        rest = tuple(each for each in self.terms if each.key != key)
        return replace(self, terms=(*rest, Term(key, value)) if value else rest)

    def has(self, term: Term) -> bool:
        """Tell whether the term is in it."""
        return term in self.terms


EVERYTHING: Final = JobQuery()


def parse(text: str) -> JobQuery:
    """Return the terms of a query line; what can't be understood is a problem, and is left out."""
    terms: list[Term] = []
    problems: list[QueryProblem] = []
    for match in list(_TERM.finditer(text[:LONGEST]))[:MOST_TERMS]:
        found = _read(match)
        (terms if isinstance(found, Term) else problems).append(found)  # type: ignore[arg-type]
    return JobQuery(tuple(dict.fromkeys(terms)), tuple(problems))


def _read(match: re.Match[str]) -> Term | QueryProblem:
    value = (match["value"] or match["bare"]).replace('"', "")
    is_negated = bool(match["minus"]) and bool(value)
    if match["key"] is None:
        return Term(WORD, value or match[0], is_negated=is_negated)
    key = match["key"].lower()
    if key not in BY_KEY:
        close = get_close_matches(key, BY_KEY, 1)
        return QueryProblem("unknown_filter", match[0], key, "".join(close))
    operator = ":" if match["operator"] == "=" else match["operator"]
    term = Term(key, value.lower() if BY_KEY[key].choices else value, operator, is_negated)
    return _check(term, match[0])


def _check(term: Term, text: str) -> Term | QueryProblem:
    """Return the term, or what is wrong with its value."""
    known = BY_KEY[term.key]
    if known.kind is Kind.CHOICE and term.value not in known.choices:
        close = get_close_matches(term.value, known.choices, 1)
        suggestion, choices = "".join(close), ", ".join(known.choices)
        return QueryProblem("unknown_value", text, term.key, suggestion, choices)
    is_number = bool(_NUMBER.fullmatch(term.value))
    fits = {Kind.NUMBER: is_number, Kind.TIME: _is_time(term.value)}.get(known.kind, bool(term.value))
    compares = term.operator in COMPARISONS
    if not fits or (compares and not (is_number and known.kind in {Kind.NUMBER, Kind.NUMBER_OR_TEXT})):
        return QueryProblem("bad_value", text, term.key, example=known.example)
    return term


def _is_time(text: str) -> bool:
    """Tell whether it is a day, or so many hours, days or weeks ago."""
    try:
        return bool(_AGO.fullmatch(text) or (_DATE.fullmatch(text) and date.fromisoformat(text)))
    except ValueError:
        return False

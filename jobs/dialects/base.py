"""The interface of a dialect: text in, JobSpec out, and back, with every problem and loss named.

Problems and notes are codes with parameters; the sentence is made at the edge (`jobs.messages`), in
the reader's language.  Positions are worked out only when there is a problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from jobs.spec import JobSpec

if TYPE_CHECKING:
    from jobs.dialects.document import Document

MAX_BYTES: Final = 1024 * 1024
"""A job file over 1 MiB is refused before parsing."""

MOST_JOBS: Final = 200
"""One file stands for at most so many jobs."""

Params: TypeAlias = Mapping[str, str | int | float | None]


Position: TypeAlias = tuple[int, int]
"""Line and column, both from 1, in code points."""


@dataclass(frozen=True, slots=True)
class Fix:
    """A change that would cure a problem: set the value at `pointer` (None: remove it).

    With a `key` the member at `pointer` gets that name instead, and its value stays as it is.
    """

    pointer: str
    value: object = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """Something that a person can do about a problem, by one click: `kind` is a change of the job that
    `jobs.submission.checks.feasibility` knows, `value` what it sets, `params` fill its label.
    """

    kind: str
    value: str = ""
    params: Params = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Problem:
    """Why the text can't be accepted.

    `pointer` is RFC 6901 (`""` is the whole text); `line` and `column` count from 1, in code points;
    `source` names the rule's origin (a vendor's page or release).  `actions` are ways out of it.
    """

    code: str
    pointer: str = ""
    line: int | None = None
    column: int | None = None
    params: Params = field(default_factory=dict)
    fix: Fix | None = None
    source: str = ""
    actions: tuple[Action, ...] = ()

    def at(self, position: Position) -> Problem:
        """Return the problem with its line and column."""
        return replace(self, line=position[0], column=position[1])


@dataclass(frozen=True, slots=True)
class Note:
    """A remark on something tolerated, ignored, approximated or lost; the job is accepted all the same.

    `parse` leaves `line` and `column` empty, since working them out costs more than the reading;
    whoever shows a note asks the dialect's `locate`.
    """

    code: str
    pointer: str = ""
    params: Params = field(default_factory=dict)
    fix: Fix | None = None
    line: int | None = None
    column: int | None = None

    def at(self, position: Position | None) -> Note:
        """Return the note with its line and column, where it has any."""
        return replace(self, line=position[0], column=position[1]) if position else self


@dataclass(frozen=True, slots=True)
class Array:
    """The one text is for many jobs, one for each of `indexes`, of which `at_once` may run at a time.

    `pointer` is where it says so; `named` are those values, by their pointers, in which the index stands.
    """

    indexes: tuple[int, ...]
    at_once: int | None = None
    step: int = 1
    pointer: str = ""
    named: Mapping[str, str] = field(default_factory=dict)

    @property
    def most_at_once(self) -> int:
        """Return the number of jobs that may run at a time, at most all."""
        return min(self.at_once or len(self.indexes), len(self.indexes))


@dataclass(frozen=True, slots=True)
class Parsed:
    """A text that was understood.

    `extras` is what has no neutral meaning, kept for export under this dialect's name and never
    executed.  `secrets` maps each SecretRef's name to the value taken out of the text, and `text` is
    the text with placeholders in their place.  With an `array`, `spec` is what its jobs have in common.
    """

    spec: JobSpec
    extras: Mapping[str, object] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    text: str = ""
    array: Array | None = None


@dataclass(frozen=True, slots=True)
class Rendered:
    """A JobSpec written in a dialect, and what could not be said in it."""

    document: Document
    notes: tuple[Note, ...] = ()

    @property
    def text(self) -> str:
        """Return the text that was written."""
        return self.document.text


@dataclass(frozen=True, slots=True)
class Guess:
    """A dialect's confidence that a text is its own, from 1 to 100 (beyond doubt), and the code of why."""

    confidence: int
    why: str


class Refused(Exception):
    """The text can't be accepted; carries every problem found, in the order of the text."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(f"{len(problems)} problems, first {problems[0].code} at {problems[0].pointer!r}")
        self.problems = problems


def refusal(code: str, source: str = "", fix: Fix | None = None, **params: str | float | None) -> Refused:
    """Return the refusal of a text as a whole, with one problem."""
    return Refused((Problem(code, "", 1, 1, params, fix, source),))


class Dialect(Protocol):
    """One way of writing jobs.  Implementations are stateless modules or objects."""

    name: str
    """Stable, lower case: `openpai-v1`."""

    def sniff(self, document: Document, /) -> Guess | None:
        """Return whether `document` is of this dialect, and why; None when it is not.  Never raises."""

    def parse(self, document: Document, /) -> Parsed:
        """Read `document`; raises Refused with all problems at once."""

    def render(self, spec: JobSpec, extras: Mapping[str, object], base: Document | None = None) -> Rendered:
        """Write `spec`; with `base`, patch its text, keeping order, comments and unknown keys.

        `extras` is what `parse` of this dialect returned; with `base` the text's own are kept instead.
        """

    def locate(self, document: Document, pointer: str) -> Position | None:
        """Return the position of `pointer`, or of the nearest thing around it; None in unreadable text."""

    def apply_fixes(self, document: Document, fixes: Iterable[Fix]) -> str:
        """The text with `fixes` made and every other character kept; raises Refused on unreadable text."""

    def with_secrets(self, document: Document, values: Mapping[str, str]) -> str:
        """Return the text with the placeholders of those secrets that `values` holds filled in again."""

    def schema(self) -> Mapping[str, object]:
        """Return the dialect's JSON Schema (2020-12), for completion and hover in the editor."""

"""A job file as somebody brought it: read once, where it comes in, and handed down from there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NoReturn

from jobs.dialects import registry
from jobs.dialects.base import Dialect, Fix, Note, Parsed, Position, Problem, Refused, Rendered
from jobs.dialects.expansion_limit import ExpansionAllowance
from jobs.dialects.positions import OF_JOB_SPEC, FieldPositions
from jobs.dialects.reading_cache import read_once
from jobs.spec import JobSpec


class Document:
    """The text of a job file, its dialect, and everything that was read of it, each when first asked for.

    It holds the secrets that stand in the text: it is never stored, and neither its repr nor an error page
    shows them.  `given` is the dialect that whoever brought the text named, None where nobody did.
    """

    def __init__(self, text: str, dialect: str | None = None) -> None:
        self.text: Final = text
        self.given = dialect
        self.room = ExpansionAllowance()
        """What references in the text may still add to it."""
        self.readings: dict[tuple[object, ...], tuple[object, tuple[object, ...]]] = {}
        """See `reading_cache`."""
        self._parsed: Parsed | None = None

    def __repr__(self) -> str:
        return f"<Document of {len(self.text)} characters, dialect {self.given or 'not given'}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a document may hold secrets and is never stored")

    @property
    def candidates(self) -> tuple[registry.Detected, ...]:
        """Return the dialects that the text may be written in, surest first."""
        return _detect(self)

    @property
    def dialect(self) -> str:
        """The name of the dialect, detected unless it was given; raises Refused when it is not clear."""
        return self.given or registry.name_of(self)

    @property
    def known_dialect(self) -> str | None:
        """Return the name of the dialect; None when it is not clear."""
        try:
            return self.dialect
        except Refused:
            return None

    @property
    def parsed(self) -> Parsed:
        """Return the job that the text describes; raises Refused with every problem."""
        return self._parsed or self.written

    @property
    def written(self) -> Parsed:
        """Return the job as the text itself says it, whatever was looked up; raises Refused."""
        return _parse(self, self._reader)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Why the text can't be accepted."""
        try:
            _parsed = self.parsed
        except Refused as refused:
            return refused.problems
        return ()

    @property
    def places(self) -> FieldPositions:
        """Return the positions of its JobSpec's fields; raises Refused."""
        return FieldPositions(self.locate, self.parsed.spec, registry.fields(self.dialect))

    def locate(self, pointer: str) -> Position | None:
        """Return where `pointer`, or the nearest thing around it, stands; None in unreadable text."""
        return self._reader.locate(self, pointer)

    def locate_notes(self, notes: Iterable[Note]) -> tuple[Note, ...]:
        """Return notes on the text with lines and columns, for somebody who looks at them."""
        return tuple(map(self._locate_note, notes))

    def _locate_note(self, note: Note) -> Note:
        if note.line is not None or not note.pointer:
            return note
        return self.places.locate(note) if note.code in OF_JOB_SPEC else note.at(self.locate(note.pointer))

    def pin(self, dialect: str | None) -> Document:
        """Return the same text, taken for `dialect`, or for what it looks like."""
        return self if dialect == self.given else self._copy(dialect, None)

    def with_parsed(self, parsed: Parsed) -> Document:
        """Return the same text, which says `parsed` once what it names was looked up."""
        return self._copy(self.dialect, parsed)

    def _copy(self, dialect: str | None, parsed: Parsed | None) -> Document:
        made = Document(self.text, dialect)
        made.room, made.readings, made._parsed = self.room, self.readings, parsed
        return made

    def apply_fixes(self, fixes: Iterable[Fix]) -> Document:
        """Return the text with `fixes` made; raises Refused on unreadable text."""
        return Document(self._reader.apply_fixes(self, fixes), self.dialect)

    def rewrite(self, spec: JobSpec) -> Document:
        """Return the text made to say `spec`, with the secret values that stood in it; raises Refused."""
        return self.render(spec).document.fill(self.parsed.secrets)

    def fill(self, secrets: Mapping[str, str]) -> Document:
        """Return the text with the placeholders of those secrets filled in that `secrets` has values for."""
        text = self._reader.with_secrets(self, secrets)
        return self if text == self.text else Document(text, self.dialect)

    @property
    def sealed(self) -> Document:
        """The job file with placeholders in the place of secrets, as it may be stored; raises Refused."""
        text = self.parsed.text
        return self if text == self.text else Document(text, self.dialect)

    def render(self, spec: JobSpec) -> Rendered:
        """Return the text made to say `spec`, new secrets as placeholders; raises Refused."""
        return self._reader.render(spec, self.parsed.extras, base=self)

    @property
    def _reader(self) -> Dialect:
        return registry.get(self.dialect)


@read_once
def _detect(document: Document) -> tuple[registry.Detected, ...]:
    return registry.detect(document)


@read_once
def _parse(document: Document, dialect: Dialect) -> Parsed:
    return dialect.parse(document)

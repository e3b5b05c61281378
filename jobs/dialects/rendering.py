"""JobSpec → text, anew or into a text that is already there: the part that all dialects share.

A patch is made from the difference between what the text said and what it shall say, then read back: if
the result says anything else, the text is written anew, with a note.  What is lost is found by reading
the result: nothing can be lost without being told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, Protocol, TypeAlias

from jobs.dialects.base import Note, Parsed, Refused, Rendered
from jobs.dialects.difference import difference
from jobs.dialects.edit import edit
from jobs.dialects.losses import losses
from jobs.dialects.source import read
from jobs.spec import JobSpec

JsonObject: TypeAlias = dict[str, object]

OF_THE_TARGET: Final = frozenset(
    {"over_vendor_limit", "over_public_limit", "condition_unmet", "no_image", "needs_pyxis"}
)
"""Notes on what a dialect's own system would refuse, though the job may run elsewhere."""


class Form(Protocol):
    """What `render` needs of a dialect: reading, and writing by way of a document."""

    name: str

    def parse(self, text: str) -> Parsed:
        """See `base.Dialect`."""

    def document(self, spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
        """What is to be written, as JSON values."""

    def written(self, document: JsonObject) -> str:
        """The document as text."""

    def patched(self, base: str, before: JsonObject, after: JsonObject) -> str | None:
        """`base`, which says `before`, made to say `after`; None when that can't be done."""


def render(form: Form, spec: JobSpec, extras: Mapping[str, object], base: str | None = None) -> Rendered:
    """Write `spec`; every difference to what the text says of it is noted by its JobSpec path."""
    reader = _Reader(form)
    before = reader.parsed(base)
    if base is not None and before is not None:
        text = _patched(reader, spec, base, before)
        if text is not None:
            return Rendered(text, _losses(reader, spec, text))
        extras = {**before.extras, **extras}
    text = form.written(form.document(spec, extras))
    anew = () if base is None else (Note("written_anew"),)
    return Rendered(text, (*anew, *_losses(reader, spec, text)))


def write_json(document: JsonObject) -> str:
    """A JSON document as people indent it."""
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def patch_json(
    base: str, before: JsonObject, after: JsonObject, identities: Mapping[str, str], there: object = None
) -> str | None:
    """`Form.patched` for JSON; `identities` as in `difference`.

    `there` is the base's value, if the dialect calls elements of lists otherwise than the text does.
    """
    edits = difference(before, after, read(base, repeats=True).value if there is None else there, identities)
    return None if edits is None else edit(base, edits)


class _Reader:
    """Reads each text once, however often it is asked for."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self._known: dict[str, Parsed | Refused] = {}

    def parsed(self, text: str | None) -> Parsed | None:
        """What `text` says; None when it is refused."""
        said = self.read(text) if text is not None else None
        return said if isinstance(said, Parsed) else None

    def read(self, text: str) -> Parsed | Refused:
        """What `text` says, or why it is refused."""
        known = self._known.get(text)
        if known is None:
            try:
                known = self.form.parse(text)
            except Refused as refused:
                known = refused
            self._known[text] = known
        return known


def _patched(reader: _Reader, spec: JobSpec, base: str, before: Parsed) -> str | None:
    """`base` changed to say what `spec` says; None when that can't be done piece by piece."""
    form = reader.form
    wanted = form.document(spec, before.extras)
    text = form.patched(base, form.document(before.spec, before.extras), wanted)
    if text is None:
        return None
    after = reader.parsed(text)
    if after and after.spec == spec:
        return text
    fresh = reader.parsed(form.written(wanted))
    return text if (after and after.spec) == (fresh and fresh.spec) else None


def _losses(reader: _Reader, spec: JobSpec, text: str) -> tuple[Note, ...]:
    """What `text` does not say of `spec`, and what its target would not take.

    Problems of the text are needs that the person must fill.
    """
    said, name = reader.read(text), reader.form.name
    if isinstance(said, Parsed):
        refused = tuple(note for note in said.notes if note.code in OF_THE_TARGET)
        return (*losses(spec, said.spec, name), *refused)
    return tuple(
        Note("needs_value", problem.pointer, {**problem.params, "code": problem.code, "dialect": name})
        for problem in said.problems
    )

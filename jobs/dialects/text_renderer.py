"""JobSpec → text, anew or into a text that is already there: the part that all dialects share.

A patch is made from the difference between what the text said and what it shall say, then read back: if
the result says anything else, the text is written anew, with a note.  What is lost is found by reading
the result: nothing can be lost without being told.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from jobs.dialects.base import Note, Parsed, Refused, Rendered
from jobs.dialects.document import Document
from jobs.dialects.edit import difference, edit
from jobs.dialects.losses import losses
from jobs.dialects.source import read
from jobs.spec import JobSpec

JsonObject: TypeAlias = dict[str, object]

OF_THE_TARGET: Final = frozenset(
    {"over_vendor_limit", "over_public_limit", "condition_unmet", "no_image", "needs_pyxis"}
)
"""Notes on what a dialect's own system would refuse, though the job may run elsewhere."""


@dataclass(frozen=True, slots=True)
class Form:
    """The parts of a dialect that `render` needs: writing by way of JSON values.

    `document` makes what is to be written, `written` its text.  `patched` is the base, which says the first
    values, made to say the second; None when that can't be done.
    """

    name: str
    document: Callable[[JobSpec, Mapping[str, object]], JsonObject]
    written: Callable[[JsonObject], str]
    patched: Callable[[Document, JsonObject, JsonObject], str | None]


def render(form: Form, spec: JobSpec, extras: Mapping[str, object], base: Document | None = None) -> Rendered:
    """Write `spec`; every difference to what the text says of it is noted by its JobSpec path."""
    before = _parse_or_none(form, base) if base is not None else None
    if base is not None and before is not None:
        patched = _patch(form, spec, base, before)
        if patched is not None:
            return Rendered(patched, _losses(form, spec, patched))
        extras = {**before.extras, **extras}
    document = Document(form.written(form.document(spec, extras)), form.name)
    anew = () if base is None else (Note("written_anew"),)
    return Rendered(document, (*anew, *_losses(form, spec, document)))


def write_json(document: JsonObject) -> str:
    """Return a JSON document as people indent it."""
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def patch_json(
    base: Document, before: JsonObject, after: JsonObject, identities: Mapping[str, str], there: object = None
) -> str | None:
    """`Form.patched` for JSON; `identities` as in `difference`.

    `there` is the base's value, if the dialect calls elements of lists otherwise than the text does.
    """
    edits = difference(before, after, read(base, repeats=True).value if there is None else there, identities)
    return None if edits is None else edit(base, edits)


def _parse_or_none(form: Form, document: Document) -> Parsed | None:
    """Parse the document; None when it is refused."""
    try:
        return document.pin(form.name).written
    except Refused:
        return None


def _patch(form: Form, spec: JobSpec, base: Document, before: Parsed) -> Document | None:
    """Return `base` changed to say what `spec` says; None when that can't be done piece by piece."""
    wanted = form.document(spec, before.extras)
    text = form.patched(base, form.document(before.spec, before.extras), wanted)
    if text is None:
        return None
    patched = base if text == base.text else Document(text, form.name)
    after = _parse_or_none(form, patched)
    if after and after.spec == spec:
        return patched
    fresh = _parse_or_none(form, Document(form.written(wanted), form.name))
    return patched if (after and after.spec) == (fresh and fresh.spec) else None


def _losses(form: Form, spec: JobSpec, document: Document) -> tuple[Note, ...]:
    """Note the differences between the document and `spec`, and the limits of its target.

    Its problems are needs that the person must fill.
    """
    try:
        said = document.pin(form.name).written
    except Refused as refused:
        return tuple(
            Note("needs_value", each.pointer, {**each.params, "code": each.code, "dialect": form.name})
            for each in refused.problems
        )
    unwanted = tuple(note for note in said.notes if note.code in OF_THE_TARGET)
    return (*losses(spec, said.spec, form.name), *unwanted)

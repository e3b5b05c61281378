"""JobSpec → `CreateJob` JSON, anew or into a text that is already there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.dialects import rendering
from jobs.dialects.base import Rendered
from jobs.dialects.dlc import keys, reading
from jobs.dialects.dlc.document import plain
from jobs.dialects.dlc.job_types import with_known_types
from jobs.dialects.document import Document
from jobs.dialects.leftovers import put_back
from jobs.dialects.ours import kept
from jobs.dialects.ours.keys import NAME as OURS
from jobs.dialects.rendering import Form, JsonObject
from jobs.dialects.source import read
from jobs.dialects.spelling import respelled
from jobs.spec import JobSpec

NAME: Final = "dlc"

_IDENTITIES: Final = {"JobSpecs": "Type"}


def _patched(base: Document, before: JsonObject, after: JsonObject) -> str | None:
    return rendering.patch_json(base, before, after, _IDENTITIES, with_known_types(read(base).value))


def document(spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
    """The request and our own object, with `extras` put back and keys spelled as they were."""
    job = plain(spec, extras)
    ours = kept.written(reading.native(job), spec, extras)
    if ours:
        job[OURS] = ours
    put_back(job, extras, keys.NAMES)
    return respelled(job, extras)


def render(spec: JobSpec, extras: Mapping[str, object], base: Document | None = None) -> Rendered:
    """Write `spec`; what DLC can't say is noted by its JobSpec path."""
    form = Form(NAME, reading.parse, document, rendering.write_json, _patched)
    return rendering.render(form, spec, extras, base)

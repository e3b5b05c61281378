"""JobSpec → OpenPAI v1 JSON, anew or into a text that is already there."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from jobs.dialects import rendering
from jobs.dialects.base import Rendered
from jobs.dialects.document import Document
from jobs.dialects.openpai_v1 import keys
from jobs.dialects.openpai_v1.document import plain
from jobs.dialects.openpai_v1.reading import native, parse
from jobs.dialects.ours import kept
from jobs.dialects.rendering import Form, JsonObject
from jobs.spec import JobSpec

NAME: Final = "openpai-v1"

_IDENTITIES: Final = {rule.key: rule.identity for rule in (keys.TASK_ROLES, keys.PORT_LIST)}


def render(spec: JobSpec, extras: Mapping[str, object], base: Document | None = None) -> Rendered:
    """Write `spec`; what v1 can't say is noted by its JobSpec path."""
    patched = partial(rendering.patch_json, identities=_IDENTITIES)
    form = Form(NAME, parse, document, rendering.write_json, patched)
    return rendering.render(form, spec, extras, base)


def document(spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
    """The JSON object and among its extras our own, with `extras` put back."""
    job = plain(spec, extras)
    ours = kept.written(native(job), spec, extras)
    if ours:
        held = job[keys.EXTRAS.key]
        job[keys.EXTRAS.key] = {**(held if isinstance(held, dict) else {}), keys.OURS: ours}
    return job

"""JobSpec → AIHC `CreateJob` JSON, anew or into a text that is already there."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from jobs.dialects import rendering
from jobs.dialects.aihc import reading
from jobs.dialects.aihc.document import document
from jobs.dialects.base import Rendered
from jobs.dialects.document import Document
from jobs.dialects.rendering import Form
from jobs.spec import JobSpec

NAME: Final = "aihc"

_IDENTITIES: Final = {"envs": "name", "resources": "name", "labels": "key"}


def render(spec: JobSpec, extras: Mapping[str, object], base: Document | None = None) -> Rendered:
    """Write `spec`; what AIHC can't say is noted by its JobSpec path."""
    patched = partial(rendering.patch_json, identities=_IDENTITIES)
    form = Form(NAME, reading.parse, document, rendering.write_json, patched)
    return rendering.render(form, spec, extras, base)

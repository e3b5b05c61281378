"""JobSpec → AIHC `CreateJob` JSON, anew or into a text that is already there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.dialects import rendering
from jobs.dialects.aihc import reading
from jobs.dialects.aihc.document import document
from jobs.dialects.base import Parsed, Rendered
from jobs.dialects.document import Document
from jobs.dialects.rendering import JsonObject
from jobs.spec import JobSpec

NAME: Final = "aihc"

_IDENTITIES: Final = {"envs": "name", "resources": "name", "labels": "key"}


class _Form:
    """AIHC as `rendering` needs it."""

    name: str = NAME

    def parse(self, document: Document) -> Parsed:
        """See `rendering.Form`."""
        return reading.parse(document)

    def document(self, spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
        """See `rendering.Form`."""
        return document(spec, extras)

    def written(self, body: JsonObject) -> str:
        """See `rendering.Form`."""
        return rendering.write_json(body)

    def patched(self, base: Document, before: JsonObject, after: JsonObject) -> str | None:
        """See `rendering.Form`."""
        return rendering.patch_json(base, before, after, _IDENTITIES)


def render(spec: JobSpec, extras: Mapping[str, object], base: Document | None = None) -> Rendered:
    """Write `spec`; what AIHC can't say is noted by its JobSpec path."""
    return rendering.render(_Form(), spec, extras, base)

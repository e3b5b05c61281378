"""JobSpec → OpenPAI v2, anew or into a text that is already there, in the syntax of that text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.dialects import documents, rendering
from jobs.dialects.base import Parsed, Rendered
from jobs.dialects.openpai_v2 import keys, reading
from jobs.dialects.openpai_v2.document import document
from jobs.dialects.rendering import Document
from jobs.dialects.yaml_text.rules import JS_YAML
from jobs.spec import JobSpec

NAME: Final = "openpai-v2"


class _Form:
    """OpenPAI v2 as `rendering` needs it; a text without a base is YAML, unless it was JSON."""

    name: str = NAME

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json

    def parse(self, text: str) -> Parsed:
        """See `rendering.Form`."""
        return reading.parse(text)

    def document(self, spec: JobSpec, extras: Mapping[str, object]) -> Document:
        """See `rendering.Form`."""
        return document(spec, extras)

    def written(self, job: Document) -> str:
        """See `rendering.Form`."""
        order = [rule.key for rule in keys.JOB]
        places = {key: index for index, key in enumerate(order)}
        sorted_ = dict(sorted(job.items(), key=lambda member: places.get(member[0], len(order))))
        return documents.write(sorted_, as_json=self._as_json)

    def patched(self, base: str, before: Document, after: Document) -> str | None:
        """See `rendering.Form`."""
        return documents.patch(base, before, after, {}, JS_YAML)


def render(spec: JobSpec, extras: Mapping[str, object], base: str | None = None) -> Rendered:
    """Write `spec`; what v2 can't say is noted by its JobSpec path."""
    return rendering.render(_Form(as_json=bool(extras.get(reading.JSON))), spec, extras, base)

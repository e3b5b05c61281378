"""JobSpec → a Kubeflow manifest, anew or into a text that is already there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.dialects import documents, rendering
from jobs.dialects.base import Parsed, Rendered
from jobs.dialects.document import Document
from jobs.dialects.kubeflow import keys, reading
from jobs.dialects.kubeflow.document import document
from jobs.dialects.rendering import JsonObject
from jobs.dialects.yaml_text.rules import KUBERNETES
from jobs.spec import JobSpec

NAME: Final = "kubeflow"


class _Form:
    """Manifests as `rendering` needs them; `as_json` where the text that was there is JSON."""

    name: str = NAME

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json

    def parse(self, document: Document) -> Parsed:
        """See `rendering.Form`."""
        return reading.parse(document)

    def document(self, spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
        """See `rendering.Form`."""
        return document(spec, extras)

    def written(self, whole: JsonObject) -> str:
        """See `rendering.Form`."""
        return documents.write(whole, as_json=self._as_json)

    def patched(self, base: Document, before: JsonObject, after: JsonObject) -> str | None:
        """See `rendering.Form`."""
        if before[keys.KIND.key] != after[keys.KIND.key]:
            return None
        return documents.patch(base, before, after, keys.IDENTITIES, KUBERNETES, reading.pick)


def render(spec: JobSpec, extras: Mapping[str, object], base: Document | None = None) -> Rendered:
    """Write `spec`; what a manifest can't say is noted by its JobSpec path."""
    form = _Form(as_json=base is not None and documents.is_json(base.text))
    return rendering.render(form, spec, extras, base)

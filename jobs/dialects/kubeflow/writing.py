"""JobSpec → a Kubeflow manifest, anew or into a text that is already there."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from jobs.dialects import documents, rendering
from jobs.dialects.base import Rendered
from jobs.dialects.document import Document
from jobs.dialects.kubeflow import keys, reading
from jobs.dialects.kubeflow.document import document
from jobs.dialects.rendering import Form, JsonObject
from jobs.dialects.yaml_text.rules import KUBERNETES
from jobs.spec import JobSpec

NAME: Final = "kubeflow"


def _patched(base: Document, before: JsonObject, after: JsonObject) -> str | None:
    if before[keys.KIND.key] != after[keys.KIND.key]:
        return None
    return documents.patch(base, before, after, keys.IDENTITIES, KUBERNETES, reading.pick)


def render(spec: JobSpec, extras: Mapping[str, object], base: Document | None = None) -> Rendered:
    """Write `spec`, in the syntax of the base; what a manifest can't say is noted by its JobSpec path."""
    written = partial(documents.write, as_json=base is not None and documents.is_json(base.text))
    return rendering.render(Form(NAME, reading.parse, document, written, _patched), spec, extras, base)

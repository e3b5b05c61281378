"""Kubeflow's PyTorchJob, TFJob, MPIJob and XGBoostJob, in YAML or JSON.

docs/dialects.md describes how a manifest becomes a job.  Of each pod its main container is the role;
containers beside it, claims, accounts and rules of scheduling are kept for export and never executed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Final

from jobs.dialects import documents, text_renderer
from jobs.dialects.base import MAX_BYTES, Guess, Refused, Rendered
from jobs.dialects.common import YamlDialect
from jobs.dialects.document import Document
from jobs.dialects.field_map import rows
from jobs.dialects.kubeflow import keys, parser
from jobs.dialects.kubeflow.renderer import build_manifest
from jobs.dialects.text_renderer import Form, JsonObject
from jobs.dialects.yaml_text.rules import KUBERNETES
from jobs.spec import JobSpec

FIELDS: Final = rows(keys.for_tables())
"""Every key of a manifest, one row each; those of all roles stand under the worker of a PyTorchJob."""

# The boundary stands behind its word: Python finds a pattern sooner that begins with plain text.
_KIND: Final = re.compile(r"kind(?<=\bkind)[\"']?[ ]*:[ ]*[\"']?(PyTorchJob|TFJob|MPIJob|XGBoostJob)\b")
_GROUP: Final = re.compile(r"apiVersion(?<=\bapiVersion)[\"']?[ ]*:[ ]*[\"']?kubeflow\.org/")


class Kubeflow(YamlDialect):
    """The dialect."""

    name: str = "kubeflow"
    title = "Kubeflow job"
    schema_keys = keys.every()
    rules = KUBERNETES
    picks = (parser.pick,)
    parse = staticmethod(parser.parse)

    def sniff(self, document: Document) -> Guess | None:
        """Recognise a manifest by its kind, in a text that can't be read too."""
        if len(document.text) > MAX_BYTES or not (
            _KIND.search(document.text) or _GROUP.search(document.text)
        ):
            return None
        try:
            value = self.read(document).value
        except Refused:
            return Guess(50, "keys_seen") if _KIND.search(document.text) else None
        if not isinstance(value, dict):
            return None
        ours = str(value.get("apiVersion", "")).startswith(parser.GROUP)
        if parser.is_job(value):
            return Guess(100, "kind") if ours else Guess(90, "kind")
        return Guess(70, "api_group") if ours else None

    def render(self, spec: JobSpec, extras: Mapping[str, object], base: Document | None = None) -> Rendered:
        """See `base.Dialect`."""
        write = partial(documents.write, as_json=base is not None and documents.is_json(base.text))
        form = Form(self.name, build_manifest, write, _patch)
        return text_renderer.render(form, spec, extras, base)


def _patch(base: Document, before: JsonObject, after: JsonObject) -> str | None:
    """Return the text of `base`, which says `before`, made to say `after`; None for another kind."""
    if before[keys.KIND.key] != after[keys.KIND.key]:
        return None
    return documents.patch(base, before, after, keys.IDENTITIES, KUBERNETES, parser.pick)


DIALECT: Final = Kubeflow()

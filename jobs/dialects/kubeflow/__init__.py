"""Kubeflow's PyTorchJob, TFJob, MPIJob and XGBoostJob, in YAML or JSON.

How a manifest becomes a job is told in docs/dialects.md.  Of each pod its main container is the role;
containers beside it, claims, accounts and rules of scheduling are kept for export and never executed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from jobs.dialects import documents
from jobs.dialects.base import MAX_BYTES, Fix, Guess, Parsed, Position, Refused, Rendered
from jobs.dialects.document import Document
from jobs.dialects.field_map import rows
from jobs.dialects.kubeflow import keys, reading, writing
from jobs.dialects.schema import json_schema
from jobs.dialects.yaml_text.rules import KUBERNETES
from jobs.spec import JobSpec

FIELDS: Final = rows(keys.told())
"""What a manifest can say, key by key; what all roles share stands under the worker of a PyTorchJob."""

_KIND: Final = re.compile(r"[\"']?\bkind[\"']?[ ]*:[ ]*[\"']?(PyTorchJob|TFJob|MPIJob|XGBoostJob)\b")
_GROUP: Final = re.compile(r"[\"']?\bapiVersion[\"']?[ ]*:[ ]*[\"']?kubeflow\.org/")


class Kubeflow:
    """The dialect."""

    name: str = writing.NAME

    def sniff(self, document: Document) -> Guess | None:
        """By its kind; a text that can't be read is still recognised by how that is written."""
        if len(document.text) > MAX_BYTES or not (
            _KIND.search(document.text) or _GROUP.search(document.text)
        ):
            return None
        try:
            value = documents.read(document, KUBERNETES, reading.pick).value
        except Refused:
            return Guess(50, "keys_seen") if _KIND.search(document.text) else None
        if not isinstance(value, dict):
            return None
        ours = str(value.get("apiVersion", "")).startswith(reading.GROUP)
        if reading.is_job(value):
            return Guess(100, "kind") if ours else Guess(90, "kind")
        return Guess(70, "api_group") if ours else None

    def parse(self, document: Document) -> Parsed:
        """See `base.Dialect`."""
        return reading.parse(document)

    def render(self, spec: JobSpec, extras: Mapping[str, object], base: Document | None = None) -> Rendered:
        """See `base.Dialect`."""
        return writing.render(spec, extras, base)

    def locate(self, document: Document, pointer: str) -> Position | None:
        """See `base.Dialect`."""
        try:
            return documents.read(document, KUBERNETES, reading.pick).position(pointer)
        except Refused:
            return None

    def apply_fixes(self, document: Document, fixes: Iterable[Fix]) -> str:
        """See `base.Dialect`."""
        return documents.apply_fixes(document, fixes, KUBERNETES, reading.pick)

    def with_secrets(self, document: Document, values: Mapping[str, str]) -> str:
        """See `base.Dialect`."""
        return documents.fill(document, values, KUBERNETES, reading.pick)

    def schema(self) -> Mapping[str, object]:
        """See `base.Dialect`."""
        return json_schema("Kubeflow job", keys.every())


DIALECT: Final = Kubeflow()

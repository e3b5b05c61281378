"""Kubeflow's PyTorchJob, TFJob, MPIJob and XGBoostJob, in YAML or JSON.

How a manifest becomes a job is told in docs/dialects.md.  Of each pod its main container is the role;
containers beside it, claims, accounts and rules of scheduling are kept for export and never executed.
"""

from __future__ import annotations

import re
from typing import Final

from jobs.dialects.base import MAX_BYTES, Guess, Refused
from jobs.dialects.common import YamlDialect
from jobs.dialects.document import Document
from jobs.dialects.field_map import rows
from jobs.dialects.kubeflow import keys, reading, writing
from jobs.dialects.yaml_text.rules import KUBERNETES

FIELDS: Final = rows(keys.told())
"""What a manifest can say, key by key; what all roles share stands under the worker of a PyTorchJob."""

_KIND: Final = re.compile(r"[\"']?\bkind[\"']?[ ]*:[ ]*[\"']?(PyTorchJob|TFJob|MPIJob|XGBoostJob)\b")
_GROUP: Final = re.compile(r"[\"']?\bapiVersion[\"']?[ ]*:[ ]*[\"']?kubeflow\.org/")


class Kubeflow(YamlDialect):
    """The dialect."""

    name: str = writing.NAME
    title = "Kubeflow job"
    schema_keys = keys.every()
    rules = KUBERNETES
    picks = (reading.pick,)
    parse = staticmethod(reading.parse)
    render = staticmethod(writing.render)

    def sniff(self, document: Document) -> Guess | None:
        """By its kind; a text that can't be read is still recognised by how that is written."""
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
        ours = str(value.get("apiVersion", "")).startswith(reading.GROUP)
        if reading.is_job(value):
            return Guess(100, "kind") if ours else Guess(90, "kind")
        return Guess(70, "api_group") if ours else None


DIALECT: Final = Kubeflow()

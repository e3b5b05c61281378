"""The page of cluster settings: every setting of each backend, and its default."""

from __future__ import annotations

import json
from collections.abc import Iterator

from console.documentation.reference.table import cell, code, table
from jobs.backends import registry

INTRODUCTION = """\
# Settings of clusters

The settings of each kind of cluster by their names in JSON (`add_cluster --config`, `site.yaml`). Django
admin has them as fields.
"""


def page() -> str:
    """Return the whole page."""
    heads = ("setting", "label", "meaning", "values", "default")
    parts = (f"## {name}\n\n{table(heads, _rows(name))}" for name in registry.names())
    return f"{INTRODUCTION}\n" + "\n".join(parts)


def _rows(backend: str) -> Iterator[tuple[str, ...]]:
    registration = registry.find(backend)
    for each in registration.fields():
        label, meaning = registration.labels[each.name]
        values = " or ".join(filter(None, each.choices)) or str(each.kind)
        default = "" if each.default in (None, "", []) else code(json.dumps(each.default))
        yield code(each.name), cell(label), cell(meaning), values, default

"""Baidu AIHC's `CreateJob` body, protocols v2 and v1, in all spellings that its pages and clients use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from jobs.dialects import edit, placeholders
from jobs.dialects.aihc import keys, reading, writing
from jobs.dialects.base import Fix, Guess, Parsed, Position, Refused, Rendered
from jobs.dialects.document import Document
from jobs.dialects.field_map import rows
from jobs.dialects.schema import json_schema
from jobs.dialects.source import read
from jobs.spec import JobSpec

FIELDS: Final = (
    *rows(keys.JOB),
    *(row for name, rule in keys.AMOUNTS for row in rows((rule,), f"/jobSpec/resources[{name}]")),
)
"""What AIHC can say, key by key."""

_NAMED: Final = re.compile(r'"(jobSpec|command|jobType|jobFramework|replicas)"\s*:')
_TELLING: Final = frozenset({"jobType", "jobFramework", "queue", "queueId", "queueID", "command"})


class Aihc:
    """The dialect."""

    name: str = writing.NAME

    def sniff(self, document: Document) -> Guess | None:
        """By its keys; a text that can't be read is still recognised by how they are written."""
        try:
            value = read(document).value
        except Refused as refused:
            unreadable = refused.problems[0].code in {"too_large", "too_many_values", "too_deep"}
            found = set() if unreadable else set(_NAMED.findall(document.text))
            return Guess(50, "keys_seen") if "jobSpec" in found and len(found) > 1 else None
        if not isinstance(value, dict) or not isinstance(value.get(keys.JOB_SPEC.key), dict):
            return None
        return Guess(100, "job_spec") if value.keys() & _TELLING else Guess(80, "job_spec_alone")

    def parse(self, document: Document) -> Parsed:
        """See `base.Dialect`."""
        return reading.parse(document)

    def render(self, spec: JobSpec, extras: Mapping[str, object], base: Document | None = None) -> Rendered:
        """See `base.Dialect`."""
        return writing.render(spec, extras, base)

    def locate(self, document: Document, pointer: str) -> Position | None:
        """See `base.Dialect`."""
        try:
            return read(document).position(pointer)
        except Refused:
            return None

    def apply_fixes(self, document: Document, fixes: Iterable[Fix]) -> str:
        """See `base.Dialect`."""
        return edit.apply_fixes(document, fixes)

    def with_secrets(self, document: Document, values: Mapping[str, str]) -> str:
        """See `base.Dialect`."""
        return placeholders.fill_json(document.text, values)

    def schema(self) -> Mapping[str, object]:
        """See `base.Dialect`."""
        return json_schema("AIHC CreateJob", keys.JOB)


DIALECT: Final = Aihc()

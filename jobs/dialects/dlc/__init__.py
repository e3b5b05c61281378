"""PAI-DLC's `CreateJob` request as its pages and three generations of its SDK write it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from jobs.dialects import edit, placeholders
from jobs.dialects.base import Fix, Guess, Parsed, Position, Refused, Rendered
from jobs.dialects.dlc import keys, reading, writing
from jobs.dialects.document import Document
from jobs.dialects.field_map import rows
from jobs.dialects.schema import json_schema
from jobs.dialects.source import read
from jobs.spec import JobSpec

_NAMED: Final = re.compile(r'"(DisplayName|JobType|JobSpecs|UserCommand)"\s*:')


FIELDS: Final = rows(keys.JOB)
"""What DLC can say, key by key."""


class Dlc:
    """The dialect."""

    name: str = writing.NAME

    def sniff(self, document: Document) -> Guess | None:
        """By its keys; a text that can't be read is still recognised by how they are written."""
        try:
            value = read(document).value
        except Refused as refused:
            unreadable = refused.problems[0].code in {"too_large", "too_many_values", "too_deep"}
            found = set() if unreadable else set(_NAMED.findall(document.text))
            return Guess(50, "keys_seen") if {"JobType", "JobSpecs"} <= found else None
        if not isinstance(value, dict):
            return None
        if isinstance(value.get(keys.JOB_SPECS.key), list):
            known = keys.JOB_TYPE.key in value or keys.DISPLAY_NAME.key in value
            return Guess(100, "job_type_and_specs") if known else Guess(80, "specs_listed")
        return Guess(60, "job_type") if value.keys() >= {"DisplayName", "JobType"} else None

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
        return json_schema("PAI-DLC CreateJob", keys.JOB)


DIALECT: Final = Dlc()

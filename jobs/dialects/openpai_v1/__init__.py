"""OpenPAI protocol v1 as SCM and OpenPAI v0.14 speak it: one JSON object with `jobName` and `taskRoles`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from jobs.dialects import edit, placeholders
from jobs.dialects.base import Fix, Guess, Parsed, Position, Refused, Rendered
from jobs.dialects.document import Document
from jobs.dialects.field_map import rows
from jobs.dialects.openpai_v1 import keys, reading, writing
from jobs.dialects.schema import json_schema
from jobs.dialects.source import read
from jobs.spec import JobSpec

FIELDS: Final = rows(keys.JOB)
"""What OpenPAI v1 can say, key by key."""

_NAMED: Final = re.compile(r'"(jobName|taskRoles|protocolVersion)"\s*:')


class OpenPaiV1:
    """The dialect."""

    name: str = writing.NAME

    def sniff(self, document: Document) -> Guess | None:
        """By its keys; a text that can't be read is still recognised by how they are written."""
        try:
            value = read(document, repeats=True).value
        except Refused as refused:
            unreadable = refused.problems[0].code in {"too_large", "too_many_values", "too_deep"}
            found = set() if unreadable else set(_NAMED.findall(document.text))
            likely = {"jobName", "taskRoles"} <= found and "protocolVersion" not in found
            return Guess(50, "keys_seen") if likely else None
        if not isinstance(value, dict) or "protocolVersion" in value:
            return None
        roles = isinstance(value.get(keys.TASK_ROLES.key), list)
        if roles and keys.JOB_NAME.key in value:
            return Guess(100, "job_name_and_roles")
        if roles:
            return Guess(80, "roles_listed")
        return Guess(60, "job_name") if keys.JOB_NAME.key in value else None

    def parse(self, document: Document) -> Parsed:
        """See `base.Dialect`."""
        return reading.parse(document)

    def render(self, spec: JobSpec, extras: Mapping[str, object], base: Document | None = None) -> Rendered:
        """See `base.Dialect`."""
        return writing.render(spec, extras, base)

    def locate(self, document: Document, pointer: str) -> Position | None:
        """See `base.Dialect`."""
        try:
            return read(document, repeats=True).position(pointer)
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
        return json_schema("OpenPAI job, protocol v1", keys.JOB)


DIALECT: Final = OpenPaiV1()

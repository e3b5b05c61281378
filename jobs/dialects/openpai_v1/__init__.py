"""OpenPAI protocol v1 as SCM and OpenPAI v0.14 speak it: one JSON object with `jobName` and `taskRoles`."""

from __future__ import annotations

import re
from typing import Final

from jobs.dialects.base import Guess, Refused
from jobs.dialects.common import JsonDialect
from jobs.dialects.document import Document
from jobs.dialects.field_map import rows
from jobs.dialects.openpai_v1 import keys, reading, writing

FIELDS: Final = rows(keys.JOB)
"""What OpenPAI v1 can say, key by key."""

_NAMED: Final = re.compile(r'"(jobName|taskRoles|protocolVersion)"\s*:')


class OpenPaiV1(JsonDialect):
    """The dialect."""

    name: str = writing.NAME
    title = "OpenPAI job, protocol v1"
    schema_keys = keys.JOB
    repeats = True
    parse = staticmethod(reading.parse)
    render = staticmethod(writing.render)

    def sniff(self, document: Document) -> Guess | None:
        """By its keys; a text that can't be read is still recognised by how they are written."""
        try:
            value = self.read(document).value
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


DIALECT: Final = OpenPaiV1()

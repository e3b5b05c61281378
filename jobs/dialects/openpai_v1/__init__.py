"""OpenPAI protocol v1 as SCM and OpenPAI v0.14 speak it: one JSON object with `jobName` and `taskRoles`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from jobs.dialects.base import Guess, Refused
from jobs.dialects.common import JsonDialect
from jobs.dialects.document import Document
from jobs.dialects.field_map import rows
from jobs.dialects.objects import as_object, find_keys
from jobs.dialects.openpai_v1 import keys, parser
from jobs.dialects.openpai_v1.renderer import render_spec
from jobs.dialects.ours import export_data
from jobs.dialects.text_renderer import JsonObject
from jobs.spec import JobSpec

FIELDS: Final = rows(keys.JOB)
"""Every key of a job file, one row each."""

_NAMED: Final = re.compile(r'"(jobName|taskRoles|protocolVersion)"\s*:')


_IDENTITIES: Final = {rule.key: rule.identity for rule in (keys.TASK_ROLES, keys.PORT_LIST)}


class OpenPaiV1(JsonDialect):
    """The dialect."""

    name: str = "openpai-v1"
    title = "OpenPAI job, protocol v1"
    schema_keys = keys.JOB
    repeats = True
    identities = _IDENTITIES
    parse = staticmethod(parser.parse)

    def sniff(self, document: Document) -> Guess | None:
        """Recognise a job file by its keys, in a text that can't be read too."""
        try:
            value = self.read(document).value
        except Refused as refused:
            found = find_keys(document, refused, _NAMED)
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

    def build(self, spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
        """See `JsonDialect`; our own object is among the extras."""
        job = render_spec(spec, extras)
        ours = export_data.render_object(parser.parse_native(job), spec, extras)
        if ours:
            job[keys.EXTRAS.key] = {**as_object(job[keys.EXTRAS.key]), keys.OURS: ours}
        return job


DIALECT: Final = OpenPaiV1()

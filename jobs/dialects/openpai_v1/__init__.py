"""OpenPAI protocol v1 as SCM and OpenPAI v0.14 speak it: one JSON object with `jobName` and `taskRoles`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Final

from jobs.dialects import text_renderer
from jobs.dialects.base import Guess, Refused, Rendered
from jobs.dialects.common import JsonDialect
from jobs.dialects.document import Document
from jobs.dialects.field_map import rows
from jobs.dialects.objects import as_object, find_keys
from jobs.dialects.openpai_v1 import keys, parser
from jobs.dialects.openpai_v1.renderer import render_spec
from jobs.dialects.ours import export_data
from jobs.dialects.text_renderer import Form, JsonObject
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

    def render(self, spec: JobSpec, extras: Mapping[str, object], base: Document | None = None) -> Rendered:
        """See `base.Dialect`."""
        patch = partial(text_renderer.patch_json, identities=_IDENTITIES)
        form = Form(self.name, parser.parse, _build_job, text_renderer.write_json, patch)
        return text_renderer.render(form, spec, extras, base)


def _build_job(spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
    """Return the JSON object, and among its extras our own."""
    job = render_spec(spec, extras)
    ours = export_data.render_object(parser.parse_native(job), spec, extras)
    if ours:
        job[keys.EXTRAS.key] = {**as_object(job[keys.EXTRAS.key]), keys.OURS: ours}
    return job


DIALECT: Final = OpenPaiV1()

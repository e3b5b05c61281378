"""PAI-DLC's `CreateJob` request as its pages and three generations of its SDK write it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from jobs.dialects import text_renderer
from jobs.dialects.base import Guess, Refused
from jobs.dialects.common import JsonDialect
from jobs.dialects.dlc import keys, parser
from jobs.dialects.dlc.job_types import with_known_types
from jobs.dialects.dlc.renderer import render_spec
from jobs.dialects.document import Document
from jobs.dialects.extras import restore_extras
from jobs.dialects.field_map import rows
from jobs.dialects.key_spellings import restore_spellings
from jobs.dialects.objects import find_keys
from jobs.dialects.ours import export_data
from jobs.dialects.source import read
from jobs.dialects.text_renderer import JsonObject
from jobs.spec import JobSpec

_NAMED: Final = re.compile(r'"(DisplayName|JobType|JobSpecs|UserCommand)"\s*:')


FIELDS: Final = rows(keys.JOB)
"""Every key of a request, one row each."""


class Dlc(JsonDialect):
    """The dialect."""

    name: str = "dlc"
    title = "PAI-DLC CreateJob"
    schema_keys = keys.JOB
    parse = staticmethod(parser.parse)

    def sniff(self, document: Document) -> Guess | None:
        """Recognise a request by its keys, in a text that can't be read too."""
        try:
            value = self.read(document).value
        except Refused as refused:
            found = find_keys(document, refused, _NAMED)
            return Guess(50, "keys_seen") if {"JobType", "JobSpecs"} <= found else None
        if not isinstance(value, dict):
            return None
        if isinstance(value.get(keys.JOB_SPECS.key), list):
            known = keys.JOB_TYPE.key in value or keys.DISPLAY_NAME.key in value
            return Guess(100, "job_type_and_specs") if known else Guess(80, "specs_listed")
        return Guess(60, "job_type") if value.keys() >= {"DisplayName", "JobType"} else None

    def build(self, spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
        """See `JsonDialect`; our own object is in the request, and keys are spelled as they were."""
        job = render_spec(spec, extras)
        ours = export_data.render_object(parser.parse_native(job), spec, extras)
        if ours:
            job[keys.JOB_CONSOLE.key] = ours
        restore_extras(job, extras, keys.NAMES)
        return restore_spellings(job, extras)

    def patch(self, base: Document, before: JsonObject, after: JsonObject) -> str | None:
        """See `JsonDialect`; the types that the text leaves out are known."""
        there = with_known_types(read(base).value)
        return text_renderer.patch_json(base, before, after, {"JobSpecs": "Type"}, there)


def render_request(spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
    """Return a job as a request in DLC's own keys alone, as its API answers it; `extras` as for `render`."""
    job = render_spec(spec, extras)
    restore_extras(job, extras, keys.NAMES)
    return job


DIALECT: Final = Dlc()

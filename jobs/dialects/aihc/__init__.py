"""Baidu AIHC's `CreateJob` body, protocols v2 and v1, in all spellings that its pages and clients use."""

from __future__ import annotations

import re
from typing import Final

from jobs.dialects.aihc import keys, parser
from jobs.dialects.aihc.renderer import build_body
from jobs.dialects.base import Guess, Refused
from jobs.dialects.common import JsonDialect
from jobs.dialects.document import Document
from jobs.dialects.field_map import rows
from jobs.dialects.objects import find_keys

FIELDS: Final = (
    *rows(keys.JOB),
    *(row for name, rule in keys.AMOUNTS for row in rows((rule,), f"/jobSpec/resources[{name}]")),
)
"""Every key of a body, one row each."""

_NAMED: Final = re.compile(r'"(jobSpec|command|jobType|jobFramework|replicas)"\s*:')
_IDENTITIES: Final = {"envs": "name", "resources": "name", "labels": "key"}
_TELLING: Final = frozenset({"jobType", "jobFramework", "queue", "queueId", "queueID", "command"})


class Aihc(JsonDialect):
    """The dialect."""

    name: str = "aihc"
    title = "AIHC CreateJob"
    schema_keys = keys.JOB
    identities = _IDENTITIES
    parse = staticmethod(parser.parse)
    build = staticmethod(build_body)

    def sniff(self, document: Document) -> Guess | None:
        """Recognise a body by its keys, in a text that can't be read too."""
        try:
            value = self.read(document).value
        except Refused as refused:
            found = find_keys(document, refused, _NAMED)
            return Guess(50, "keys_seen") if "jobSpec" in found and len(found) > 1 else None
        if not isinstance(value, dict) or not isinstance(value.get(keys.JOB_SPEC.key), dict):
            return None
        return Guess(100, "job_spec") if value.keys() & _TELLING else Guess(80, "job_spec_alone")


DIALECT: Final = Aihc()

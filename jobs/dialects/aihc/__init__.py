"""Baidu AIHC's `CreateJob` body, protocols v2 and v1, in all spellings that its pages and clients use."""

from __future__ import annotations

import re
from typing import Final

from jobs.dialects.aihc import keys, reading, writing
from jobs.dialects.base import Guess, Refused
from jobs.dialects.common import JsonDialect
from jobs.dialects.document import Document
from jobs.dialects.field_map import rows

FIELDS: Final = (
    *rows(keys.JOB),
    *(row for name, rule in keys.AMOUNTS for row in rows((rule,), f"/jobSpec/resources[{name}]")),
)
"""What AIHC can say, key by key."""

_NAMED: Final = re.compile(r'"(jobSpec|command|jobType|jobFramework|replicas)"\s*:')
_TELLING: Final = frozenset({"jobType", "jobFramework", "queue", "queueId", "queueID", "command"})


class Aihc(JsonDialect):
    """The dialect."""

    name: str = writing.NAME
    title = "AIHC CreateJob"
    schema_keys = keys.JOB
    parse = staticmethod(reading.parse)
    render = staticmethod(writing.render)

    def sniff(self, document: Document) -> Guess | None:
        """By its keys; a text that can't be read is still recognised by how they are written."""
        try:
            value = self.read(document).value
        except Refused as refused:
            unreadable = refused.problems[0].code in {"too_large", "too_many_values", "too_deep"}
            found = set() if unreadable else set(_NAMED.findall(document.text))
            return Guess(50, "keys_seen") if "jobSpec" in found and len(found) > 1 else None
        if not isinstance(value, dict) or not isinstance(value.get(keys.JOB_SPEC.key), dict):
            return None
        return Guess(100, "job_spec") if value.keys() & _TELLING else Guess(80, "job_spec_alone")


DIALECT: Final = Aihc()

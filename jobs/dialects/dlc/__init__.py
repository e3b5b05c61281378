"""PAI-DLC's `CreateJob` request as its pages and three generations of its SDK write it."""

from __future__ import annotations

import re
from typing import Final

from jobs.dialects.base import Guess, Refused
from jobs.dialects.common import JsonDialect
from jobs.dialects.dlc import keys, reading, writing
from jobs.dialects.document import Document
from jobs.dialects.field_map import rows

_NAMED: Final = re.compile(r'"(DisplayName|JobType|JobSpecs|UserCommand)"\s*:')


FIELDS: Final = rows(keys.JOB)
"""What DLC can say, key by key."""


class Dlc(JsonDialect):
    """The dialect."""

    name: str = writing.NAME
    title = "PAI-DLC CreateJob"
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
            return Guess(50, "keys_seen") if {"JobType", "JobSpecs"} <= found else None
        if not isinstance(value, dict):
            return None
        if isinstance(value.get(keys.JOB_SPECS.key), list):
            known = keys.JOB_TYPE.key in value or keys.DISPLAY_NAME.key in value
            return Guess(100, "job_type_and_specs") if known else Guess(80, "specs_listed")
        return Guess(60, "job_type") if value.keys() >= {"DisplayName", "JobType"} else None


DIALECT: Final = Dlc()

"""Parameter files of PAI-DLC's command line: `dlc submit <type> --job_file FILE`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from jobs.dialects import placeholders, text_renderer
from jobs.dialects.base import MAX_BYTES, Fix, Guess, Refused, Rendered
from jobs.dialects.common import CommonDialect
from jobs.dialects.dlc.limits import PAGE
from jobs.dialects.dlc_params import job_type, keys, parser, renderer
from jobs.dialects.dlc_params.lines import Lines, read
from jobs.dialects.dlc_params.shapes import BLANKS
from jobs.dialects.document import Document
from jobs.dialects.field_map import FieldRow, rows
from jobs.dialects.text_renderer import Form
from jobs.spec import JobSpec

FIELDS: Final = (
    FieldRow("framework", "# dlc submit", limits=(", ".join(job_type.NAMES),), source=PAGE),
    *rows(keys.RULES),
)
"""Every key of a file, one row each; its job type stands on the command line, or in a comment."""

_SEEN: Final = re.compile(r"^[ \t]*([a-z_]+)=", re.MULTILINE)
_COUNTS: Final = frozenset(count for _kind, count in keys.ROLES.values())


class DlcParams(CommonDialect):
    """The dialect."""

    name: str = "dlc-params"
    title = "PAI-DLC command line, parameter file"
    schema_keys = keys.RULES
    parse = staticmethod(parser.parse)

    def read(self, document: Document) -> Lines:
        """See `CommonDialect`."""
        return read(document, keys.KNOWN)

    def sniff(self, document: Document) -> Guess | None:
        """Recognise a file by its keys, and by not being anything else that has `=` in its lines."""
        start = document.text.lstrip("\ufeff\r\n" + BLANKS)[:2]
        if start[:1] in ("{", "[") or start == "#!":
            return None
        try:
            found = read(document, keys.KNOWN).entries.keys()
        except Refused:
            seen = set(_SEEN.findall(document.text)) if len(document.text) <= MAX_BYTES else set()
            return Guess(50, "keys_seen") if len(seen & keys.KNOWN) >= 3 else None
        known = found & keys.KNOWN
        if "command" in known and known & _COUNTS:
            return Guess(100, "command_and_roles")
        return Guess(60, "known_keys") if len(known) >= 3 and len(known) * 2 > len(found) else None

    def render(self, spec: JobSpec, extras: Mapping[str, object], base: Document | None = None) -> Rendered:
        """See `base.Dialect`."""
        form = Form(self.name, renderer.build_document, renderer.write, renderer.patch)
        return text_renderer.render(form, spec, extras, base)

    def apply_fixes(self, document: Document, fixes: Iterable[Fix]) -> str:
        """See `base.Dialect`."""
        return renderer.apply_fixes(document, fixes)

    def with_secrets(self, document: Document, values: Mapping[str, str]) -> str:
        """See `base.Dialect`."""
        return placeholders.fill(document.text, values)


DIALECT: Final = DlcParams()

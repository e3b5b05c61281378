"""OpenPAI protocol v2: YAML, or, as SCM writes it, the same document in JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Final

from jobs.dialects import spans, text_renderer
from jobs.dialects.base import MAX_BYTES, Guess, Position, Refused, Rendered
from jobs.dialects.common import YamlDialect
from jobs.dialects.document import Document
from jobs.dialects.field_map import rows
from jobs.dialects.objects import find_keys
from jobs.dialects.openpai_v2 import keys, parser, renderer
from jobs.dialects.source import Source
from jobs.dialects.spans import Node
from jobs.dialects.text_renderer import Form
from jobs.dialects.yaml_text.rules import JS_YAML
from jobs.spec import JobSpec

FIELDS: Final = rows(keys.JOB)
"""Every key of a job file, one row each."""

_NAMED: Final = re.compile(
    r"""(?:^|[{,])[{\s]*["']?(protocolVersion|taskRoles|prerequisites|deployments)["']?\s*:""", re.MULTILINE
)


_MAY_BE: Final = re.compile("taskRoles|protocolVersion")


class OpenPaiV2(YamlDialect):
    """The dialect."""

    name: str = "openpai-v2"
    title = "OpenPAI job, protocol v2"
    schema_keys = keys.JOB
    rules = JS_YAML
    parse = staticmethod(parser.parse)

    def sniff(self, document: Document) -> Guess | None:
        """Recognise a job file by its keys, in a text that can't be read too."""
        if len(document.text) > MAX_BYTES or not _MAY_BE.search(document.text):
            return None
        try:
            value = self.read(document).value
        except Refused as refused:
            seen = find_keys(document, refused, _NAMED)
            return Guess(50, "keys_seen") if "protocolVersion" in seen and len(seen) > 1 else None
        if not isinstance(value, dict):
            return None
        has_roles = isinstance(value.get(keys.TASK_ROLES.key), dict)
        if str(value.get(keys.PROTOCOL_VERSION.key)) in ("2", "2.0"):
            return Guess(100, "protocol_version") if has_roles else Guess(80, "protocol_version")
        if keys.PROTOCOL_VERSION.key in value:
            return Guess(60, "protocol_version")
        return Guess(60, "roles_named") if has_roles else None

    def render(self, spec: JobSpec, extras: Mapping[str, object], base: Document | None = None) -> Rendered:
        """See `base.Dialect`; the text is YAML unless it was JSON."""
        write = partial(renderer.write, as_json=bool(extras.get(parser.JSON)))
        form = Form(self.name, renderer.build_document, write, renderer.patch)
        return text_renderer.render(form, spec, extras, base)

    def locate(self, document: Document, pointer: str) -> Position | None:
        """See `base.Dialect`; a role may also be told by its number, as in a JobSpec."""
        try:
            source = self.read(document)
        except Refused:
            return None
        return source.position(_by_name(source, pointer))


def _by_name(source: Source, pointer: str) -> str:
    """Return `pointer` with names for the numbers of members of objects."""
    node: Node | None = source.tree
    tokens = []
    for token in spans.split(pointer):
        members = list(node.members or {}) if node is not None and node.child(token) is None else []
        name = members[int(token)] if token.isdigit() and int(token) < len(members) else token
        tokens.append(spans.escape(name))
        node = node.child(name) if node is not None else None
    return "".join(f"/{token}" for token in tokens)


DIALECT: Final = OpenPaiV2()

"""Base classes of dialects: positions, fixes and secrets in JSON and YAML, and the schema."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar

from jobs.dialects import documents, edit, placeholders, source, text_renderer
from jobs.dialects.base import Fix, Parsed, Position, Refused, Rendered
from jobs.dialects.document import Document
from jobs.dialects.fields import AnyKey
from jobs.dialects.findings import Located
from jobs.dialects.schema import json_schema
from jobs.dialects.source import Source
from jobs.dialects.text_renderer import Form, JsonObject
from jobs.dialects.yaml_text.rules import YamlRules
from jobs.dialects.yaml_text.source import Pick
from jobs.spec import JobSpec


class CommonDialect(ABC):
    """A dialect whose readers know where everything stands; its schema has `title` and `schema_keys`."""

    title: ClassVar[str]
    schema_keys: ClassVar[Sequence[AnyKey]]

    @abstractmethod
    def read(self, document: Document) -> Located:
        """Return the document as it was read; raises Refused."""

    def locate(self, document: Document, pointer: str) -> Position | None:
        """See `base.Dialect`."""
        try:
            return self.read(document).position(pointer)
        except Refused:
            return None

    def schema(self) -> Mapping[str, object]:
        """See `base.Dialect`."""
        return json_schema(self.title, self.schema_keys)


class JsonDialect(CommonDialect):
    """A dialect in JSON; with `repeats`, the last of equal keys counts.

    `identities` has the keys that tell elements of lists apart, by the lists' own keys.
    """

    name: str
    parse: Callable[[Document], Parsed]
    repeats: ClassVar[bool] = False
    identities: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def build(self, spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
        """Return the object that says `spec`, with `extras` put back."""

    def patch(self, base: Document, before: JsonObject, after: JsonObject) -> str | None:
        """Return the text of `base`, which says `before`, made to say `after`; None where it can't be."""
        return text_renderer.patch_json(base, before, after, identities=self.identities)

    def render(self, spec: JobSpec, extras: Mapping[str, object], base: Document | None = None) -> Rendered:
        """See `base.Dialect`."""
        form = Form(self.name, self.build, text_renderer.write_json, self.patch)
        return text_renderer.render(form, spec, extras, base)

    def read(self, document: Document) -> Source:
        """See `CommonDialect`."""
        return source.read(document, repeats=self.repeats)

    def apply_fixes(self, document: Document, fixes: Iterable[Fix]) -> str:
        """See `base.Dialect`."""
        return edit.apply_fixes(document, fixes)

    def with_secrets(self, document: Document, values: Mapping[str, str]) -> str:
        """See `base.Dialect`."""
        return placeholders.fill_json(document.text, values)


class YamlDialect(CommonDialect):
    """A dialect in YAML, read by `rules`, or in JSON; `picks` chooses among several documents, if it must."""

    rules: ClassVar[YamlRules]
    picks: ClassVar[tuple[Pick, ...]] = ()

    def read(self, document: Document) -> Source:
        """See `CommonDialect`."""
        return documents.read(document, self.rules, *self.picks)

    def apply_fixes(self, document: Document, fixes: Iterable[Fix]) -> str:
        """See `base.Dialect`."""
        return documents.apply_fixes(document, fixes, self.rules, *self.picks)

    def with_secrets(self, document: Document, values: Mapping[str, str]) -> str:
        """See `base.Dialect`."""
        return documents.fill(document, values, self.rules, *self.picks)

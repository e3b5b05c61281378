"""Base classes of dialects: positions, fixes and secrets in JSON and YAML, and the schema."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from jobs.dialects import documents, edit, placeholders, source
from jobs.dialects.base import Fix, Position, Refused
from jobs.dialects.document import Document
from jobs.dialects.fields import AnyKey
from jobs.dialects.findings import Located
from jobs.dialects.schema import json_schema
from jobs.dialects.source import Source
from jobs.dialects.yaml_text.rules import YamlRules
from jobs.dialects.yaml_text.source import Pick


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
    """A dialect in JSON; with `repeats`, the last of equal keys counts."""

    repeats: ClassVar[bool] = False

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

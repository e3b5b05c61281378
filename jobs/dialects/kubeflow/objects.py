"""Reading one object of a manifest: like a `Request`, with lists of objects that are kept as they are."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.dialects.fields import AnyKey, Group, Records, Text, Texts
from jobs.dialects.kubeflow.keys import OBJECTS
from jobs.dialects.request import Request


class Object(Request):
    """One object at `pointer`; what it holds is read by the same rules."""

    def group(self, rule: Group) -> Object:
        """See `Request`."""
        value = self.value.get(rule.key, {})
        if not isinstance(value, dict):
            self._wrong_type(rule, value, "object", None)
            value = {}
        return Object(value, self.at(rule.key), self.findings, rule.keys).inspect()

    def requests(self, rule: Records) -> Iterator[Object]:
        """See `Request`."""
        for record in self.records(rule):
            yield Object(record.value, record.pointer, self.findings, rule.keys).inspect()

    def inspect(self) -> Object:
        """See `Request`."""
        super().inspect()
        return self

    def _inspect(self, rule: AnyKey) -> None:
        value = self.value.get(rule.key)
        if isinstance(rule, Texts) and rule.items == OBJECTS:
            if not isinstance(value, list):
                self._wrong_type(rule, value, "list", None)
        elif not (isinstance(rule, Text) and isinstance(value, int)):  # nprocPerNode: 8 is read as text
            super()._inspect(rule)

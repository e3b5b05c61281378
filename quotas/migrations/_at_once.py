"""Many new tables in one step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import migrations
from django.db.migrations.operations.base import Operation


class CreateTables(Operation):
    """Create the tables of these models as they are behind all `operations`.

    One after another, each new table would have Django build every model that leads to it anew: for a hundred
    of them half a minute.
    """

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = operations

    def state_forwards(self, app_label: str, state: Any) -> None:
        state.__dict__.pop("apps", None)  # or it would be kept in step, model by model
        for each in self.operations:
            each.state_forwards(app_label, state)

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        for model in self._models(app_label, schema_editor, to_state):
            schema_editor.create_model(model)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        for model in reversed(self._models(app_label, schema_editor, from_state)):
            schema_editor.delete_model(model)

    def describe(self) -> str:
        return f"Create {len(self.operations)} tables"

    def _models(self, app_label: str, schema_editor: Any, state: Any) -> list[Any]:
        names = [each.name for each in self.operations if isinstance(each, migrations.CreateModel)]
        models = [state.apps.get_model(app_label, name) for name in names]
        return [model for model in models if self.allow_migrate_model(schema_editor.connection.alias, model)]

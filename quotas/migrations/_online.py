"""Indexes of large tables, made while the console goes on writing to them."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations


class AddIndexOnline(migrations.AddIndex):
    """Add an index: on PostgreSQL without a lock that keeps anybody from writing.

    Its migration has `atomic = False` and does nothing else, so that it can be repeated after an interruption;
    PostgreSQL then has the index as invalid, which this one replaces.
    """

    atomic = False

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        schema_editor.execute(
            f"DROP INDEX CONCURRENTLY IF EXISTS {schema_editor.quote_name(self.index.name)}"
        )
        online = AddIndexConcurrently(self.model_name, self.index)
        online.database_forwards(app_label, schema_editor, from_state, to_state)

"""Indexes of large tables, made while the console goes on writing to them."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations


class AddIndexOnline(migrations.AddIndex):
    """Add an index: on PostgreSQL without a lock that keeps anybody from writing.

    Its migration has `atomic = False` and adds nothing but indexes, so that it can be repeated after an
    interruption: what is there of the index then, on PostgreSQL maybe as invalid, is replaced.
    """

    atomic = False

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        is_postgresql = schema_editor.connection.vendor == "postgresql"
        drop = "DROP INDEX CONCURRENTLY IF EXISTS" if is_postgresql else "DROP INDEX IF EXISTS"
        schema_editor.execute(f"{drop} {schema_editor.quote_name(self.index.name)}")
        if not is_postgresql:
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        online = AddIndexConcurrently(self.model_name, self.index)
        online.database_forwards(app_label, schema_editor, from_state, to_state)

"""Indexes of large tables, made and dropped while the console goes on writing to them."""

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


class DropColumnIndexOnline(migrations.AlterField):
    """Drop the index of a column that another index begins with; the table itself is left alone.

    `field` is the column without its index.  Django would make the whole table anew on SQLite, and lock it on
    PostgreSQL.  The index is found by its column: a table that was renamed keeps the names of its indexes.
    Its migration has `atomic = False`.
    """

    atomic = False

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        connection = schema_editor.connection
        model = from_state.apps.get_model(app_label, self.model_name)
        column = model._meta.get_field(self.name).column  # noqa: SLF001  # Django's own way to a column
        concurrently = "CONCURRENTLY " if connection.vendor == "postgresql" else ""
        with connection.cursor() as cursor:
            found = connection.introspection.get_constraints(cursor, model._meta.db_table)  # noqa: SLF001
        for name, index in found.items():
            if index["index"] and not index["unique"] and index["columns"] == [column]:
                drop = f"DROP INDEX {concurrently}IF EXISTS {schema_editor.quote_name(name)}"
                schema_editor.execute(drop)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        model = to_state.apps.get_model(app_label, self.model_name)
        field = model._meta.get_field(self.name)  # noqa: SLF001
        schema_editor.execute(schema_editor._create_index_sql(model, fields=[field]))  # noqa: SLF001

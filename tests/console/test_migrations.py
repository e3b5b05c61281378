"""Squashed migrations, beside those that they replace."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from console.configuration import keys
from console.home import CHECKOUT

pytestmark = pytest.mark.sqlite

MIGRATE = """
import sys, django
django.setup()
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
executor = MigrationExecutor(connection)
executor.loader.replace_migrations = sys.argv[1] == "squashed"
executor.loader.build_graph()
leaves = executor.loader.graph.leaf_nodes()
executor.migrate([leaf for leaf in leaves if "squashed" not in leaf[1] or executor.loader.replace_migrations])
"""

AUTOMATIC_NAME = re.compile(r'INDEX "\w+_[0-9a-f]{8}(_\w+)?"')
"""Django's own name of an index begins with the table's; a table that was renamed keeps those that it has."""


def schema(home: Path, way: str) -> dict[str, list[str]]:
    """The columns, constraints and indexes of each table, however they are ordered, after a migration."""
    keys.ensure(home)
    environment = {
        **os.environ,
        "CONSOLE_HOME": str(home),
        "DATABASE_URL": "",
        "DJANGO_SETTINGS_MODULE": "console.settings",
        "PYTHONPATH": str(CHECKOUT),
    }
    subprocess.run([sys.executable, "-c", MIGRATE, way], env=environment, check=True, timeout=300)
    with sqlite3.connect(home / "db.sqlite3") as database:
        rows = database.execute("SELECT tbl_name, sql FROM sqlite_master WHERE sql <> ''").fetchall()
    tables: dict[str, list[str]] = {}
    for table, statement in rows:
        head, _, body = AUTOMATIC_NAME.sub("INDEX", statement).removesuffix(")").partition("(")
        parts = (
            re.split(r", (?=\"|CONSTRAINT|UNIQUE|CHECK)", body) if head.startswith("CREATE TABLE") else [body]
        )
        tables.setdefault(table, []).extend([head.strip(), *(part.strip() for part in parts)])
    return {table: sorted(parts) for table, parts in tables.items()}


def test_squashed_migrations_create_the_same_schema_as_the_originals(tmp_path: Path) -> None:
    ways = ("squashed", "one by one")
    for way in ways:
        (tmp_path / way).mkdir()
    squashed, single = (schema(tmp_path / way, way) for way in ways)
    assert squashed.keys() == single.keys()
    assert {table: parts for table, parts in squashed.items() if parts != single[table]} == {}

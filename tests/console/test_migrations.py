"""Squashed migrations, beside those that they replace: both must lead to the same database."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ProjectState

from console.configuration import keys
from console.configuration.servers import SQLITE
from console.home import CHECKOUT
from tests.postgres import drop_database, fresh_database

OURS = ("jobs", "quotas")

UPGRADE = """
import gc; gc.disable()  # a third of the time, for thousands of classes of models
import django; django.setup()
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from tests.console.test_migrations import dump_schema

oldest = MigrationExecutor(connection)
oldest.loader = MigrationLoader(connection, replace_migrations=False)
oldest.migrate([("quotas", "0001_initial"), ("jobs", "0001_initial")])
call_command("migrate", verbosity=0)
print(*dump_schema(connection), sep="\\n")
"""
"""Upgrades an empty database from its first state, and prints the tables that it has then."""

COLUMNS = """
SELECT c.relname, a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
    || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END || ' ' || a.attidentity::text
    || ' ' || coalesce(pg_get_expr(d.adbin, d.adrelid), '') || ' ' || coalesce(l.collname, '')
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
LEFT JOIN pg_collation l ON l.oid = a.attcollation
WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
"""
CONSTRAINTS = """
SELECT conname, conrelid::regclass || ' ' || pg_get_constraintdef(oid) || ' ' || convalidated
FROM pg_constraint WHERE connamespace = 'public'::regnamespace
"""
INDEXES = """
SELECT c.relname, pg_get_indexdef(c.oid) || ' ' || i.indisvalid
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relnamespace = 'public'::regnamespace
"""
OTHERS = """
SELECT 'trigger', pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
UNION ALL SELECT 'function', proname::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace
UNION ALL SELECT 'extension', extname::text FROM pg_extension
"""


def dump_schema(database: BaseDatabaseWrapper) -> list[str]:
    """Return a line for each column, constraint, index and trigger, in an order of their own.

    Neither the order of columns counts nor a name that Django or PostgreSQL derived from a table's, since a
    table that was renamed keeps those.
    """
    lines = _dump_sqlite(database) if database.vendor == "sqlite" else _dump_postgresql(database)
    return sorted(" ".join(line.split()) for line in lines)


def _dump_sqlite(database: BaseDatabaseWrapper) -> Iterator[str]:
    with database.cursor() as cursor:
        cursor.execute("SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        for kind, name, table, text in cursor.fetchall():
            if kind == "table":
                for each in _split_definitions(text.split("(", 1)[1].rsplit(")", 1)[0]):
                    yield f"{table}: {each}"
            else:
                yield text if name in _declared_names() else text.replace(name, "")


def _dump_postgresql(database: BaseDatabaseWrapper) -> Iterator[str]:
    with database.cursor() as cursor:
        for query in (COLUMNS, OTHERS):
            cursor.execute(query)
            yield from (f"{subject}: {text}" for subject, text in cursor.fetchall())
        for query in (CONSTRAINTS, INDEXES):
            cursor.execute(query)
            for name, text in cursor.fetchall():
                yield f"{name}: {text}" if name in _declared_names() else text.replace(f" {name} ", " ")


def _declared_names() -> set[str]:
    """Return the names of constraints and indexes that models give, which errors and migrations rely on."""
    models = [model for app in OURS for model in apps.get_app_config(app).get_models()]
    return {
        each.name
        for model in models
        for each in (*model._meta.constraints, *model._meta.indexes)
        if each.name
    }


def _split_definitions(body: str) -> Iterator[str]:
    """Yield what stands between the commas of a CREATE TABLE, but for those in brackets and texts."""
    start = depth = 0
    for found in re.finditer(r"'[^']*'|[(),]", body):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if found[0] == "," and depth == 0:
            yield body[start : found.start()].strip()
            start = found.end()
    yield body[start:].strip()


@pytest.fixture
def empty_database(tmp_path: Path) -> Iterator[str]:
    """The URL of a database of the engine that the tests are on, with nothing in it."""
    if settings.DATABASES["default"]["ENGINE"] == SQLITE:
        yield ""  # that of the home
        return
    url = fresh_database(os.environ["DATABASE_URL"], f"upgraded_{os.getpid()}")
    yield url
    drop_database(url)


@pytest.mark.django_db
def test_database_of_the_first_state_upgrades_to_the_tables_of_a_new_one(
    empty_database: str, tmp_path: Path
) -> None:
    keys.ensure(tmp_path)
    environ = {**os.environ, "CONSOLE_HOME": str(tmp_path), "DATABASE_URL": empty_database}
    printed = subprocess.run(
        [sys.executable, "-c", UPGRADE], cwd=CHECKOUT, env=environ, capture_output=True, text=True, check=True
    ).stdout
    upgraded, new = printed.splitlines(), dump_schema(connection)
    assert any("jobs_job" in line for line in new)
    assert sorted(set(upgraded) ^ set(new)) == []
    assert len(upgraded) == len(new)


def originals() -> list[tuple[str, str]]:
    """Return the migrations that the squashed ones replace and those behind them, with Django's, in order."""
    graph = MigrationLoader(None, replace_migrations=False).graph
    plan: list[tuple[str, str]] = []
    for leaf in sorted(graph.leaf_nodes()):
        if "squashed" not in leaf[1]:
            plan += [key for key in graph.forwards_plan(leaf) if key not in plan]
    return plan


@pytest.mark.once
@pytest.mark.django_db
def test_database_of_any_old_state_goes_on_with_the_migrations_that_it_lacks() -> None:
    recorder = MigrationRecorder(connection)
    recorder.migration_qs.all().delete()
    every = originals()
    for done, key in enumerate(every):
        executor = MigrationExecutor(connection)
        executor.loader.check_consistent_history(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
        for app in OURS:
            planned = [migration.name for migration, _ in plan if migration.app_label == app]
            if any(applied == app for applied, _ in every[:done]):
                assert planned == [name for other, name in every[done:] if other == app], every[done - 1]
            else:
                assert "squashed" in planned[0], planned[0]
        recorder.record_applied(*key)
    executor = MigrationExecutor(connection)
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []


def models(*, squashed: bool) -> ProjectState:
    """Return the models that the migrations of our applications lead to, one way or the other."""
    loader = MigrationLoader(None, replace_migrations=squashed)
    loader.build_graph()
    leaves = [
        leaf
        for leaf in loader.graph.leaf_nodes()
        if squashed or leaf[0] not in OURS or "squashed" not in leaf[1]
    ]
    state: ProjectState = loader.graph.make_state(nodes=leaves)
    return state


@pytest.mark.once
def test_squashed_migrations_lead_to_the_same_models_as_the_originals() -> None:
    squashed, replaced = models(squashed=True), models(squashed=False)
    assert {key for key in replaced.models if key[0] in OURS} == {
        key for key in squashed.models if key[0] in OURS
    }
    changes = MigrationAutodetector(replaced, squashed).changes(MigrationLoader(None).graph)
    assert {app: [each.operations for each in changes[app]] for app in OURS if app in changes} == {}

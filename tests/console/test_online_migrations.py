"""Migrations since the last release: none may rewrite or lock a large table of PostgreSQL for long.

The SQL of the migrations is read, nothing is measured: what PostgreSQL's manual says of a statement's lock
and of whether it scans or rewrites the table is what is checked (ALTER TABLE, Notes; CREATE INDEX).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import pytest
from django.conf import settings
from django.db import connection
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader

from console.configuration.servers import SQLITE
from jobs.models import (
    Attempt,
    Endpoint,
    Event,
    Job,
    JobFile,
    LogChunk,
    LogStream,
    Replica,
    ReplicaUsage,
    Run,
    TreeUse,
)
from quotas.models import AuditEntry, Request, Reservation, UsageHour

RELEASED = {"jobs": "0030_standard_names", "quotas": "0021_standard_names"}
"""The newest migrations of the last release, 0.2.0."""

LARGE = frozenset(
    model._meta.db_table
    for model in (
        *(Attempt, AuditEntry, Endpoint, Event, Job, JobFile, LogChunk, LogStream, Replica, ReplicaUsage),
        *(Request, Reservation, Run, TreeUse, UsageHour),
    )
)
"""Tables that have a row or more for each job."""

ACCEPTED = {
    "one_endpoint",
    "jobs_of_owner_by_name",
    "attempts_to_tidy",
    "jobs_retained",
    "attempts_with_fault",
}
"""Indexes that are built while nobody can write: docs/upgrading.md says so.  No other one is added."""

_TABLE = re.compile(r'(?:ALTER TABLE|UPDATE|DELETE FROM|TRUNCATE)\s+(?:ONLY\s+)?"(\w+)"|\sON\s+"(\w+)"')
_CREATED = re.compile(r'CREATE TABLE "(\w+)"')
_RULES = {
    r"^CREATE (UNIQUE )?INDEX (?!CONCURRENTLY)": "builds an index while nobody can write",
    r"ALTER COLUMN \S+ (SET DATA )?TYPE ": "may rewrite the table",
    r"ALTER COLUMN \S+ SET NOT NULL": "reads the whole table under a lock",
    r"ADD CONSTRAINT \S+ (FOREIGN KEY|CHECK)(?!.*NOT VALID)": "reads the whole table under a lock",
    r"ADD CONSTRAINT \S+ (UNIQUE|PRIMARY KEY)(?! USING INDEX)": "builds an index under a lock",
    r"ADD CONSTRAINT \S+ EXCLUDE": "builds an index under a lock",
    r"ADD COLUMN .*\bCHECK\b": "reads the whole table under a lock",
    r"ADD COLUMN .*\b(GENERATED|SERIAL|BIGSERIAL)\b": "rewrites the table",
    r"ADD COLUMN .*DEFAULT \(?(\w*random\w*|clock_timestamp|nextval|uuid_\w+)\(": "rewrites the table",
    r"^(UPDATE|DELETE|TRUNCATE) ": "changes every row at once",
}


def find_locks(statements: Iterable[str]) -> Iterator[str]:
    """Yield each statement that locks or rewrites a large table for long, and why."""
    created: set[str] = set()
    for statement in statements:
        text = " ".join(statement.split())
        created.update(_CREATED.findall(text))
        found = _TABLE.search(text)
        table = next(filter(None, found.groups()), "") if found else ""
        if table in LARGE and table not in created:
            for pattern, reason in _RULES.items():
                if re.search(pattern, text):
                    yield f"{reason}: {text}"


@pytest.mark.parametrize(
    "statement",
    [
        'CREATE INDEX "a" ON "jobs_job" ("name")',
        'CREATE UNIQUE INDEX "a" ON "jobs_job" ("name") WHERE "name" IS NOT NULL',
        'ALTER TABLE "jobs_job" ALTER COLUMN "priority" TYPE bigint USING "priority"::bigint',
        'ALTER TABLE "jobs_job" ALTER COLUMN "name" SET NOT NULL',
        'ALTER TABLE "jobs_event" ADD CONSTRAINT "c" FOREIGN KEY ("a") REFERENCES "b" ("id")',
        'ALTER TABLE "jobs_event" ADD CONSTRAINT "c" UNIQUE ("a")',
        'ALTER TABLE "jobs_job" ADD COLUMN "n" smallint DEFAULT 1 NOT NULL CHECK ("n" >= 0)',
        'ALTER TABLE "jobs_job" ADD COLUMN "key" uuid DEFAULT gen_random_uuid() NOT NULL',
        'UPDATE "jobs_job" SET "name" = \'\'',
    ],
)
def test_statement_that_locks_a_large_table_is_found(statement: str) -> None:
    assert len(list(find_locks([statement]))) == 1
    other = re.sub(r'"jobs_(job|event)"', '"quotas_workspace"', statement)
    assert not list(find_locks([other])), "a small table may be locked"


@pytest.mark.parametrize(
    "statement",
    [
        'CREATE INDEX CONCURRENTLY "a" ON "jobs_job" ("name")',
        'ALTER TABLE "jobs_job" ADD COLUMN "a" boolean DEFAULT false NOT NULL',
        'ALTER TABLE "jobs_job" ADD COLUMN "a" date DEFAULT STATEMENT_TIMESTAMP() NOT NULL',
        'ALTER TABLE "jobs_job" ADD COLUMN "a" bigint NULL CONSTRAINT "c" REFERENCES "b"("id")',
        'ALTER TABLE "jobs_event" ADD CONSTRAINT "c" FOREIGN KEY ("a") REFERENCES "b" ("id") NOT VALID',
        'ALTER TABLE "jobs_event" ADD CONSTRAINT "c" UNIQUE USING INDEX "a"',
        'ALTER TABLE "jobs_job" ALTER COLUMN "a" DROP NOT NULL',
    ],
)
def test_statement_without_a_long_lock_passes(statement: str) -> None:
    assert not list(find_locks([statement]))


def test_table_that_the_migrations_create_is_not_large_yet() -> None:
    statements = ['CREATE TABLE "jobs_run" ("id" bigint)', 'CREATE INDEX "a" ON "jobs_run" ("id")']
    assert not list(find_locks(statements))


def is_about_large_tables(migration: Migration) -> bool:
    """Whether an operation names a large table, or can't be read."""
    names = {
        getattr(operation, "model_name", getattr(operation, "name", None))
        for operation in migration.operations
    }
    return None in names or any(f"{migration.app_label}_{name}".lower() in LARGE for name in names)


def collect_new_statements() -> list[str]:
    """Return the SQL of every migration since the last release that is about a large table, in order."""
    loader = MigrationLoader(connection, replace_migrations=False)
    released = set()
    for key in RELEASED.items():
        released.update(loader.graph.forwards_plan(key))
    own = [leaf for leaf in loader.graph.leaf_nodes() if leaf[0] in RELEASED and "squashed" not in leaf[1]]
    plan: list[tuple[str, str]] = []
    for leaf in own:
        plan += [key for key in loader.graph.forwards_plan(leaf) if key not in {*released, *plan}]
    state = loader.project_state(list(RELEASED.items()))
    statements: list[str] = []
    for key in plan:
        migration = loader.graph.nodes[key]
        if not is_about_large_tables(migration):
            state.__dict__.pop("apps", None)  # or each operation would have its models built anew
            for operation in migration.operations:
                operation.state_forwards(migration.app_label, state)
            continue
        with connection.schema_editor(collect_sql=True, atomic=bool(migration.atomic)) as editor:
            state = migration.apply(state, editor, collect_sql=True)
        statements += [str(each) for each in editor.collected_sql if not str(each).startswith("--")]
    return statements


@pytest.mark.postgres
@pytest.mark.skipif(settings.DATABASES["default"]["ENGINE"] == SQLITE, reason="PostgreSQL's locks")
@pytest.mark.django_db(transaction=True)
def test_migrations_since_the_last_release_lock_no_large_table_for_long() -> None:
    statements = collect_new_statements()
    assert any("CREATE INDEX CONCURRENTLY" in each for each in statements)
    found = list(find_locks(statements))
    assert [each for each in found if not any(f'"{name}"' in each for name in ACCEPTED)] == []

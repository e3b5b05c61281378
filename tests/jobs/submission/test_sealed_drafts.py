"""What people type is not to be read in the database: not in drafts, not in what they were."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.core.exceptions import FieldError
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from pytest_django import Settings

from jobs.dialects.document import Document
from jobs.models import Draft, DraftVersion
from jobs.submission import drafts
from jobs.submission.drafts import DraftContent
from jobs.trees import address
from quotas.models import User
from tests.factories import make_user

CANARY = "canary-5d1f7b6e"
MIGRATION = import_module("jobs.migrations.0017_sealed_drafts")


@pytest.fixture
def user(db: None) -> User:
    return make_user()


def raw(table: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table}")
        return repr(cursor.fetchall())


def test_draft_texts_and_versions_are_encrypted_in_database(user: User) -> None:
    first = drafts.keep(user, "", DraftContent(Document(f"{CANARY} one"), window="a"))
    assert first is not None
    pk = str(first.draft.pk)
    drafts.keep(user, pk, DraftContent(Document(f"{CANARY} two"), window="b", version=first.draft.version))
    drafts.keep(user, pk, DraftContent(Document(f"{CANARY} beside"), window="a", version=1))
    assert CANARY not in raw("jobs_draft") + raw("jobs_draftversion")
    assert Draft.objects.get().text == f"{CANARY} two"
    assert {row.text for row in DraftVersion.objects.all()} == {f"{CANARY} one", f"{CANARY} beside"}


def test_draft_text_lookup_raises_field_error(user: User) -> None:
    for model in (Draft, DraftVersion):
        for lookup in ("text", "text__contains", "text__startswith", "text__regex"):
            with pytest.raises(FieldError):
                model.objects.filter(**{lookup: CANARY}).exists()


def test_draft_records_referenced_trees(user: User) -> None:
    tree = address("ab" * 32)
    kept = drafts.keep(
        user, "", DraftContent(Document(f'{{"code": "{tree}", "again": "{tree}", "no": "upload://12"}}'))
    )
    assert kept is not None
    assert Draft.objects.get().trees == tree


def test_draft_text_with_lost_key_reads_as_empty(user: User, settings: Settings) -> None:
    drafts.keep(user, "", DraftContent(Document(CANARY)))
    settings.CONSOLE_FERNET_KEYS = ["8" * 43 + "="]
    assert Draft.objects.get().text == ""


def test_draft_migration_encrypts_existing_drafts_and_reverts(user: User) -> None:
    tree = address("cd" * 32)
    draft = Draft.objects.create(owner=user)
    DraftVersion.objects.create(draft=draft, number=1, saved_at="2026-01-01T00:00Z")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_draft SET text = %s", [f"{CANARY} {tree}"])
        cursor.execute("UPDATE jobs_draftversion SET text = %s", [CANARY])
    loader = MigrationLoader(connection)
    loader.replace_migrations = False  # type: ignore[attr-defined]  # what was squashed is part of it
    loader.build_graph()
    state = loader.project_state(("jobs", "0016_confided"))
    MIGRATION.Migration.operations[0].state_forwards("jobs", state)
    MIGRATION.seal(state.apps, connection.schema_editor())
    assert CANARY not in raw("jobs_draft") + raw("jobs_draftversion")
    assert (Draft.objects.get().text, Draft.objects.get().trees) == (f"{CANARY} {tree}", tree)
    assert DraftVersion.objects.get().text == CANARY
    MIGRATION.unseal(state.apps, connection.schema_editor())
    assert CANARY in raw("jobs_draft")

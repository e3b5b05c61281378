"""Access keys: found by their id, encrypted at rest, rotated, revoked, and never shown again."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from io import StringIO

import pytest
from cryptography.fernet import Fernet
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from quotas import encryption
from quotas.accounts import access_keys, tokens
from quotas.accounts.access_keys import IssuedKey
from quotas.models import AccessKey, AuditEntry, UsedSignature, User
from tests.factories import make_user

DAY = timedelta(days=1)


@pytest.fixture
def user(db: None) -> User:
    return make_user("olga")


def issued(user: User, lifetime: timedelta | None = None) -> IssuedKey:
    return access_keys.issue(user, name="laptop", scopes=["read"], lifetime=lifetime)


def test_access_key_is_found_by_its_id_with_its_owner(user: User) -> None:
    key = access_keys.issue(user, scopes=["submit", "read", "read"])
    assert re.fullmatch(r"JCAK[A-Za-z0-9]{12}", key.row.key_id)
    assert re.fullmatch(r"[A-Za-z0-9]{40}", key.secret)
    with CaptureQueriesContext(connection) as queries:
        found = access_keys.find(key.row.key_id)
        assert found is not None
        assert (found.user, found.scopes, found.reveal()) == (user, ["read", "submit"], key.secret)
    assert len(queries) == 1
    assert access_keys.holder(key.row.pk) == user


def test_access_key_secret_is_encrypted_at_rest_and_absent_from_texts(user: User) -> None:
    key = issued(user)
    stored = [str(value) for value in AccessKey.objects.values_list().get()]
    assert not any(key.secret in value for value in stored)
    assert encryption.decrypt(AccessKey.objects.get().ciphertext) == key.secret
    assert key.secret not in f"{key.row!r} {key.row} {key!r}"


def test_access_key_secrets_appear_in_no_audit_entry(user: User) -> None:
    key = issued(user)
    rotated = access_keys.rotate(user, key.row.pk)
    assert rotated is not None
    access_keys.revoke(user, rotated.row.pk)
    entries = AuditEntry.objects.filter(content_type__model="accesskey")
    assert {entry.action for entry in entries} == {"create", "update"}
    assert entries.filter(changes__has_key="revoked").count() == 1
    logged = str(list(entries.values()))
    assert not any(secret in logged for secret in (key.secret, rotated.secret))
    assert not any(row.ciphertext in logged for row in AccessKey.objects.all())


def test_access_key_of_another_letter_case_is_not_found(user: User) -> None:
    key = issued(user)
    assert access_keys.find(key.row.key_id.swapcase()) is None
    assert access_keys.find("") is None


def test_access_key_is_not_found_after_its_lifetime(user: User) -> None:
    key = issued(user, -DAY)
    assert access_keys.find(key.row.key_id) is None
    assert access_keys.holder(key.row.pk) is None
    assert key.row.has_expired
    assert not issued(user).row.has_expired


def test_access_key_of_inactive_account_is_not_found(user: User) -> None:
    key = issued(user)
    User.objects.update(is_active=False)
    assert access_keys.find(key.row.key_id) is None
    assert access_keys.rotate(user, key.row.pk) is None


def test_access_key_is_revoked_only_by_its_owner_and_only_once(user: User) -> None:
    key = issued(user)
    assert not access_keys.revoke(make_user(), key.row.pk)
    assert access_keys.find(key.row.key_id) is not None
    assert access_keys.revoke(user, key.row.pk)
    assert access_keys.find(key.row.key_id) is None
    assert not access_keys.revoke(user, key.row.pk)


def test_access_keys_of_one_user_are_revoked_together(user: User) -> None:
    other = issued(make_user("bob"))
    for _number in range(2):
        issued(user)
    assert access_keys.revoke_all(user) == 2
    assert access_keys.find(other.row.key_id) is not None


def test_rotated_access_key_works_one_more_day_beside_the_new_one(user: User) -> None:
    old = issued(user)
    new = access_keys.rotate(user, old.row.pk)
    assert new is not None
    assert (new.row.name, new.row.scopes, new.row.expires_at) == ("laptop", ["read"], None)
    assert new.secret != old.secret
    assert access_keys.find(old.row.key_id) is not None
    old.row.refresh_from_db()
    assert old.row.expires_at is not None
    assert abs(old.row.expires_at - timezone.now() - access_keys.GRACE) < timedelta(minutes=1)


def test_rotated_access_key_keeps_its_lifetime_and_its_earlier_end(user: User) -> None:
    old = issued(user, timedelta(hours=2))
    new = access_keys.rotate(user, old.row.pk)
    assert new is not None
    assert new.row.expires_at is not None
    assert abs(new.row.expires_at - timezone.now() - timedelta(hours=2)) < timedelta(minutes=1)
    old.row.refresh_from_db()
    assert old.row.expires_at is not None
    assert old.row.expires_at < timezone.now() + timedelta(hours=3)


def test_access_key_of_another_user_is_not_rotated(user: User) -> None:
    key = issued(user)
    assert access_keys.rotate(make_user(), key.row.pk) is None
    assert AccessKey.objects.count() == 1


def test_unknown_access_key_scope_is_refused(user: User) -> None:
    with pytest.raises(ValueError, match="everything"):
        access_keys.issue(user, scopes=["read", "everything"])
    assert not AccessKey.objects.exists()


def test_access_key_use_is_recorded_once_a_minute(user: User) -> None:
    key = issued(user)
    access_keys.note_use(key.row)
    key.row.refresh_from_db()
    first = key.row.last_used_at
    assert first is not None
    with CaptureQueriesContext(connection) as queries:
        access_keys.note_use(key.row)
    assert not queries.captured_queries
    AccessKey.objects.update(last_used_at=first - 2 * tokens.USED_EVERY)
    key.row.refresh_from_db()
    access_keys.note_use(key.row)
    key.row.refresh_from_db()
    assert key.row.last_used_at is not None
    assert key.row.last_used_at >= first


def test_access_key_survives_new_encryption_key_with_old_one_in_the_ring(
    user: User, settings: LazySettings
) -> None:
    key = issued(user)
    old, new = settings.CONSOLE_FERNET_KEYS, Fernet.generate_key().decode()
    settings.CONSOLE_FERNET_KEYS = [new, *old]
    found = access_keys.find(key.row.key_id)
    assert found is not None
    assert found.reveal() == key.secret
    settings.CONSOLE_FERNET_KEYS = [new]
    with pytest.raises(encryption.Unreadable):
        found.reveal()


def test_used_signature_is_recorded_only_once_for_its_key(user: User) -> None:
    one, other = issued(user).row, issued(user).row
    later = timezone.now() + DAY
    assert access_keys.record_signature(access_keys.digest_of(one, "nonce"), later)
    assert not access_keys.record_signature(access_keys.digest_of(one, "nonce"), later)
    assert access_keys.record_signature(access_keys.digest_of(other, "nonce"), later)


def test_expired_signatures_alone_are_deleted(user: User) -> None:
    row = issued(user).row
    access_keys.record_signature(access_keys.digest_of(row, "old"), timezone.now() - DAY)
    access_keys.record_signature(access_keys.digest_of(row, "\ud800 new"), timezone.now() + DAY)
    assert access_keys.delete_expired_signatures() == 1
    assert UsedSignature.objects.count() == 1


def command(*arguments: str) -> dict[str, str]:
    """Return what `manage.py issue_access_key` prints."""
    printed = StringIO()
    call_command("issue_access_key", *arguments, stdout=printed)
    output: dict[str, str] = json.loads(printed.getvalue())
    return output


def test_issue_access_key_command_prints_working_key(user: User) -> None:
    printed = command("olga", "--scopes", "read", "stop", "--days", "7", "--name", "nightly")
    row = access_keys.find(printed["access_key_id"])
    assert row is not None
    assert (row.user, row.scopes, row.name) == (user, ["read", "stop"], "nightly")
    assert row.reveal() == printed["access_key_secret"]
    assert row.expires_at is not None
    assert abs(row.expires_at - timezone.now() - timedelta(days=7)) < timedelta(minutes=1)


def test_issue_access_key_command_without_options_gives_all_scopes_for_ever(user: User) -> None:
    row = access_keys.find(command("olga")["access_key_id"])
    assert row is not None
    assert set(row.scopes) == set(tokens.SCOPES)
    assert row.expires_at is None


@pytest.mark.parametrize("arguments", [("nobody",), ("olga", "--days", "0"), ("olga", "--scopes", "fly")])
def test_issue_access_key_command_with_wrong_arguments_is_refused(
    user: User, arguments: tuple[str, ...]
) -> None:
    with pytest.raises(CommandError):
        command(*arguments)
    assert not AccessKey.objects.exists()

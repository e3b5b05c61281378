"""Access tokens: shown once, kept as a digest, good for a while and for as much as they say."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from io import StringIO

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from quotas.accounts import tokens
from quotas.models import AccessToken, User
from tests.factories import make_user

DAY = timedelta(days=1)


@pytest.fixture
def user(db: None) -> User:
    return make_user("olga")


def issued(user: User, scopes: tuple[str, ...] = ("read",), lifetime: timedelta = DAY) -> str:
    return tokens.issue(user, scopes=scopes, lifetime=lifetime)


def test_token_is_verified_and_stored_only_as_digest(user: User) -> None:
    token = issued(user, ("submit", "read", "read"))
    row = tokens.verify(token)
    assert row is not None
    assert (row.user, row.scopes) == (user, ["read", "submit"])
    assert token.startswith(f"jc_{row.prefix.removeprefix('jc_')}_")
    stored = [str(value) for value in AccessToken.objects.values_list().get()]
    assert not any(token in value or token.rpartition("_")[2] in value for value in stored)


def test_tokens_share_no_parts(user: User) -> None:
    first, second = issued(user).split("_"), issued(user).split("_")
    assert first[1] != second[1]
    assert first[2:] != second[2:]
    assert len("_".join(first[2:])) >= 43  # 256 bits


@pytest.mark.parametrize("part", [0, 1, 2])
def test_altered_token_is_rejected(user: User, part: int) -> None:
    pieces = issued(user).split("_", 2)
    pieces[part] = pieces[part][::-1]
    assert tokens.verify("_".join(pieces)) is None


def test_token_digest_under_another_key_is_rejected(user: User, settings: LazySettings) -> None:
    token = issued(user)
    settings.SECRET_KEY = "another key that is long enough to be one"
    assert tokens.verify(token) is None


def test_token_is_rejected_after_its_lifetime(user: User) -> None:
    assert tokens.verify(issued(user, lifetime=timedelta(seconds=-1))) is None


def test_token_of_inactive_account_is_rejected(user: User) -> None:
    token = issued(user)
    User.objects.update(is_active=False)
    assert tokens.verify(token) is None


def test_token_is_revoked_only_by_its_owner_and_only_once(user: User) -> None:
    token = issued(user)
    pk = AccessToken.objects.get().pk
    assert not tokens.revoke(make_user(), pk)
    assert tokens.verify(token) is not None
    assert tokens.revoke(user, pk)
    assert tokens.verify(token) is None
    assert not tokens.revoke(user, pk)


def test_unknown_scope_is_refused(user: User) -> None:
    with pytest.raises(ValueError, match="everything"):
        issued(user, ("read", "everything"))
    assert not AccessToken.objects.exists()


def test_token_use_takes_one_query_and_an_occasional_write(user: User) -> None:
    token = issued(user)
    tokens.verify(token)
    with CaptureQueriesContext(connection) as seen:
        tokens.verify(token)
    assert len(seen) == 1
    before = timezone.now() - 2 * tokens.USED_EVERY
    AccessToken.objects.update(last_used_at=before)
    tokens.verify(token)
    used = AccessToken.objects.get().last_used_at
    assert used is not None
    assert used > before


def command(*arguments: str) -> dict[str, str]:
    """What `manage.py issue_token` prints."""
    printed = StringIO()
    call_command("issue_token", *arguments, stdout=printed)
    told: dict[str, str] = json.loads(printed.getvalue())
    return told


def test_issue_token_command_prints_working_token_and_its_expiry(user: User) -> None:
    told = command("olga", "--scopes", "read", "stop", "--days", "7")
    row = tokens.verify(told["token"])
    assert row is not None
    assert (row.user, row.scopes) == (user, ["read", "stop"])
    assert abs(datetime.fromisoformat(told["expires"]) - row.expires_at) < timedelta(seconds=2)
    assert abs(row.expires_at - timezone.now() - timedelta(days=7)) < timedelta(minutes=1)


def test_issue_token_command_without_scopes_gives_all_scopes(user: User) -> None:
    row = tokens.verify(command("olga")["token"])
    assert row is not None
    assert set(row.scopes) == set(tokens.SCOPES)


def test_issue_token_command_with_plain_prints_the_token_alone(user: User) -> None:
    printed = StringIO()
    call_command("issue_token", "olga", "--plain", stdout=printed)
    row = tokens.verify(printed.getvalue().removesuffix("\n"))
    assert row is not None
    assert row.user == user


@pytest.mark.parametrize("arguments", [("nobody",), ("olga", "--days", "0"), ("olga", "--scopes", "fly")])
def test_issue_token_command_with_wrong_arguments_is_refused(user: User, arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError):
        command(*arguments)
    assert not AccessToken.objects.exists()


def test_token_survives_new_secret_key_with_old_one_as_fallback(user: User, settings: LazySettings) -> None:
    first, second = issued(user), issued(user)
    old = settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "n" * 60, [old]
    assert tokens.verify(first) is not None
    settings.SECRET_KEY_FALLBACKS = []
    assert tokens.verify(first) is not None, "its use stored it under the new key"
    assert tokens.verify(second) is None

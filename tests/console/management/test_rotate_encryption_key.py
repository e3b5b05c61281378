"""`manage.py rotate_encryption_key` leaves nothing that needs an older key."""

from __future__ import annotations

from io import StringIO

import pytest
from allauth.mfa.models import Authenticator
from cryptography.fernet import Fernet
from django.apps import apps
from django.conf import LazySettings
from django.core.management import call_command
from django.db import models
from django.utils import timezone

from console.management import reencryption
from jobs.models import Attempt, Channel, Draft, Image, PersonalSecret
from jobs.models.sealed import SealedTextField
from quotas import encryption
from quotas.accounts import access_keys
from quotas.clusters import encrypted_settings
from quotas.models import AccessKey, Cluster, Grant, User
from tests.factories import make_cluster, make_job, make_user

pytestmark = pytest.mark.django_db

OLD, NEW = (Fernet.generate_key().decode() for _ in range(2))


def rotate(*words: str) -> str:
    printed = StringIO()
    call_command("rotate_encryption_key", *words, stdout=printed)
    return printed.getvalue()


@pytest.fixture
def user(settings: LazySettings) -> User:
    """Return the owner of rows under the old key; the newest key is another one."""
    settings.CONSOLE_FERNET_KEYS = [OLD]
    made = make_user()
    access_keys.issue(made, name="key", scopes=["read"], lifetime=None)
    Draft.objects.create(owner=made, text="a: 1", sweep="")
    Grant.objects.create(
        user=made, provider="p", refresh_token=encryption.encrypt("refresh"), checked_at=timezone.now()
    )
    Authenticator.objects.create(user=made, type="totp", data={"secret": encryption.encrypt("totp")})
    codes = {"migrated_codes": [encryption.encrypt("code")], "used_mask": 0}
    Authenticator.objects.create(user=made, type="recovery_codes", data=codes)
    make_cluster("hpc", config=encrypted_settings.encrypt({"host": "h", "ssh": {"token": "secret"}}, {}))
    for name in ("ONE", "TWO", "THREE"):
        secret = PersonalSecret(owner=made, name=name)
        secret.encrypt(name.lower())
        secret.save()
    channel = Channel(person=made, kind=Channel.Kind.WEBHOOK)
    channel.encrypt({"url": "https://hook.example"})
    channel.save()
    job = make_job(owner=made)
    Attempt.objects.filter(job=job).update(
        endpoint_token=encryption.encrypt("endpoint"), confided=encryption.encrypt("[]")
    )
    settings.CONSOLE_FERNET_KEYS = [NEW, OLD]
    return made


def test_rotation_leaves_no_value_that_needs_the_old_key(user: User, settings: LazySettings) -> None:
    printed = rotate("--batch", "2")
    assert "jobs.PersonalSecret.ciphertext: 3 rows\n" in printed
    assert printed.endswith("12 rows encrypted under the newest key.\n")
    settings.CONSOLE_FERNET_KEYS = [NEW]
    assert {each.reveal() for each in PersonalSecret.objects.all()} == {"one", "two", "three"}
    assert AccessKey.objects.get(user=user).reveal()
    draft = Draft.objects.get()
    assert (draft.text, draft.sweep) == ("a: 1", "")
    assert encryption.decrypt(Grant.objects.get().refresh_token) == "refresh"
    data = {each.type: each.data for each in Authenticator.objects.all()}
    assert encryption.decrypt(data["totp"]["secret"]) == "totp"
    assert encryption.decrypt(data["recovery_codes"]["migrated_codes"][0]) == "code"
    config = encrypted_settings.decrypt(Cluster.objects.get(slug="hpc").config)
    assert config == {"host": "h", "ssh": {"token": "secret"}}
    assert Channel.objects.get(kind=Channel.Kind.WEBHOOK).address() == {"url": "https://hook.example"}
    attempt = Attempt.objects.get()
    assert encryption.decrypt(attempt.endpoint_token) == "endpoint"
    assert encryption.decrypt(attempt.confided) == "[]"


def test_rotation_repeated_after_an_interruption_changes_the_rest(user: User) -> None:
    reencryption.reencrypt(reencryption.Column(PersonalSecret, "ciphertext"), batch=1)
    stored = set(PersonalSecret.objects.values_list("ciphertext", flat=True))
    assert rotate().endswith("9 rows encrypted under the newest key.\n")
    assert set(PersonalSecret.objects.values_list("ciphertext", flat=True)) == stored
    assert rotate() == "0 rows encrypted under the newest key.\n"


def test_rotation_leaves_unreadable_values_as_they_are(user: User, settings: LazySettings) -> None:
    settings.CONSOLE_FERNET_KEYS = [NEW]
    stored = AccessKey.objects.get().ciphertext
    assert "quotas.AccessKey.ciphertext: 0 rows, 1 can be read with none of the keys\n" in rotate()
    assert AccessKey.objects.get().ciphertext == stored


def test_every_encrypted_column_is_rotated() -> None:
    found = {
        (model, field.name)
        for model in apps.get_models()
        for field in model._meta.get_fields()
        if isinstance(field, SealedTextField)
        or (isinstance(field, models.TextField) and field.name == "ciphertext")
    }
    assert (Image, "ciphertext") in found
    assert found <= {(each.model, each.name) for each in reencryption.COLUMNS}

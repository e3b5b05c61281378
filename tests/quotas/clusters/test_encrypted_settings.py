"""Secrets among a cluster's settings."""

import json
from typing import Any

import asyncssh
import pytest
from django.test import Client

from quotas.clusters import encrypted_settings
from quotas.models import AuditEntry, Cluster
from tests.factories import make_cluster, make_user

pytestmark = pytest.mark.django_db
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjF9.c2ln"


def test_secret_is_stored_encrypted_shown_masked_and_decrypted() -> None:
    told: dict[str, Any] = {"way": "rest", "token": TOKEN, "login": {"private_key": "PEM", "host": "h"}}
    kept = encrypted_settings.encrypt(told, {})
    assert TOKEN not in str(kept)
    assert "PEM" not in str(kept)
    assert encrypted_settings.decrypt(kept) == told
    masked = encrypted_settings.mask(kept)
    assert masked == {
        "way": "rest",
        "token": encrypted_settings.MASK,
        "login": {"private_key": encrypted_settings.MASK, "host": "h"},
    }
    assert encrypted_settings.encrypt(masked, kept) == kept
    assert encrypted_settings.decrypt(encrypted_settings.encrypt({**masked, "token": "x.y.z"}, kept)) == {
        **told,
        "token": "x.y.z",
    }
    assert encrypted_settings.encrypt({"token": ""}, kept) == {"token": ""}
    assert encrypted_settings.encrypt({"token": encrypted_settings.MASK}, {}) == {}


@pytest.mark.parametrize(
    "change",
    [
        {"url": "http://elsewhere:6820"},
        {"login": {"host": "elsewhere", "private_key": encrypted_settings.MASK}},
        {"login": {"host": "h", "port": 2222, "private_key": encrypted_settings.MASK}},
        {"proxy": "http://elsewhere"},
    ],
)
def test_masked_secret_with_changed_destination_must_be_reentered(change: dict[str, Any]) -> None:
    told = {"url": "http://here:6820", "token": TOKEN, "login": {"private_key": "PEM", "host": "h"}}
    kept = encrypted_settings.encrypt(told, {})
    masked = encrypted_settings.mask(kept)
    with pytest.raises(encrypted_settings.SecretsNeeded) as again:
        encrypted_settings.encrypt({**masked, **change}, kept)
    assert again.value.names == ["token", "login/private_key"]
    anew = {**masked, **change, "token": "x.y.z", "login": {"host": "elsewhere", "private_key": "NEW"}}
    assert encrypted_settings.decrypt(encrypted_settings.encrypt(anew, kept))["token"] == "x.y.z"
    assert encrypted_settings.encrypt({**masked, "partitions": {}}, kept)["token"] == kept["token"]


def test_masked_key_of_object_store_must_be_reentered_only_for_another_store() -> None:
    store = {"bucket": "s3://sets", "endpoint": "https://here", "secret_key": "s3cret"}
    other = {"bucket": "s3://more", "endpoint": "https://there", "secret_key": "0ther"}
    kept = encrypted_settings.encrypt({"datasets": {"oss://a/b": store}}, {})
    assert "s3cret" not in str(kept)
    masked = encrypted_settings.mask(kept)["datasets"]["oss://a/b"]
    both = encrypted_settings.encrypt({"datasets": {"oss://a/b": masked, "oss://c": other}}, kept)
    assert encrypted_settings.decrypt(both) == {"datasets": {"oss://a/b": store, "oss://c": other}}
    moved = [{"oss://a/b": {**masked, name: "elsewhere"}} for name in ("bucket", "endpoint", "region")]
    for datasets in (*moved, {"oss://renamed": masked}):
        with pytest.raises(encrypted_settings.SecretsNeeded):
            encrypted_settings.encrypt({"datasets": datasets}, kept)


def test_value_encrypted_elsewhere_is_treated_as_plain_secret() -> None:
    kept = encrypted_settings.encrypt({"token": TOKEN}, {})
    assert encrypted_settings.decrypt(encrypted_settings.encrypt(kept, {})) == kept


def test_undecryptable_secret_error_requests_entering_it_again() -> None:
    with pytest.raises(ValueError, match="enter it again"):
        encrypted_settings.decrypt({"token": f"{encrypted_settings.MARK}nonsense"})


def test_cluster_admin_never_shows_the_key_and_retains_it_under_mask(client: Client) -> None:
    client.force_login(make_user(admin=True))
    cluster = make_cluster(backend="slurm", config={})
    url = f"/admin/quotas/cluster/{cluster.pk}/change/"
    fields = {
        "slug": cluster.slug,
        "name": cluster.name,
        "backend": "slurm",
        "admission": cluster.admission,
        "cordon_percent": cluster.cordon_percent,
        "enabled": "on",
        "save_untested": "on",
    }
    key = asyncssh.generate_private_key("ssh-ed25519")
    private, host_key = key.export_private_key().decode(), key.export_public_key().decode()
    login = {"host": "here", "user": "console", "private_key": private, "host_key": host_key}
    masked = {**login, "private_key": encrypted_settings.MASK}
    for config in ({"login": login}, {"login": masked, "qos": {}}):
        answer = client.post(url, {**fields, "config": json.dumps(config)})
        assert answer.status_code == 302, answer.content
        saved = Cluster.objects.get(pk=cluster.pk)
        assert private not in str(saved.config)
        assert encrypted_settings.decrypt(saved.config)["login"]["private_key"] == private
        page = client.get(url).content.decode()
        assert encrypted_settings.MASK in page
        assert private not in page
        assert encrypted_settings.MARK not in page
    moved = {"login": {**masked, "host": "elsewhere"}}
    answer = client.post(url, {**fields, "config": json.dumps(moved)})
    assert "Enter again: login/private_key." in answer.content.decode()
    assert "elsewhere" in answer.content.decode(), "what was typed is kept"
    assert Cluster.objects.get(pk=cluster.pk).config["login"]["host"] == "here"
    entries = str(list(AuditEntry.objects.values_list("changes", "details")))
    assert private not in entries
    assert encrypted_settings.MARK not in entries

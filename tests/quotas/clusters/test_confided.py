"""Secrets among a cluster's settings."""

import json
from typing import Any

import pytest
from django.test import Client

from quotas.clusters import confided
from quotas.models import AuditEntry, Cluster
from tests.factories import make_cluster, make_user

pytestmark = pytest.mark.django_db
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjF9.c2ln"


def test_a_secret_is_kept_encrypted_shown_masked_and_given_back() -> None:
    told: dict[str, Any] = {"way": "rest", "token": TOKEN, "login": {"private_key": "PEM", "host": "h"}}
    kept = confided.keep(told, {})
    assert TOKEN not in str(kept)
    assert "PEM" not in str(kept)
    assert confided.opened(kept) == told
    masked = confided.shown(kept)
    assert masked == {
        "way": "rest",
        "token": confided.MASK,
        "login": {"private_key": confided.MASK, "host": "h"},
    }
    assert confided.keep(masked, kept) == kept
    assert confided.opened(confided.keep({**masked, "token": "x.y.z"}, kept)) == {**told, "token": "x.y.z"}
    assert confided.keep({"token": ""}, kept) == {"token": ""}
    assert confided.keep({"token": confided.MASK}, {}) == {}


@pytest.mark.parametrize(
    "change",
    [
        {"url": "http://elsewhere:6820"},
        {"login": {"host": "elsewhere", "private_key": confided.MASK}},
        {"login": {"host": "h", "port": 2222, "private_key": confided.MASK}},
        {"proxy": "http://elsewhere"},
    ],
)
def test_a_secret_that_was_not_entered_goes_nowhere_else(change: dict[str, Any]) -> None:
    told = {"url": "http://here:6820", "token": TOKEN, "login": {"private_key": "PEM", "host": "h"}}
    kept = confided.keep(told, {})
    masked = confided.shown(kept)
    with pytest.raises(confided.EnterAgain) as again:
        confided.keep({**masked, **change}, kept)
    assert again.value.names == ["token", "login/private_key"]
    anew = {**masked, **change, "token": "x.y.z", "login": {"host": "elsewhere", "private_key": "NEW"}}
    assert confided.opened(confided.keep(anew, kept))["token"] == "x.y.z"
    assert confided.keep({**masked, "partitions": {}}, kept)["token"] == kept["token"]


def test_what_was_encrypted_elsewhere_is_taken_for_a_secret_itself() -> None:
    kept = confided.keep({"token": TOKEN}, {})
    assert confided.opened(confided.keep(kept, {})) == kept


def test_a_secret_that_no_key_opens_says_what_to_do() -> None:
    with pytest.raises(ValueError, match="enter it again"):
        confided.opened({"token": f"{confided.MARK}nonsense"})


def test_the_admin_never_sees_the_token_and_keeps_it_by_leaving_the_mask(client: Client) -> None:
    client.force_login(make_user(admin=True))
    cluster = make_cluster(backend="slurm", config={})
    url = f"/admin/quotas/cluster/{cluster.pk}/change/"
    fields = {
        "slug": cluster.slug,
        "name": cluster.name,
        "backend": "slurm",
        "admission": cluster.admission,
        "enabled": "on",
    }
    for told in ({"way": "rest", "token": TOKEN}, {"token": confided.MASK, "qos": {}}):
        answer = client.post(url, {**fields, "config": json.dumps(told)})
        assert answer.status_code == 302, answer.content
        saved = Cluster.objects.get(pk=cluster.pk)
        assert TOKEN not in str(saved.config)
        assert confided.opened(saved.config)["token"] == TOKEN
        page = client.get(url).content.decode()
        assert confided.MASK in page
        assert TOKEN not in page
        assert confided.MARK not in page
    moved = {"way": "rest", "url": "http://elsewhere:6820", "token": confided.MASK}
    answer = client.post(url, {**fields, "config": json.dumps(moved)})
    assert "Enter again: token." in answer.content.decode()
    assert "elsewhere" in answer.content.decode(), "what was typed is kept"
    assert "url" not in Cluster.objects.get(pk=cluster.pk).config
    trail = str(list(AuditEntry.objects.values_list("changes", "details")))
    assert TOKEN not in trail
    assert confided.MARK not in trail

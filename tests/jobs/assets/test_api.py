"""Assets over the native API."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from jobs.models import AssetCheck, CodeSource, Dataset
from quotas.accounts import tokens
from quotas.models import User
from tests.jobs.assets.conftest import make_code, make_dataset, make_image
from tests.jobs.web.conftest import People, browser

pytestmark = pytest.mark.django_db

V1 = "/api/console/v1/assets"


def send(client: Client, method: str, path: str, body: Any = None) -> Any:
    data = json.dumps(body if body is not None else {})
    return getattr(client, method)(f"{V1}/{path}", data, content_type="application/json")


def test_asset_list_shows_only_visible_assets(people: People) -> None:
    ours, public = make_image(people.quota.workspace), make_image(name="all")
    for user, ids in ((people.owner, [public.key, ours.key]), (people.stranger, [public.key])):
        answer = browser(user).get(f"{V1}/images").json()
        assert [each["id"] for each in answer["assets"]] == ids
    assert browser(people.owner).get(f"{V1}/users").status_code == 404
    assert Client().get(f"{V1}/images").status_code == 401


def test_asset_list_is_paged(people: People) -> None:
    for number in range(3):
        make_image(people.quota.workspace, name=str(number))
    client = browser(people.owner)
    first = client.get(f"{V1}/images?limit=2").json()
    second = client.get(first["next"]).json()
    assert [each["name"] for each in (*first["assets"], *second["assets"])] == ["2", "1", "0"]
    assert second["next"] is None


def test_asset_is_read_without_its_password(people: People) -> None:
    row = make_dataset(people.quota.workspace, "s3://sets/x", source="s3", username="AK")
    row.encrypt("canary")
    row.save()
    answer = browser(people.owner).get(f"{V1}/datasets/{row.key}")
    told = answer.json()
    assert b"canary" not in answer.content
    assert (told["kept"], told["workspace"], told["fields"]["username"]) == (True, "vision", "AK")
    assert told["versions"] == [{"number": 1, "uri": "s3://sets/x", "description": "", "default": True}]
    assert browser(people.stranger).get(f"{V1}/datasets/{row.key}").status_code == 404


def test_assets_are_added_and_changed_by_managers(people: People) -> None:
    body = {"name": "x", "repo": "https://git.example.org/x", "workspace": "vision", "password": "canary"}
    assert send(browser(people.owner), "post", "code", body).status_code == 400
    made = send(browser(people.manager), "post", "code", body)
    assert made.status_code == 201, made.content
    assert b"canary" not in made.content
    row = CodeSource.objects.get()
    assert (row.mount_path, row.reveal()) == ("/root/code", "canary")
    wrong = send(browser(people.manager), "patch", f"code/{row.key}", {"repo": "file:///etc"})
    assert (wrong.status_code, CodeSource.objects.get().repo) == (400, "https://git.example.org/x")
    fine = send(browser(people.manager), "patch", f"code/{row.key}", {"branch": "dev", "retired": True})
    assert (fine.json()["fields"]["branch"], fine.json()["retired"]) == ("dev", True)
    assert CodeSource.objects.get().reveal() == "canary"
    assert send(browser(people.owner), "patch", f"code/{row.key}", {"branch": "x"}).status_code == 403
    assert send(browser(people.stranger), "patch", f"code/{row.key}", {"branch": "x"}).status_code == 404
    assert send(browser(people.manager), "post", "code", {**body, "workspace": None}).status_code == 403
    assert (
        send(browser(people.manager), "post", "code", {**body, "workspace": "elsewhere"}).status_code == 400
    )
    assert send(browser(people.admin), "post", "code", {**body, "workspace": None}).status_code == 201
    assert send(browser(people.manager), "post", "code", [1]).status_code == 400


def test_dataset_change_of_address_adds_a_version(people: People) -> None:
    body = {"name": "set", "source": "host", "uri": "/data/1", "workspace": "vision", "mount_path": "/mnt/x"}
    made = send(browser(people.manager), "post", "datasets", body)
    assert made.status_code == 201, made.content
    row = Dataset.objects.get()
    more = send(browser(people.manager), "patch", f"datasets/{row.key}", {"uri": "/data/2"})
    assert [(each["number"], each["default"]) for each in more.json()["versions"]] == [(2, True), (1, False)]
    assert send(browser(people.manager), "patch", f"datasets/{row.key}", {"uri": "x"}).status_code == 400


def test_asset_check_is_requested_and_shown(people: People) -> None:
    row = make_code(people.quota.workspace)
    client = browser(people.owner)
    assert client.get(f"{V1}/code/{row.key}/test").status_code == 404
    asked = send(client, "post", f"code/{row.key}/test")
    assert (asked.status_code, asked.json()["state"]) == (202, "waiting")
    AssetCheck.objects.update(state="works", code="worked", said="abc", ended_at="2026-01-01T00:00:00Z")
    told = client.get(f"{V1}/code/{row.key}/test").json()
    assert (told["state"], told["message"], told["said"]) == ("works", "Read successfully.", "abc")
    assert send(browser(people.stranger), "post", f"code/{row.key}/test").status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [("post", "code", "admin"), ("patch", "code/{}", "admin"), ("post", "code/{}/test", "submit")],
)
def test_asset_token_without_the_scope_is_refused(people: People, method: str, path: str, scope: str) -> None:
    row = make_code(people.quota.workspace)
    refused = _with(people.manager, ["read"], method, path.format(row.key))
    assert (refused.status_code, scope in refused.json()["detail"]) == (403, True)


def _with(user: User, scopes: list[str], method: str, path: str) -> Any:
    text = tokens.issue(user, scopes=scopes, lifetime=timedelta(days=1))
    headers = {"Authorization": f"Bearer {text}"}
    return getattr(Client(), method)(f"{V1}/{path}", "{}", content_type="application/json", headers=headers)


@pytest.mark.parametrize("read_only", [True, False])
def test_dataset_is_read_only_as_requested(people: People, read_only: bool) -> None:
    body = {"name": "x", "uri": "s3://sets/x", "source": "s3", "workspace": "vision", "read_only": read_only}
    made = send(browser(people.manager), "post", "datasets", body)
    assert made.status_code == 201, made.content
    assert Dataset.objects.get().read_only == read_only

"""`POST uploads/missing`: what has to be sent, and nothing about anybody else."""

from __future__ import annotations

import pytest

from tests.jobs.assets.uploads.conftest import UPLOADS, People, Sender, digest, packed, send, tree_of

A, B = b"import torch\n", b"print('hi')\n"


def asked(client: object, *contents: bytes, tree: str | None = None) -> list[str]:
    body = {"tree": tree, "blobs": {digest(each): len(each) for each in contents}}
    answer = client.post(f"{UPLOADS}/missing", json=body)  # type: ignore[attr-defined]
    assert answer.status_code == 200, answer.text
    return [row["sha256"] for row in answer.json()["missing"]]


def test_missing_query_omits_uploaded_blob(sender: Sender, people: People) -> None:
    client = sender(people.owner)
    assert asked(client, A, B) == [digest(A), digest(B)]
    client.post(f"{UPLOADS}/packs", content=packed(A))
    assert asked(client, A, B) == [digest(B)]


def test_missing_query_lists_blobs_uploaded_by_others(sender: Sender, people: People) -> None:
    tree = send(sender(people.owner), {"a": A}).removeprefix("upload://")
    for other in (people.member, people.manager, people.stranger, people.admin):
        assert asked(sender(other), A, tree=tree) == [digest(A)]


def test_missing_query_answers_known_tree_without_blob_list(sender: Sender, people: People) -> None:
    client = sender(people.owner)
    uri = send(client, {"a": A, "b/c": B})
    body = {"tree": tree_of({"a": A, "b/c": B}).id, "blobs": {}}
    assert client.post(f"{UPLOADS}/missing", json=body).json() == {"tree": uri, "missing": []}


def test_missing_query_reports_received_bytes_of_partial_upload(sender: Sender, people: People) -> None:
    client = sender(people.owner)
    headers = {"Content-Range": f"bytes 0-3/{len(A)}"}
    assert client.put(f"{UPLOADS}/blobs/{digest(A)}", content=A[:4], headers=headers).status_code == 202
    [row] = client.post(f"{UPLOADS}/missing", json={"blobs": {digest(A): len(A)}}).json()["missing"]
    assert row == {"sha256": digest(A), "size": len(A), "received": 4}


@pytest.mark.parametrize(
    "body",
    [[], {}, {"blobs": []}, {"blobs": {"x": 1}}, {"blobs": {"a" * 64: -1}}, {"tree": "x", "blobs": {}}],
)
def test_missing_query_rejects_invalid_body(sender: Sender, people: People, body: object) -> None:
    answer = sender(people.owner).post(f"{UPLOADS}/missing", json=body)
    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_missing_query_requires_submit_scope(sender: Sender, people: People) -> None:
    answer = sender(people.owner, {"read", "stop", "exec", "admin"}).post(f"{UPLOADS}/missing", json={})
    assert answer.status_code == 403
    assert 'scope="submit"' in answer.headers["WWW-Authenticate"]

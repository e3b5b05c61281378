"""`PUT` and `GET uploads/blobs/SHA256`: a file arrives, all at once or from where it broke off."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from django.conf import LazySettings, settings

from jobs.assets.uploads import arrivals, store
from jobs.models import Blob, HeldBlob, StoredObject
from tests.jobs.assets.uploads.conftest import UPLOADS, People, Sender, digest
from tests.waiting import wait_for

DATA = os.urandom(300_000)
PATH = f"{UPLOADS}/blobs/{digest(DATA)}"


def ranged(first: int, last: int, size: int = len(DATA)) -> dict[str, str]:
    return {"Content-Range": f"bytes {first}-{last}/{size}"}


def content() -> bytes:
    blob = Blob.objects.select_related("stored").get()
    return store.read(blob.stored.name)[blob.offset : blob.offset + blob.size]


def test_blob_upload_stores_file_by_digest_with_owner_only_mode(sender: Sender, people: People) -> None:
    client = sender(people.owner)
    assert client.get(PATH).json() == {"sha256": digest(DATA), "received": 0, "complete": False}
    answer = client.put(PATH, content=DATA)
    assert (answer.status_code, answer.json()["complete"]) == (201, True)
    assert content() == DATA
    stored = Path(settings.CONSOLE_HOME, "uploads", StoredObject.objects.get().name)
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    assert stat.S_IMODE(stored.parent.stat().st_mode) == 0o700
    assert client.get(PATH).json() == {"sha256": digest(DATA), "received": len(DATA), "complete": True}
    assert client.put(PATH, content=b"").status_code == 200


def test_blob_upload_resumes_after_broken_connection(sender: Sender, people: People, base_url: str) -> None:
    client = sender(people.owner)
    parts = urlsplit(base_url)
    with socket.create_connection((parts.hostname or "", parts.port or 0)) as raw:
        head = f"PUT {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(DATA)}\r\n"
        raw.sendall(f"{head}Authorization: {client.headers['Authorization']}\r\n\r\n".encode())
        raw.sendall(DATA[:200_000])
    wait_for(lambda: arrivals.received_bytes(people.owner, digest(DATA)) == 200_000)

    def rest() -> int:
        answer = client.put(PATH, content=DATA[200_000:], headers=ranged(200_000, len(DATA) - 1))
        return 0 if answer.status_code == 409 else answer.status_code  # while the first has not been closed

    assert (wait_for(rest), content()) == (201, DATA)
    assert not list(arrivals.folder(people.owner).iterdir())


def test_blob_upload_accepts_overlapping_parts_and_refuses_gap(sender: Sender, people: People) -> None:
    client = sender(people.owner)
    assert client.put(PATH, content=DATA[:1000], headers=ranged(0, 999)).json()["received"] == 1000
    assert client.put(PATH, content=b"x" * 500, headers=ranged(500, 999)).json()["received"] == 1000
    answer = client.put(PATH, content=DATA[2000:3000], headers=ranged(2000, 2999))
    assert (answer.status_code, answer.json()["code"], answer.json()["received"]) == (409, "offset", 1000)
    last = len(DATA) - 1
    assert client.put(PATH, content=DATA[500:], headers=ranged(500, last)).status_code == 201
    assert content() == DATA


def test_blob_upload_discards_content_with_wrong_digest(sender: Sender, people: People) -> None:
    client = sender(people.owner)
    for headers in ({}, ranged(0, len(DATA) - 1)):
        answer = client.put(PATH, content=DATA[::-1], headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (422, "hash")
    assert client.put(PATH, content=DATA, headers=ranged(0, 9, 10)).json()["code"] == "longer"
    assert not list(arrivals.folder(people.owner).iterdir())
    assert not Blob.objects.exists()


def test_equal_blobs_are_stored_once_and_held_per_person(sender: Sender, people: People) -> None:
    sender(people.owner).put(PATH, content=DATA)
    other = sender(people.stranger)
    assert other.get(PATH).json()["complete"] is False
    assert other.put(PATH, content=DATA[:9], headers=ranged(0, 8)).status_code == 202, "proves nothing yet"
    assert not HeldBlob.objects.filter(person=people.stranger).exists()
    assert other.put(PATH, content=DATA).status_code == 201
    assert (Blob.objects.count(), StoredObject.objects.count(), HeldBlob.objects.count()) == (1, 1, 2)


def test_blob_upload_enforces_file_and_person_limits(
    sender: Sender, people: People, settings: LazySettings
) -> None:
    client = sender(people.owner)
    settings.CONSOLE_CODE_FILE_MIB = 1
    answer = client.put(PATH, content=b"x", headers=ranged(0, 0, (1 << 20) + 1))
    assert (answer.status_code, answer.json()["code"]) == (413, "file_large")
    settings.CONSOLE_CODE_PERSON_MIB = 1
    assert client.put(PATH, content=DATA).status_code == 201
    more = os.urandom(700_000)
    path = f"{UPLOADS}/blobs/{digest(more)}"
    assert client.put(path, content=more[:9], headers=ranged(0, 8, len(more))).status_code == 202
    third = os.urandom(100_000)
    answer = client.put(f"{UPLOADS}/blobs/{digest(third)}", content=third)
    assert answer.status_code == 201, "what broke off counts as much as there is of it"
    answer = client.put(path, content=more)
    assert (answer.status_code, answer.json()["code"]) == (413, "person_full")
    assert sender(people.member).put(path, content=more).status_code == 201


@pytest.mark.parametrize("range_", ["bytes 5-2/10", "bytes 0-10/10", "bytes */10", "lines 0-1/2"])
def test_blob_upload_rejects_invalid_content_range(sender: Sender, people: People, range_: str) -> None:
    answer = sender(people.owner).put(PATH, content=b"x", headers={"Content-Range": range_})
    assert (answer.status_code, answer.json()["code"]) == (400, "range")


@pytest.mark.parametrize("name", ["x", "A" * 64, "a" * 63])
def test_blob_endpoints_reject_invalid_digest(sender: Sender, people: People, name: str) -> None:
    client = sender(people.owner)
    for answer in (client.get(f"{UPLOADS}/blobs/{name}"), client.put(f"{UPLOADS}/blobs/{name}", content=b"")):
        assert (answer.status_code, answer.json()["code"]) == (400, "digest")


def test_blob_endpoints_require_submit_scope(sender: Sender, people: People) -> None:
    client = sender(people.owner, {"read", "stop", "exec", "admin"})
    for answer in (client.get(PATH), client.put(PATH, content=DATA)):
        assert answer.status_code == 403
        assert 'scope="submit"' in answer.headers["WWW-Authenticate"]
    assert httpx.put(f"{client.base_url}{PATH}", content=DATA, trust_env=False).status_code == 401

"""`POST uploads/packs`: many small files in one request."""

from __future__ import annotations

import os

import httpx
import pytest
from django.test import Client

from jobs.assets.uploads import arrivals, store
from jobs.models import Blob, HeldBlob, StoredObject
from tests.jobs.assets.uploads.conftest import UPLOADS, People, Sender, digest, packed

FILES = [b"", b"one\n", b"two\n" * 1000, os.urandom(5000)]


def test_pack_upload_stores_every_file_by_digest(sender: Sender, people: People) -> None:
    answer = sender(people.owner).post(f"{UPLOADS}/packs", content=packed(*FILES, FILES[1]))
    assert (answer.status_code, answer.json()) == (201, {"files": 5})
    [stored] = StoredObject.objects.all()
    whole = store.read(stored.name)
    found = {blob.sha256: whole[blob.offset : blob.offset + blob.size] for blob in Blob.objects.all()}
    assert found == {digest(each): each for each in FILES}
    assert HeldBlob.objects.filter(person=people.owner).count() == len(FILES)
    assert not list(arrivals.folder(people.owner).iterdir())


def test_pack_upload_does_not_store_existing_content_again(sender: Sender, people: People) -> None:
    sender(people.owner).post(f"{UPLOADS}/packs", content=packed(*FILES))
    sender(people.member).post(f"{UPLOADS}/packs", content=packed(*FILES))
    assert (StoredObject.objects.count(), HeldBlob.objects.count()) == (1, 2 * len(FILES))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (packed(b"one")[:-1], "pack_cut"),
        (packed(b"one")[:20], "pack_cut"),
        (packed(b"one")[:-1] + b"x", "hash"),
        (packed(b"good") + packed(b"one")[:-1] + b"x", "hash"),
        (arrivals.HEAD.pack(b"x" * 32, 1 << 60), "pack_large"),
        (b"x" * (arrivals.PACK_BYTES + 1), "pack_large"),
    ],
)
def test_pack_upload_rejects_invalid_pack_and_stores_nothing(
    sender: Sender, people: People, body: bytes, code: str
) -> None:
    answer = sender(people.owner).post(f"{UPLOADS}/packs", content=body)
    assert answer.json()["code"] == code
    assert answer.status_code == {"hash": 422, "pack_large": 413}.get(code, 400)
    assert not Blob.objects.exists()
    assert not arrivals.folder(people.owner).exists() or not list(arrivals.folder(people.owner).iterdir())


def test_pack_upload_requires_submit_scope(sender: Sender, people: People) -> None:
    answer = sender(people.owner, {"read"}).post(f"{UPLOADS}/packs", content=packed(b"x"))
    assert answer.status_code == 403
    assert not Blob.objects.exists()


def test_pack_upload_from_page_requires_csrf_token(base_url: str, people: People) -> None:
    browser = Client()
    browser.force_login(people.owner)
    token = str(browser.get("/jobs/new").context["csrf_token"])
    cookies = {name: morsel.value for name, morsel in browser.cookies.items()}
    with httpx.Client(base_url=base_url, cookies=cookies, trust_env=False, timeout=60) as page:
        refused = page.post(f"{UPLOADS}/packs", content=packed(b"x"))
        assert (refused.status_code, Blob.objects.exists()) == (403, False)
        sent = page.post(f"{UPLOADS}/packs", content=packed(b"x"), headers={"X-CSRFToken": token})
    assert (sent.status_code, sent.json()) == (201, {"files": 1})

"""What nobody uses goes, and nothing else does."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone

from jobs.assets.uploads import arrivals, expiry, store, uploaded_trees
from jobs.assets.uploads.arrivals import Arrival, Range
from jobs.models import Blob, Draft, HeldBlob, Job, StoredObject, UploadedTree
from tests.jobs.assets.uploads.conftest import People, digest, tree_of
from tests.jobs.assets.uploads.test_in_jobs import sent, submit

FILES = {"a": b"one", "b": b"two"}


def a_month_later() -> None:
    """What was kept until some time is kept until 31 days before that."""
    for model in (Blob, HeldBlob, UploadedTree):
        for row in model.objects.all():
            model.objects.filter(pk=row.pk).update(kept_until=row.kept_until - timedelta(days=31))
    StoredObject.objects.update(created_at=timezone.now() - timedelta(days=31))


def lies_there() -> list[Path]:
    around = Path(settings.CONSOLE_HOME, "uploads")
    return [path for path in around.rglob("*") if path.is_file() and "arriving" not in path.parts]


@pytest.fixture(autouse=True)
def _nothing_from_before(people: People) -> None:
    for path in lies_there():
        path.unlink()


def test_expiry_removes_unused_tree_with_its_blobs_and_objects(people: People) -> None:
    sent(people.owner, FILES)
    expiry.remove_expired()
    assert UploadedTree.objects.exists()
    a_month_later()
    expiry.remove_expired()
    assert [model.objects.count() for model in (UploadedTree, HeldBlob, Blob, StoredObject)] == [0, 0, 0, 0]
    assert lies_there() == []


@pytest.mark.parametrize("user", ["job", "draft"])
def test_expiry_keeps_tree_used_by_job_or_draft(people: People, user: str) -> None:
    uri = sent(people.owner, FILES)
    if user == "job":
        submit(people.owner, uri)
    else:
        Draft.objects.create(owner=people.owner, text=f'{{"codeDir": "{uri}"}}')
    a_month_later()
    expiry.remove_expired()
    row = UploadedTree.objects.get()
    assert uploaded_trees.load(row) == tree_of(FILES)
    assert uploaded_trees.find_missing(people.owner, tree_of(FILES).contents()) == []
    Draft.objects.all().delete()
    Job.objects.all().delete()
    a_month_later()
    expiry.remove_expired()
    assert lies_there() == []


def test_missing_query_protects_blobs_from_expiry(people: People) -> None:
    sent(people.owner, FILES)
    Blob.objects.update(kept_until=timezone.now())
    HeldBlob.objects.update(kept_until=timezone.now())
    assert uploaded_trees.find_missing(people.owner, tree_of(FILES).contents()) == []
    expiry.remove_expired()
    assert Blob.objects.count() == 2


def test_expiry_spares_object_being_stored(people: People, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x")
    store.store_file(tmp_path / "x", "packs")
    expiry.remove_expired()
    assert len(lies_there()) == 1


def test_expiry_removes_partial_upload_after_one_day(people: People) -> None:
    arrival = Arrival(people.owner, digest(b"whole"), Range(0, 5))
    arrival.write(b"who")
    arrival.close()
    expiry.remove_expired()
    assert arrivals.received_bytes(people.owner, digest(b"whole")) == 3
    long_ago = time.time() - arrivals.KEPT_SECONDS - 1
    os.utime(arrival.path, (long_ago, long_ago))
    expiry.remove_expired()
    assert arrivals.received_bytes(people.owner, digest(b"whole")) == 0

"""`POST uploads/trees` and `GET uploads/trees/ID`: trees of what their person sent."""

from __future__ import annotations

import pytest
from django.conf import LazySettings

from jobs.models import HeldTree, TreeUse, UploadedTree, Visibility
from jobs.states import State
from jobs.trees import Entry, Kind
from tests.factories import make_job
from tests.jobs.assets.uploads.conftest import UPLOADS, People, Sender, digest, packed, send, tree_of

FILES = {"train.py": b"print(1)\n", "包/模块.py": b"x = 1\n"}
LINK = Entry("latest.py", Kind.LINK, target="train.py")


def test_tree_upload_is_idempotent_and_readable(sender: Sender, people: People) -> None:
    client = sender(people.owner)
    uri = send(client, FILES, LINK)
    assert send(client, FILES, LINK) == uri
    assert UploadedTree.objects.count() == 1
    told = client.get(f"{UPLOADS}/trees/{uri.removeprefix('upload://')}").json()
    assert (told["uri"], told["files"], told["size"]) == (uri, 3, 15)
    assert ["latest.py", "link", "train.py"] in told["entries"]


def test_tree_upload_with_missing_blobs_is_refused(sender: Sender, people: People) -> None:
    send(sender(people.owner), FILES)
    client = sender(people.stranger)
    client.post(f"{UPLOADS}/packs", content=packed(FILES["train.py"]))
    answer = client.post(f"{UPLOADS}/trees", content=tree_of(FILES).dump())
    assert (answer.status_code, answer.json()["code"]) == (409, "missing")
    assert answer.json()["missing"] == [digest(FILES["包/模块.py"])]
    assert not HeldTree.objects.filter(person=people.stranger).exists()


def test_tree_read_is_limited_to_owner_and_job_readers(sender: Sender, people: People) -> None:
    address = f"{UPLOADS}/trees/{send(sender(people.owner), FILES).removeprefix('upload://')}"
    others = [people.member, people.manager, people.admin, people.stranger]
    assert [sender(each).get(address).status_code for each in others] == [404, 404, 404, 404]
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota)
    TreeUse.objects.create(tree=UploadedTree.objects.get(), job=job)
    assert [sender(each).get(address).status_code for each in others] == [404, 200, 200, 404]
    job.visibility = Visibility.PUBLIC
    job.save()
    assert [sender(each).get(address).status_code for each in others] == [200, 200, 200, 404]
    assert sender(people.owner, {"submit"}).get(address).status_code == 403


def test_tree_upload_enforces_file_and_size_limits(
    sender: Sender, people: People, settings: LazySettings
) -> None:
    client = sender(people.owner)
    settings.CONSOLE_CODE_FILES = 1
    answer = client.post(f"{UPLOADS}/trees", content=tree_of(FILES).dump())
    assert (answer.status_code, answer.json()["code"]) == (413, "tree_files")
    settings.CONSOLE_CODE_MIB = 1
    large = Entry("large", Kind.FILE, "a" * 64, 1 << 21)
    answer = client.post(f"{UPLOADS}/trees", content=tree_of({}, large).dump())
    assert (answer.status_code, answer.json()["code"]) == (413, "tree_large")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ('{"format":1,"entries":[["../x","folder"]]}', "path"),
        ('{"format":1,"entries":[["x","link","/etc"]]}', "link_out"),
        ('{"format":2,"entries":[]}', "format"),
    ],
)
def test_tree_upload_rejects_invalid_manifest(sender: Sender, people: People, body: str, code: str) -> None:
    answer = sender(people.owner).post(f"{UPLOADS}/trees", content=body)
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert not UploadedTree.objects.exists()


def test_tree_upload_accepts_hundred_thousand_files(sender: Sender, people: People) -> None:
    client = sender(people.owner)
    data = b"same\n"
    client.post(f"{UPLOADS}/packs", content=packed(data))
    entries = [Entry(f"{n % 100}/{n}.txt", Kind.FILE, digest(data), len(data)) for n in range(100_000)]
    body = tree_of({}, *entries).dump()
    answer = client.post(f"{UPLOADS}/trees", content=body)
    assert (answer.status_code, answer.json()["files"]) == (201, 100_000)


def test_tree_upload_requires_submit_scope(sender: Sender, people: People) -> None:
    answer = sender(people.owner, {"read"}).post(f"{UPLOADS}/trees", content=tree_of({}).dump())
    assert answer.status_code == 403

"""Files of a job over HTTP: pages, downloads, uploads, the API, and who may; all on the way is real."""

from __future__ import annotations

import io
import json
import os
import re
import select
import socket
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import quote

import httpx
import psutil
import pytest
from django.conf import LazySettings
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from jobs.access import sessions
from jobs.assets import resolution
from jobs.assets.uploads import arrivals, expiry, uploaded_trees
from jobs.dialects.base import Parsed
from jobs.models import Attempt, DatasetCopy, Job, Replica, UploadedTree, Visibility
from jobs.node import frames
from jobs.spec import Mount
from jobs.states import ReplicaState, State
from jobs.submission import dataset_copies
from jobs.trees import address
from quotas.accounts import tokens
from quotas.models import AccessToken, AuditEntry, Membership, Role, User
from tests.factories import make_spec
from tests.jobs.access.terminal_gateway.conftest import EVERYWHERE, People, Place, shells
from tests.serving import web_server
from tests.waiting import wait_for

pytestmark = pytest.mark.once

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


@pytest.fixture
def url(people: People, settings: LazySettings) -> Iterator[str]:
    settings.CONSOLE_SSH_PORT = 0
    settings.CONSOLE_GATEWAY_RECHECK_SECONDS = 0.3
    with shells(), web_server() as base:
        yield base


class Browser:
    """Somebody's, without a screen."""

    def __init__(self, base: str, user: User | None, job: str) -> None:
        inner = Client()
        if user is not None:
            inner.force_login(user)
        cookies = {name: morsel.value for name, morsel in inner.cookies.items()}
        self.http = httpx.Client(base_url=base, cookies=cookies, timeout=60, trust_env=False)
        self.job = job
        self._token = ""

    @property
    def csrf(self) -> str:
        if not self._token:
            found = re.search(r'name="csrf-token" content="(\w+)"', self.http.get("/jobs/").text)
            assert found is not None
            self._token = found[1]
        return self._token

    def tab(self, path: str = "", **query: Any) -> str:
        asked = "".join(f"&{name}={value}" for name, value in query.items())
        answer = self.http.get(f"/jobs/{self.job}/?tab=files&path={quote(path)}{asked}")
        assert answer.status_code == 200
        return " ".join(unescape(answer.text).split())

    def content(self, path: str, **headers: str) -> httpx.Response:
        return self.http.get(f"/jobs/{self.job}/files/content?path={quote(path)}", headers=headers)

    def put(self, path: str, body: Any, *, replace: bool = False, csrf: bool = True) -> httpx.Response:
        headers = {"X-CSRFToken": self.csrf} if csrf else {}
        address = f"/jobs/{self.job}/files/content?path={quote(path)}&replace={int(replace)}"
        return self.http.put(address, content=body, headers={**headers, "Accept": "application/json"})

    def change(self, path: str = "", **fields: Any) -> str:
        """Post, and the note on the page that comes after."""
        address = f"/jobs/{self.job}/files/change?path={quote(path)}"
        answer = self.http.post(
            address, data=fields, headers={"X-CSRFToken": self.csrf}, follow_redirects=True
        )
        assert answer.status_code == 200
        return " ".join(unescape(answer.text).split())


@pytest.fixture
def visit(url: str, place: Place) -> Iterator[Callable[[User | None], Browser]]:
    opened: list[Browser] = []

    def begin(user: User | None) -> Browser:
        opened.append(Browser(url, user, place.job.public_id))
        return opened[-1]

    yield begin
    for each in opened:
        each.http.close()


@pytest.fixture
def mine(visit: Callable[[User | None], Browser], people: People) -> Browser:
    return visit(people.owner)


def write(place: Place, name: str, data: bytes = b"") -> None:
    """A file of the job's user."""
    path = place.work / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    for each in (path, *path.parents):
        if each == place.work:
            break
        os.chown(each, place.work.stat().st_uid, place.work.stat().st_gid)


def acts() -> list[tuple[str, str, str]]:
    rows = AuditEntry.objects.filter(action__startswith="file_").order_by("pk")
    return [(row.actor_name, row.action, row.details["path"]) for row in rows]


# --- looking ----------------------------------------------------------------------------------------------


def test_folder_page_shows_unusual_file_names_legibly(mine: Browser, place: Place) -> None:
    for name in ("a/b/deep.txt", "中文 & <b>.txt", ".hidden", "new\nline", "\udcff\u202egpj.exe"):
        write(place, name, b"x" * 2048)
    (place.work / "away").symlink_to("/etc/passwd")
    shown = mine.tab()
    assert "1–6 of 6" in shown
    for text in (
        "中文 & <b>.txt",
        ".hidden",
        r"new\nline",
        r"\xff\u202egpj.exe",
    ):
        assert text in shown
    assert "away → /etc/passwd" in shown
    assert "\u202e" not in shown
    assert "deep.txt" in mine.tab("a/b")
    assert mine.tab(sort="size", down="1").count("2.0 KB") == 4
    assert "is a symbolic link" in mine.tab("away")
    assert "nothing no longer exists." in mine.tab("nothing")


def test_folder_page_splits_many_files_into_pages(mine: Browser, place: Place) -> None:
    for number in range(450):
        write(place, f"f{number:03}")
    first = mine.tab()
    assert "1–200 of 450" in first
    assert "f199" in first
    assert "f200" not in first
    assert "401–450 of 450" in mine.tab(**{"from": "400"})
    assert "Nothing on this page" in mine.tab(**{"from": "9000"})


def test_file_view_shows_text_in_harmless_pieces(mine: Browser, place: Place) -> None:
    lines = b"".join(b"line %06d\n" % number for number in range(20_000))
    write(place, "log.txt", b"\x1b[31mred\x1b[0m\x1b]0;title\x07\x07<script>alert(1)</script>\n" + lines)
    page = mine.http.get(f"/jobs/{mine.job}/?tab=files&path=log.txt").text
    assert "red␇&lt;script&gt;" in page
    assert "\x1b" not in page
    assert "<script>alert" not in page
    assert "line 000000" in page
    shown, texts = unescape(page), []
    while more := re.search(r'href="(/jobs/\w+/\?tab=files&[^"]*from=[^"]*)"', shown):
        headers = {"HX-Request": "true", "HX-Target": "files-more"}
        shown = unescape(mine.http.get(more[1], headers=headers).text)
        texts += re.findall(r"line (\d{6})", shown)
    assert texts[-1] == "019999"
    assert len(texts) == len(set(texts))


SHOWN = {
    "gb18030": ("中文".encode("gb18030") * 3, "中文中文"),
    "utf-16": ("日本".encode("utf-16"), "日本"),
    "utf-8-sig": ("\ufeffmark".encode(), ">mark"),
    "binary": (bytes(range(256)), "00000010"),
    "empty": (b"", "This file is empty"),
    "one line": (b"x" * 3_000_000, "Show more"),
}


def test_file_view_shows_each_file_according_to_its_content(mine: Browser, place: Place) -> None:
    for name, (data, text) in SHOWN.items():
        write(place, "f", data)
        assert text in mine.tab("f"), name


def test_file_view_shows_pictures_and_serves_no_active_content(mine: Browser, place: Place) -> None:
    write(place, "p.png", PNG)
    write(place, "evil.svg", b"<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>")
    write(place, "evil.png", b"<html><script>1</script>")
    assert '<img class="files-picture"' in mine.tab("p.png")
    assert '<img class="files-picture files-unsized"' in mine.tab("evil.svg"), (
        "where no script of a drawing runs"
    )
    write(place, "page.svg", b"<html><svg/><script>1</script>")
    assert "files-picture" not in mine.tab("page.svg")
    kinds = {"p.png": "image/png", "evil.svg": "image/svg+xml", "evil.png": "", "page.svg": ""}
    for name, kind in kinds.items():
        answer = mine.content(name)
        assert answer.headers["Content-Type"] == (kind or "application/octet-stream")
        assert answer.headers["Content-Disposition"].startswith("attachment")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "sandbox" in answer.headers["Content-Security-Policy"]
        assert "no-store" in answer.headers["Cache-Control"]


def test_notebook_is_shown_as_cells_of_text(mine: Browser, place: Place) -> None:
    outputs = [
        {"output_type": "stream", "text": ["loss ", "0.31\n", "<script>alert(1)</script>"]},
        {"output_type": "display_data", "data": {"image/png": "AAAA", "text/html": "<b>no</b>"}},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Results\n", "<img src=x onerror=alert(1)>"]},
        {"cell_type": "code", "execution_count": 7, "source": "train()", "outputs": outputs},
    ]
    notebook = {"nbformat": 4, "cells": cells, "metadata": {"padding": "x" * 300_000}}
    write(place, "a.ipynb", json.dumps(notebook).encode())
    shown = mine.tab("a.ipynb")
    for text in ("# Results", "code [7]", "train()", "loss 0.31", "1 output is not text"):
        assert text in shown
    source = mine.http.get(f"/jobs/{mine.job}/?tab=files&path=a.ipynb").text
    assert "&lt;script&gt;alert(1)" in source
    assert "<script>alert" not in source
    assert "<img src=x" not in source
    write(place, "b.ipynb", b'{"cells": [')
    assert '<pre class="code files-text" tabindex="0"' in mine.tab("b.ipynb")


# --- downloads --------------------------------------------------------------------------------------------


def test_download_equals_the_file_and_supports_ranges(mine: Browser, place: Place) -> None:
    data = os.urandom(3_000_000)
    write(place, "模型 1.bin", data)
    whole = mine.content("模型 1.bin")
    assert whole.content == data
    assert quote("模型 1.bin") in whole.headers["Content-Disposition"]
    assert whole.headers["Content-Length"] == "3000000"
    part = mine.content("模型 1.bin", Range="bytes=1000-1999")
    assert (part.status_code, part.content) == (206, data[1000:2000])
    assert part.headers["Content-Range"] == "bytes 1000-1999/3000000"
    assert mine.content("模型 1.bin", Range="bytes=-5").content == data[-5:]
    again = mine.content("模型 1.bin", Range="bytes=5-9", **{"If-Range": whole.headers["ETag"]})
    assert again.content == data[5:10]
    assert mine.content("模型 1.bin", Range="bytes=5-9", **{"If-Range": '"other"'}).status_code == 200
    beyond = mine.content("模型 1.bin", Range="bytes=3000000-")
    assert (beyond.status_code, beyond.headers["Content-Range"]) == (416, "bytes */3000000")
    head = mine.http.head(f"/jobs/{mine.job}/files/content?path={quote('模型 1.bin')}")
    assert (head.headers["Content-Length"], head.content) == ("3000000", b"")


def test_zip_download_contains_a_folder_or_the_selected_files(mine: Browser, place: Place) -> None:
    for name in ("a/x", "a/y", "b", "bad\udcff"):
        write(place, name, name.encode("utf-8", "replace"))
    answer = mine.http.get(f"/jobs/{mine.job}/files/zip?path=a")
    assert 'filename="a.zip"' in answer.headers["Content-Disposition"]
    assert zipfile.ZipFile(io.BytesIO(answer.content)).namelist() == ["x", "y"]
    chosen = mine.http.post(
        f"/jobs/{mine.job}/files/zip?path=",
        data={"chosen": ["b", "bad%FF"], "csrfmiddlewaretoken": mine.csrf},
    )
    assert zipfile.ZipFile(io.BytesIO(chosen.content)).namelist() == ["b", "bad_"]


def test_zip_download_cut_short_is_an_error(mine: Browser, place: Place) -> None:
    write(place, "d/big.pt", b"\0" * 80_000_000)
    with mine.http.stream("GET", f"/jobs/{mine.job}/files/zip?path=d") as answer:
        pieces = answer.iter_raw(1000)
        next(pieces)
        place.end()
        with pytest.raises(httpx.RemoteProtocolError):
            list(pieces)


# --- changing ---------------------------------------------------------------------------------------------


@EVERYWHERE
def test_upload_stores_the_file_and_confirms_before_replacing(mine: Browser, place: Place) -> None:
    data = os.urandom(5_000_000)
    assert mine.put("新.bin", data).json() == {"size": 5_000_000}
    assert (place.work / "新.bin").read_bytes() == data
    assert (place.work / "新.bin").stat().st_uid == place.work.stat().st_uid
    refused = mine.put("新.bin", b"other")
    assert (refused.status_code, refused.json()["code"]) == (409, "exists")
    assert (place.work / "新.bin").read_bytes() == data
    assert mine.put("新.bin", b"other", replace=True).status_code == 201
    assert mine.put("empty", b"").json() == {"size": 0}
    assert mine.put("no/folder", b"").status_code == 404
    assert mine.put("../out", b"").status_code == 400
    assert not (place.work.parent / "out").exists()


def test_upload_over_the_limit_is_refused_and_leaves_no_file(
    mine: Browser, place: Place, settings: LazySettings
) -> None:
    settings.CONSOLE_UPLOAD_MIB = 1
    assert mine.put("big", b"x" * (1024 * 1024 + 1)).json()["code"] == "too_large"
    unsaid = mine.put("big", (b"x" * 65536 for _ in range(32)))
    assert (unsaid.status_code, unsaid.json()["code"]) == (413, "too_large")
    assert list(place.work.iterdir()) == []


def test_upload_without_csrf_token_is_refused(mine: Browser, place: Place) -> None:
    assert mine.put("x", b"x", csrf=False).status_code == 403
    assert list(place.work.iterdir()) == []


def test_file_actions_create_folders_and_rename_and_delete_entries(mine: Browser, place: Place) -> None:
    write(place, "bad\udcff", b"x")
    write(place, "d/inner/x", b"x")
    assert "Folder <new> created." in mine.change(do="make", name="<new>")
    assert "<new> already exists." in mine.change(do="make", name="<new>")
    assert "is not a valid file name" in mine.change(do="make", name="..")
    assert "Renamed to good." in mine.change(do="rename", key="bad%FF", name="good")
    assert "2 items deleted." in mine.change(do="remove", chosen=["d", "good"])
    assert [path.name for path in place.work.iterdir()] == ["<new>"]
    mine.change("<new>", do="make", name="inner")
    assert (place.work / "<new>/inner").is_dir()


# --- who --------------------------------------------------------------------------------------------------


def test_files_of_a_public_job_require_the_right_to_enter(
    visit: Callable[[User | None], Browser], people: People, place: Place
) -> None:
    write(place, "secret", b"secret")
    place.job.visibility = Visibility.PUBLIC
    place.job.save(update_fields=["visibility"])
    for user, status in (
        (people.owner, 200),
        (people.operator, 200),
        (people.member, 403),
        (people.stranger, 404),
        (None, 302),
    ):
        browser = visit(user)
        assert browser.content("secret").status_code == status
        assert browser.http.get(f"/jobs/{browser.job}/files/zip").status_code == status
        if user is not None:
            assert browser.put("up", b"x", replace=True).status_code == {200: 201}.get(status, status)
        assert ("secret" in browser.http.get(f"/jobs/{browser.job}/?tab=files").text) is (status == 200)


def test_download_ends_when_the_right_is_lost(
    visit: Callable[[User | None], Browser], people: People, place: Place
) -> None:
    write(place, "big", bytes(200_000_000))
    operator = visit(people.operator)
    with operator.http.stream("GET", f"/jobs/{operator.job}/files/content?path=big") as answer:
        pieces = answer.iter_raw(1000)
        next(pieces)
        Membership.objects.filter(user=people.operator).update(role=Role.DEVELOPER)
        wait_for(lambda: not _reading())
        with pytest.raises(httpx.RemoteProtocolError):
            list(pieces)


def _reading() -> list[psutil.Process]:
    """The processes by which this one looks into jobs."""
    return [each for each in psutil.Process().children(recursive=True) if _is_entry(each)]


def _is_entry(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.name() in {"jc-entry", "jc-session"} and process.status() != psutil.STATUS_ZOMBIE
    return False


def test_file_transfers_over_the_limit_per_user_are_refused(
    mine: Browser, place: Place, settings: LazySettings
) -> None:
    settings.CONSOLE_TRANSFERS_PER_PERSON = 1
    write(place, "big", bytes(100_000_000))
    with mine.http.stream("GET", f"/jobs/{mine.job}/files/content?path=big"):
        assert "too many file transfers" in mine.tab()
    wait_for(lambda: "too many file transfers" not in mine.tab())


def test_file_actions_are_recorded_with_their_user_and_shown(mine: Browser, place: Place) -> None:
    write(place, "x", b"x")
    for _ in range(3):
        mine.content("x")
    mine.tab("x")
    mine.put("up", b"1")
    mine.change(do="rename", key="up", name="down")
    mine.change(do="remove", chosen=["down"])
    mine.http.get(f"/jobs/{mine.job}/files/zip")
    assert acts() == [
        ("owner", "file_read", "work/x"),
        ("owner", "file_upload", "work/up"),
        ("owner", "file_rename", "work/up"),
        ("owner", "file_delete", "work"),
        ("owner", "file_zip", "work"),
    ]
    shown = mine.tab()
    assert "File access history" in shown
    assert "downloaded as ZIP" in shown
    assert "127.0.0.1" in shown


# --- after the end ----------------------------------------------------------------------------------------


@EVERYWHERE
def test_files_of_an_ended_job_are_readable_until_removal(mine: Browser, place: Place) -> None:
    write(place, "model.pt", b"weights")
    end(place)
    ended_at = Attempt.objects.get(job=place.job).ended_at
    assert ended_at is not None
    shown = mine.tab()
    assert "This replica has ended." in shown
    assert "model.pt" in shown
    assert f"until {timezone.localtime(ended_at + timedelta(days=1)):%Y-%m-%d %H:%M}" in shown
    assert "Upload" not in shown
    assert mine.content("model.pt").content == b"weights"
    assert mine.put("x", b"x").json()["code"] == "ended"
    assert "files are read-only" in mine.change(do="make", name="x")
    place.folder.rename(place.folder.with_name("away"))
    try:
        assert "The files have been removed" in mine.tab()
        assert mine.put("x", b"x").json()["code"] == "gone"
    finally:
        place.folder.with_name("away").rename(place.folder)


def end(place: Place) -> None:
    """The job, really and in its rows."""
    place.end()
    now = timezone.now()
    Replica.objects.filter(pk=place.replica.pk).update(state=ReplicaState.SUCCEEDED)
    Attempt.objects.filter(job=place.job).update(ended_at=now)
    Job.objects.filter(pk=place.job.pk).update(state=State.SUCCEEDED, ended_at=now)


def save(browser: Browser, name: str, path: str = "out") -> httpx.Response:
    """Answer of the API, as a script of the page would have it."""
    address = f"/api/console/v1/jobs/{browser.job}/files/dataset?path={path}"
    return browser.http.post(address, json={"name": name}, headers={"X-CSRFToken": browser.csrf})


def test_folder_of_an_ended_job_becomes_a_dataset_that_jobs_mount(
    visit: Callable[[User | None], Browser],
    mine: Browser,
    place: Place,
    people: People,
    monkeypatch: pytest.MonkeyPatch,
    settings: LazySettings,
) -> None:
    big = bytes(range(256)) * 4096
    for name, data in {"out/model.pt": big, "out/sub/a.txt": b"a", "out/sub/same.txt": b"a"}.items():
        write(place, name, data)
    (place.work / "out/passwd").symlink_to("/etc/passwd")
    (place.work / "out/around").symlink_to("/", target_is_directory=True)
    os.mkfifo(place.work / "out/pipe")
    (place.work / "out/empty").mkdir()
    assert save(mine, "weights").json()["code"] == "running"
    end(place)
    assert visit(people.stranger).http.post(f"/jobs/{mine.job}/files/dataset").status_code == 403  # no CSRF
    assert save(visit(people.stranger), "weights").status_code == 404
    assert save(visit(people.member), "weights").status_code == 403
    assert "Save as dataset" in mine.tab("out")
    answer = save(mine, "weights")
    assert (answer.status_code, answer.json()["state"]) == (202, "waiting")
    assert save(mine, "weights").json()["code"] == "name_taken"

    settings.CONSOLE_CODE_MIB = 1
    assert not dataset_copies.copy_next()
    copy = DatasetCopy.objects.get()
    assert (copy.state, copy.code, copy.detail) == ("failed", "upload.tree_large", "1")
    settings.CONSOLE_CODE_MIB = 2
    assert save(mine, "weights").json()["id"] == copy.dataset.key

    with monkeypatch.context() as patch:  # a worker that is killed when it has stored the first file
        patch.setattr(dataset_copies, "SLICE_S", 3600)
        patch.setattr(arrivals, "PACK_BYTES", 1)
        patch.setattr(dataset_copies._FolderCopy, "_finish", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            dataset_copies.copy_next()
    assert not dataset_copies.is_due(), "its worker may be at it still"
    DatasetCopy.objects.update(touched_at=timezone.now() - timedelta(hours=1))
    with monkeypatch.context() as patch:
        patch.setattr(dataset_copies._FolderCopy, "_read", lambda *_: pytest.fail("read again"))
        assert not dataset_copies.copy_next()
    copy.refresh_from_db()
    assert (copy.state, copy.files, copy.skipped, copy.size) == ("ready", 3, 3, len(big) + 2)
    assert copy.tree is not None
    entries = uploaded_trees.load(copy.tree).entries
    assert [entry.path for entry in entries] == ["empty", "model.pt", "sub/a.txt", "sub/same.txt"]
    assert not [*arrivals.folder(people.owner).iterdir()]

    _check_dataset(visit, place, people, copy)


def _check_dataset(
    visit: Callable[[User | None], Browser], place: Place, people: People, copy: DatasetCopy
) -> None:
    """Members see and mount it, strangers do not, and its content lasts as long as it does."""
    assert copy.tree is not None
    shown = visit(people.member).http.get(reverse("asset", args=["datasets", copy.dataset.key]))
    assert "3 skipped" in " ".join(shown.text.split())
    assert (
        visit(people.stranger).http.get(reverse("asset", args=["datasets", copy.dataset.key])).status_code
        == 404
    )
    mounted = Parsed(make_spec(mounts=(Mount(id=copy.dataset.key),)))
    found = resolution.resolve_spec(people.member, mounted, place.job.workspace).spec
    assert (found.mounts[0].uri, found.mounts[0].read_only) == (address(copy.tree.sha256), True)
    assert uploaded_trees.usable(people.member, copy.tree.sha256) == copy.tree
    assert uploaded_trees.usable(people.stranger, copy.tree.sha256) is None
    UploadedTree.objects.update(kept_until=timezone.now() - timedelta(days=1))
    expiry.remove_expired()
    assert UploadedTree.objects.get().kept_until > timezone.now()
    copy.dataset.delete()
    UploadedTree.objects.update(kept_until=timezone.now() - timedelta(days=1))
    expiry.remove_expired()
    assert not UploadedTree.objects.exists()


def test_folder_server_refusal_reaches_client_that_sends_after_it(url: str, settings: LazySettings) -> None:
    stranger = {"user": 0, "session": "", "token": 0, "task": 0, "copy": 0}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(settings.CONSOLE_HOME / sessions.FOLDERS_SOCKET))
        connection.sendall(frames.encode_frame(json.dumps(stranger).encode()))
        answered = select.poll()
        answered.register(connection, select.POLLRDHUP)
        assert answered.poll(30_000), "the server has said all it will say"
        connection.sendall(frames.encode_frame(b"late"))
        assert b"nowhere" in frames.read_frame(connection.recv)


def test_files_tab_before_the_replica_starts_shows_no_files_yet(mine: Browser, place: Place) -> None:
    Attempt.objects.filter(job=place.job).update(handle="")
    assert "No files yet" in mine.tab()


def test_files_tab_without_the_file_service_shows_a_notice(
    people: People, place: Place, settings: LazySettings
) -> None:
    with web_server() as base:
        browser = Browser(base, people.owner, place.job.public_id)
        assert "The file service is not responding" in browser.tab()
        browser.http.close()


# --- the API ----------------------------------------------------------------------------------------------


@contextmanager
def api(base: str, place: Place, user: User, *scopes: str) -> Iterator[httpx.Client]:
    token = tokens.issue(user, scopes=scopes, lifetime=timedelta(days=1))
    with httpx.Client(
        base_url=f"{base}/api/console/v1/jobs/{place.job.public_id}",
        headers={"Authorization": f"Bearer {token}"},
        timeout=60,
        trust_env=False,
    ) as client:
        yield client


def test_files_api_lists_reads_packs_uploads_and_changes(url: str, people: People, place: Place) -> None:
    with api(url, place, people.owner, "read", "exec") as client:
        put = client.put("/files/content?path=d%C3%A9.txt", content=b"0123456789")
        assert (put.status_code, put.json()) == (201, {"size": 10})
        again = client.put("/files/content?path=d%C3%A9.txt", content=b"x")
        assert (again.status_code, again.json()["code"]) == (409, "exists")
        assert again.headers["Content-Type"] == "application/problem+json"
        assert client.post("/files/folder", json={"name": "sub"}).status_code == 204
        assert client.post("/files/rename?path=d%C3%A9.txt", json={"to": "e.txt"}).status_code == 204
        found = client.get("/files", params={"limit": 1}).json()
        assert [(row["name"], row["kind"]) for row in found["entries"]] == [("sub", "folder")]
        assert (found["total"], found["writable"], found["roots"][0]["label"]) == (2, True, "/job")
        [file] = client.get(found["next"]).json()["entries"]
        assert (file["key"], file["size"]) == ("e.txt", 10)
        about = client.get("/files?path=e.txt").json()
        assert (about["kind"], about["size"], about["entries"]) == ("file", 10, [])
        assert client.get("/files/content?path=e.txt", headers={"Range": "bytes=2-3"}).content == b"23"
        packed = client.get("/files/zip?name=e.txt")
        assert zipfile.ZipFile(io.BytesIO(packed.content)).read("e.txt") == b"0123456789"
        assert client.delete("/files?path=sub").status_code == 204
        assert client.delete("/files?path=").status_code == 400
        gone = client.get("/files?path=sub")
        assert (gone.status_code, gone.json()["code"]) == (404, "absent")
        assert client.get("/files?role=nobody").status_code == 404


def test_files_api_write_requires_the_exec_scope(url: str, people: People, place: Place) -> None:
    write(place, "x", b"x")
    with api(url, place, people.owner, "read") as client:
        assert client.get("/files/content?path=x").content == b"x"
        for answer in (
            client.put("/files/content?path=y", content=b"y"),
            client.delete("/files?path=x"),
            client.post("/files/folder", json={"name": "z"}),
            client.post("/files/rename?path=x", json={"to": "z"}),
        ):
            assert answer.status_code == 403
            assert 'scope="exec"' in answer.headers["WWW-Authenticate"]
    for user, scopes, status in (
        (people.owner, ("exec",), 403),
        (people.operator, ("read",), 403),
        (people.operator, ("read", "admin"), 200),
        (people.member, ("read", "exec", "admin"), 403),
        (people.stranger, ("read", "exec", "admin"), 404),
    ):
        with api(url, place, user, *scopes) as client:
            assert client.get("/files/content?path=x").status_code == status, (user, scopes)
    assert [path.name for path in place.work.iterdir()] == ["x"]


def test_upload_ends_when_its_token_is_revoked(url: str, people: People, place: Place) -> None:
    def body() -> Iterator[bytes]:
        yield b"x" * 100
        wait_for(_reading)
        AccessToken.objects.update(revoked_at=timezone.now())
        wait_for(lambda: not _reading())
        yield b"y"

    with api(url, place, people.owner, "exec") as client:
        answer = client.put("/files/content?path=half", content=body())
        assert answer.status_code == 503
    wait_for(lambda: not list(place.work.iterdir()))

"""What goes over the wire: nothing that is there already."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from jobs.assets.uploads import uploaded_trees
from jobs.client import upload
from jobs.client.api import Console
from jobs.client.folder_scan import scan
from jobs.client.login import Login
from jobs.models import HeldTree
from quotas.accounts import tokens
from quotas.models import User
from tests.factories import make_user
from tests.serving import web_server


@pytest.fixture
def person(transactional_db: None) -> User:
    return make_user("olga")


class Wire:
    """A console, and every request that went there."""

    def __init__(self, server: str, token: str) -> None:
        self.said: list[str] = []
        self.console = Console(Login(server, token), self.said.append)
        self.console.http.event_hooks = {"request": [self._note]}
        self.requests: list[tuple[str, int]] = []

    def _note(self, request: httpx.Request) -> None:
        path = request.url.path.removeprefix("/api/console/v1/uploads/").partition("/")[0]
        self.requests.append((path, int(request.headers.get("Content-Length", 0))))

    def send(self, root: Path) -> list[str]:
        """Send a folder; what was asked."""
        self.requests.clear()
        upload.send(self.console, scan(root), lambda _sent, _total: None)
        return [path for path, _length in self.requests]


@pytest.fixture
def wire(person: User) -> Iterator[Wire]:
    token = tokens.issue(person, scopes=["submit", "read"], lifetime=timedelta(days=1))
    with web_server() as url:
        made = Wire(url, token)
        with made.console:
            yield made


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = tmp_path / "work"
    for number in range(50):
        path = made / f"pkg{number % 5}" / f"{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"x = {number}\n")
    (made / "weights.bin").write_bytes(os.urandom(3 << 20))
    return made


def test_upload_packs_small_files_and_sends_large_ones_separately(
    wire: Wire, root: Path, person: User
) -> None:
    assert wire.send(root) == ["missing", "packs", "blobs", "trees"]
    tree = HeldTree.objects.get(person=person).tree
    assert uploaded_trees.load(tree) == scan(root).tree


def test_upload_of_unchanged_folder_is_one_small_request(wire: Wire, root: Path) -> None:
    wire.send(root)
    assert wire.send(root) == ["missing"]
    assert wire.requests[0][1] < 10_000


def test_upload_of_changed_folder_sends_only_the_change(wire: Wire, root: Path) -> None:
    wire.send(root)
    (root / "pkg1" / "1.py").write_text("changed = 1\n")
    assert wire.send(root) == ["missing", "packs", "trees"]
    assert wire.requests[1][1] < 100


def test_upload_rejects_file_changed_since_scan(
    wire: Wire, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = scan(root)
    for name, data in (("pkg1/1.py", "other\n"), ("pkg1/1.py", "x = 2\n"), ("weights.bin", "short")):
        (root / name).write_text(data)
        with pytest.raises(upload.FileChanged):
            upload.send(wire.console, found, lambda _sent, _total: None)

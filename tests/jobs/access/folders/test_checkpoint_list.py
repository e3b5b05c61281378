"""Checkpoints on the Files tab, listed through the real server of a replica's folders."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.access.folders import checkpoint_list
from jobs.access.folders.checkpoint_list import CheckpointList, list_checkpoints, parse_step
from jobs.access.folders.client import FolderClient
from jobs.access.folders.locations import FolderLocation
from jobs.models import Job, Replica
from jobs.node import frames
from jobs.node.sftp.folder_server import FolderServer
from jobs.node.sftp.paths import BrowsableFolders, BrowsableRoot

LOCATION = FolderLocation(Job(public_id="abc"), Replica(role="main", index=0), "work", ())


def _answer(connection: socket.socket, server: FolderServer) -> None:
    with connection:
        while True:
            try:
                asked = frames.read_frame(connection.recv)
            except frames.BrokenFrame:
                return
            connection.sendall(frames.encode_frame(server.answer(asked)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "checkpoints").mkdir()
    return tmp_path / "checkpoints"


@pytest.fixture
def client(folder: Path) -> Iterator[FolderClient]:
    roots = (
        BrowsableRoot("work", "/job", base=str(folder.parent / "work")),
        BrowsableRoot("mount-0", "/job-checkpoints", base=str(folder)),
    )
    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=_answer, args=(theirs, FolderServer(BrowsableFolders(roots))))
    thread.start()
    with ours:
        yield FolderClient(ours)
    thread.join()


def save(path: Path, size: int, at: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    os.utime(path, (at, at))
    os.utime(path.parent, (at, at))


def listed(client: FolderClient) -> CheckpointList:
    found = list_checkpoints(client, LOCATION)
    assert found is not None
    return found


def test_checkpoint_list_tells_step_size_state_and_newest(client: FolderClient, folder: Path) -> None:
    save(folder / "checkpoint-100/model/weights.bin", 1000, 100)
    save(folder / "checkpoint-100/optimizer.pt", 24, 100)
    save(folder / "step=0200.ckpt", 7, 200)
    save(folder / "step=300.ckpt.tmp", 5, 300)
    save(folder / "empty.pt", 0, 400)
    (folder / "epoch3").mkdir()
    os.utime(folder / "epoch3", (50, 50))
    (folder / "link").symlink_to("/etc")
    found = listed(client)
    assert [(row.name, row.step, row.epoch, row.size, row.is_complete) for row in found.rows] == [
        ("empty.pt", None, None, 0, False),
        ("step=300.ckpt.tmp", 300, None, 5, False),
        ("step=0200.ckpt", 200, None, 7, True),
        ("checkpoint-100", 100, None, 1024, True),
        ("epoch3", None, 3, 0, False),
    ]
    assert [row.name for row in found.rows if row.is_newest] == ["step=0200.ckpt"]
    assert (found.total, "root=mount-0" in found.query) == (5, True)
    assert found.rows[3].query.endswith("path=checkpoint-100")


@pytest.mark.parametrize("is_link", [True, False])
def test_checkpoint_list_marks_the_one_that_latest_names(
    client: FolderClient, folder: Path, is_link: bool
) -> None:
    save(folder / "a-1.pt", 3, 100)
    save(folder / "a-2.pt", 3, 200)
    if is_link:
        (folder / "latest").symlink_to("a-1.pt")
    else:
        (folder / "latest").write_text("a-1.pt\n")
    assert [row.name for row in listed(client).rows if row.is_newest] == ["a-1.pt"]
    assert listed(client).total == 2


def test_checkpoint_list_is_bounded(
    client: FolderClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list_checkpoints(client, LOCATION) is None
    monkeypatch.setattr(checkpoint_list, "MOST", 2)
    monkeypatch.setattr(checkpoint_list, "MOST_FOLDERS", 3)
    for number in range(4):
        for part in range(3):
            save(folder / f"step-{number}/part-{part}/x", 10, 100 + number)
        os.utime(folder / f"step-{number}", (100 + number,) * 2)
    found = listed(client)
    assert [(row.name, row.size, row.is_size_partial) for row in found.rows] == [
        ("step-3", 20, True),
        ("step-2", None, False),
    ]
    assert found.total == 4


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("checkpoint-500", (500, None)),
        ("epoch=3-step=1200.ckpt", (1200, 3)),
        ("global_step0040", (40, None)),
        ("iter_0000100", (100, None)),
        ("model_12.pt", (12, None)),
        ("resnet50-v2.pt", (None, None)),
        ("best.pt", (None, None)),
        ("step-" + "9" * 40, (None, None)),
    ],
)
def test_checkpoint_step_is_read_from_the_name(name: str, expected: tuple[int | None, int | None]) -> None:
    assert parse_step(name) == expected

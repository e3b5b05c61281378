"""Whose turn it is to prepare a replica."""

import json
import threading
from pathlib import Path

from jobs.node.files import Folder
from jobs.node.processes import Identity
from jobs.node.wrapper import preparation_lock
from tests.waiting import wait_for

ME, OTHER = Identity(1, 2, "boot"), Identity(3, 4, "boot")


def test_preparation_lock_second_waits_and_records_itself(tmp_path: Path) -> None:
    said: list[object] = []

    def second() -> None:
        with Folder.open(tmp_path) as folder, preparation_lock.acquire(folder, OTHER, lambda: False) as mine:
            said.append(mine)
            said.append(json.loads((tmp_path / "turn").read_text()))

    with Folder.open(tmp_path) as folder, preparation_lock.acquire(folder, ME, lambda: False) as mine:
        assert mine
        assert json.loads((tmp_path / "turn").read_text()) == ME.dump()
        thread = threading.Thread(target=second)
        thread.start()
        assert said == []
        assert not preparation_lock.is_free(folder)
    thread.join(60)
    with Folder.open(tmp_path) as folder:
        assert preparation_lock.is_free(folder)
    assert said == [True, OTHER.dump()]


def test_preparation_lock_does_not_wait_for_settled_work(tmp_path: Path) -> None:
    settled = threading.Event()
    said: list[bool] = []

    def second() -> None:
        with Folder.open(tmp_path) as folder, preparation_lock.acquire(folder, OTHER, settled.is_set) as mine:
            said.append(mine)

    with Folder.open(tmp_path) as folder, preparation_lock.acquire(folder, ME, lambda: False):
        thread = threading.Thread(target=second)
        thread.start()
        settled.set()
        wait_for(lambda: said)
        thread.join()
        assert json.loads((tmp_path / "turn").read_text()) == ME.dump()
    assert said == [False]
    second()
    assert said == [False, False]

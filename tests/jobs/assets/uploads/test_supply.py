"""Where a job's uploaded content lies on this machine, whatever storage it is in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.conf import settings
from django.core.files.base import ContentFile, File
from django.core.files.storage import Storage

from jobs.assets.uploads import store, supply
from jobs.models import Job
from jobs.trees import Tree
from tests.jobs.assets.uploads.conftest import People, tree_of
from tests.jobs.assets.uploads.test_in_jobs import sent, submit


class Elsewhere(Storage):
    """A storage as Django has it for object stores: nothing of it lies at a path."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def _save(self, name: str, content: File[bytes]) -> str:
        self.objects[name] = content.read()
        return name

    def _open(self, name: str, mode: str = "rb") -> File[bytes]:
        return ContentFile(self.objects[name])

    def exists(self, name: str) -> bool:
        return name in self.objects


FILES = {"a.py": b"one", "b/c.py": b"three", "again.py": b"one"}


def contents(tree: Tree, where: dict[str, tuple[str, int]]) -> dict[str, bytes]:
    found = {}
    for entry in tree.entries:
        path, offset = where[entry.sha256]
        found[entry.path] = Path(path).read_bytes()[offset : offset + entry.size]
    return found


@pytest.mark.parametrize("remote", [False, True])
def test_supply_provides_tree_content_as_local_files(
    people: People, monkeypatch: pytest.MonkeyPatch, *, remote: bool
) -> None:
    if remote:
        elsewhere = Elsewhere()
        monkeypatch.setattr(store, "storage", lambda: elsewhere)
    job = submit(people.owner, sent(people.owner, FILES))
    for _again in range(2):
        [(tree, supplied)] = supply.supply_trees(job).items()
        assert tree == tree_of(FILES).id
        assert contents(supplied.tree, dict(supplied.where)) == FILES
        path = Path(next(iter(supplied.where.values()))[0])
        assert path.is_relative_to(settings.CONSOLE_HOME / "cache") is remote


def test_supply_removes_old_copies_and_restores_on_demand(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = Elsewhere()
    monkeypatch.setattr(store, "storage", lambda: elsewhere)
    job = submit(people.owner, sent(people.owner, FILES))
    [supplied] = supply.supply_trees(job).values()
    [path] = {Path(path) for path, _offset in supplied.where.values()}
    supply.remove_old()
    assert path.exists()
    os.utime(path, (0, 0))
    supply.remove_old()
    assert not path.exists()
    assert contents(*_tree_and_where(job)) == FILES


def _tree_and_where(job: Job) -> tuple[Tree, dict[str, tuple[str, int]]]:
    [supplied] = supply.supply_trees(job).values()
    return supplied.tree, dict(supplied.where)

"""A folder as a tree, and what is remembered of it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from jobs.client import folder_scan
from jobs.client.folder_scan import scan
from jobs.trees import Kind


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = tmp_path / "work"
    (made / "pkg").mkdir(parents=True)
    (made / "train.py").write_text("print(1)\n")
    (made / "pkg" / "run.sh").write_text("#!/bin/sh\n")
    (made / "pkg" / "run.sh").chmod(0o755)
    (made / "empty").mkdir()
    (made / "latest").symlink_to("pkg/run.sh")
    return made


def aged(root: Path) -> None:
    """As it is when nobody has touched it for a while."""
    for path in root.rglob("*"):
        os.utime(path, ns=(0, path.stat().st_mtime_ns - 10**10), follow_symlinks=False)


def test_folder_scan_finds_files_programs_links_and_empty_folders(root: Path) -> None:
    kinds = {entry.path: entry.kind for entry in scan(root).tree.entries}
    assert kinds == {
        "empty": Kind.FOLDER,
        "latest": Kind.LINK,
        "pkg/run.sh": Kind.PROGRAM,
        "train.py": Kind.FILE,
    }


def test_folder_scan_rereads_only_changed_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_scan, "SETTLED_NS", -(10**18))
    first = scan(root)
    read: list[str] = []
    digest = hashlib.file_digest

    def noted(file: Any, name: str) -> Any:
        read.append(file.name)
        return digest(file, name)

    monkeypatch.setattr(hashlib, "file_digest", noted)
    scan(root)
    read.clear()
    assert scan(root).tree == first.tree
    assert read == []
    (root / "train.py").write_text("print(2)\n")
    assert scan(root).tree != first.tree
    assert [Path(name).name for name in read] == ["train.py"]


def test_folder_scan_distrusts_times_of_recently_changed_files(root: Path) -> None:
    first = scan(root)
    told = (root / "train.py").stat()
    (root / "train.py").write_text("print(9)\n")
    os.utime(root / "train.py", ns=(told.st_atime_ns, told.st_mtime_ns))
    assert scan(root).tree != first.tree


def test_folder_scan_ignores_broken_cache(root: Path, tmp_path: Path) -> None:
    first = scan(root)
    for path in (tmp_path / "cache" / "job-console").iterdir():
        path.write_text("nonsense")
    assert scan(root).tree == first.tree


def test_folder_scan_leaves_out_and_names_unsendable_files(root: Path) -> None:
    (root / "out").symlink_to("/etc/passwd")
    (root / "up").symlink_to("../x")
    os.mkfifo(root / "pipe")
    (root / os.fsdecode(b"caf\xe9")).write_text("x")
    found = scan(root)
    assert dict(found.left_out) == {
        "out": "link_out",
        "up": "link_out",
        "pipe": "special",
        "caf\udce9": "name",
    }
    assert "out" not in {entry.path for entry in found.tree.entries}


def test_folder_scan_reports_likely_secrets_and_large_files(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_scan, "LARGE_BYTES", 20)
    for name in (".env", ".env.example", "pkg/id_ed25519", "server.pem", "env.py", "credentials.json"):
        (root / name).write_text("x")
    (root / "big.bin").write_bytes(b"x" * 21)
    found = scan(root)
    assert sorted(found.secrets) == [".env", "credentials.json", "pkg/id_ed25519", "server.pem"]
    assert found.large == [("big.bin", 21)]

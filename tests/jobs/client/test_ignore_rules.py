"""What is left out of a folder: compared with git itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jobs.client.folder_scan import scan
from jobs.trees import Kind

FILES = (
    *("a.py", "b.pyc", "keep.pyc", "out/x", "sub/out/x", "sub/b.pyc", "sub/data/1", "sub/data/keep"),
    *(
        "docs/a.md",
        "docs/deep/b.md",
        "docs/deep/c.txt",
        "build",
        "中文/文件.log",
        "中文/文件.txt",
        "#odd",
        "with space/x",
    ),
)
RULES = {
    ".gitignore": "*.pyc\n!keep.pyc\n/out/\n**/*.log\n# a remark\n\\#odd\nwith space/\n",
    "sub/.gitignore": "data/*\n!data/keep\n!b.pyc\n",
    "docs/.gitignore": "*\n!.gitignore\n!*.md\n!deep/\n",
}


@pytest.fixture(autouse=True)
def _own_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def lay(root: Path, rules: dict[str, str]) -> Path:
    for name in FILES:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    for name, text in rules.items():
        (root / name).write_text(text)
    return root


def sent(root: Path) -> set[str]:
    return {entry.path for entry in scan(root).tree.entries if entry.kind is not Kind.FOLDER}


def as_git(root: Path) -> set[str]:
    command = ["git", "-c", "core.quotePath=false", "ls-files", "-co", "--exclude-standard", "-z"]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, check=True)
    return {name for name in done.stdout.decode().split("\0") if name}


def test_ignore_rules_leave_out_the_same_files_as_git(tmp_path: Path) -> None:
    root = lay(tmp_path / "work", RULES)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    assert sent(root) == as_git(root)
    assert "sub/data/keep" in sent(root)
    assert sent(root / "sub") == as_git(root / "sub"), "rules of the folders around count"


def test_jobignore_file_adds_to_and_overrides_gitignore(tmp_path: Path) -> None:
    root = lay(tmp_path / "work", {".gitignore": "*.pyc\n", ".jobignore": "docs/\n!b.pyc\n"})
    found = sent(root)
    assert not any(name.startswith("docs/") for name in found)
    assert {"b.pyc", "sub/b.pyc"} <= found
    assert "keep.pyc" not in found


def test_ignore_rules_without_repository_skip_parent_folders(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*\n")
    assert "a.py" in sent(lay(tmp_path / "work", {}))


def test_ignore_rules_never_send_git_folder(tmp_path: Path) -> None:
    root = lay(tmp_path / "work", {})
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    (root / "sub" / ".git").write_text("gitdir: elsewhere\n")
    assert not any(".git" in name.split("/") for name in sent(root))

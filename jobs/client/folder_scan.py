"""A working folder as a tree: what is in it, by content.

What was read once is remembered by size, times and number of the file, so that an unchanged one is not read
again.  A file that changed within the last moments may change again without its times showing it, and is not
remembered.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final

from jobs.client.files import replace_file
from jobs.client.ignore_rules import IgnoreRules
from jobs.trees import BadTree, Entry, Kind, Tree

LARGE_BYTES: Final = 100 * 1024 * 1024
SETTLED_NS: Final = 2_000_000_000

SECRETS: Final = (
    *(".env", ".env.*", "*.env", ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".pgpass", "kubeconfig"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks"),
    *("credentials", "credentials.json", "service-account*.json", "secrets.json", "secrets.y*ml", "*.kdbx"),
)
"""Names of files that mostly hold secrets."""

HARMLESS: Final = (".env.example", ".env.sample", ".env.template")

Known = dict[str, list[Any]]


@dataclass(slots=True)
class FolderContent:
    """A tree, where its files lie, and what to say of them.

    `left_out` are paths with a code: `link_out` (leads out of the folder), `special`, `name` (can't be
    written as text), `unreadable`.
    """

    tree: Tree
    files: dict[str, Path] = field(default_factory=dict)
    large: list[tuple[str, int]] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)


def scan(root: Path, environment: Mapping[str, str] = os.environ) -> FolderContent:
    """Everything in the folder that is sent.  Raises BadTree, OSError."""
    root = root.resolve()
    place = _memory_path(root, environment)
    known = _load_memory(place)
    scanner = _Scanner(root, known)
    scanner.walk(root, IgnoreRules(root), "")
    entries = scanner.entries
    found = scanner.found
    found.tree = _tree(entries, found)
    _save_memory(place, scanner.fresh)
    return found


def _tree(entries: list[Entry], found: FolderContent) -> Tree:
    """The tree, without links that lead out."""
    while True:
        try:
            return Tree.of(entries)
        except BadTree as bad:
            if bad.code not in {"link_out", "link", "name"}:
                raise
            found.left_out.append((bad.path, bad.code if bad.code != "link" else "link_out"))
            entries = [entry for entry in entries if entry.path != bad.path]


class _Scanner:
    def __init__(self, root: Path, known: Known) -> None:
        self._root, self._known = root, known
        self.fresh: Known = {}
        self.entries: list[Entry] = []
        self.found = FolderContent(Tree(()))

    def walk(self, folder: Path, rules: IgnoreRules, prefix: str) -> None:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        if not entries and prefix:
            self.entries.append(Entry(prefix.rstrip("/"), Kind.FOLDER))
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            path = prefix + entry.name
            if rules.leave_out(Path(entry.path), is_folder=is_folder):
                continue
            if not _is_text(entry.name):
                self.found.left_out.append((path, "name"))
            elif is_folder:
                self.walk(Path(entry.path), rules.enter(Path(entry.path)), f"{path}/")
            elif entry.is_symlink():
                self.entries.append(Entry(path, Kind.LINK, target=str(Path(entry.path).readlink())))
            else:
                self._file(entry, path)

    def _file(self, entry: os.DirEntry[str], path: str) -> None:
        info = entry.stat(follow_symlinks=False)
        if not stat.S_ISREG(info.st_mode):
            self.found.left_out.append((path, "special"))
            return
        try:
            sha256, size = self._digest(entry, info, path)
        except PermissionError:
            self.found.left_out.append((path, "unreadable"))
            return
        kind = Kind.PROGRAM if info.st_mode & stat.S_IXUSR else Kind.FILE
        self.entries.append(Entry(path, kind, sha256, size))
        self.found.files.setdefault(sha256, Path(entry.path))
        if size > LARGE_BYTES:
            self.found.large.append((path, size))
        if _is_secret(entry.name):
            self.found.secrets.append(path)

    def _digest(self, entry: os.DirEntry[str], info: os.stat_result, path: str) -> tuple[str, int]:
        mark = [info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino]
        before = self._known.get(path)
        if before is not None and before[:4] == mark:
            self.fresh[path] = before
            return before[4], info.st_size
        with open(entry.path, "rb") as file:  # noqa: PTH123 a folder's entry
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.tell()
        if size == info.st_size and max(info.st_mtime_ns, info.st_ctime_ns) < time.time_ns() - SETTLED_NS:
            self.fresh[path] = [*mark, sha256]
        return sha256, size


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return name.isprintable() or all(ord(character) >= 32 and ord(character) != 127 for character in name)


def _is_secret(name: str) -> bool:
    lower = name.lower()
    return lower not in HARMLESS and any(fnmatch(lower, pattern) for pattern in SECRETS)


# --- what was read before --------------------------------------------------------------------------------


def _memory_path(root: Path, environment: Mapping[str, str]) -> Path:
    around = environment.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:32]
    return Path(around, "job-console", f"{name}.json")


def _load_memory(place: Path) -> Known:
    try:
        value = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(value, dict):
        return {}
    return {name: row for name, row in value.items() if isinstance(row, list) and len(row) == 5}


def _save_memory(place: Path, known: Known) -> None:
    """A memory that can't be written costs time, and nothing else."""
    with suppress(OSError):
        replace_file(place, json.dumps(known, separators=(",", ":")))

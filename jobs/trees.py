"""Uploaded trees of files: their manifest, and the address by which job files name one.

A tree is a list of paths with their entries: a file (by the SHA-256 of its content), a program (a file that
may be executed), a link, or an empty folder.  The SHA-256 of the canonical manifest is the tree's id.  This
is the wire format of console, backends and command line; no file is opened here.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # what prepares a job starts without pydantic
    from jobs.spec import JobSpec

SCHEME: Final = "upload://"
FORMAT: Final = 1
DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_ADDRESS: Final = re.compile(re.escape(SCHEME) + DIGEST.pattern)
LONGEST_PATH: Final = 2048
LONGEST_NAME: Final = 255
"""Bytes, as file systems count them."""

MOST_LINKS: Final = 40
"""As many links as Linux follows in one path."""


class Kind(StrEnum):
    """Kind of a path's entry."""

    FILE = "file"
    PROGRAM = "program"
    LINK = "link"
    FOLDER = "folder"


HAS_CONTENT: Final = frozenset({Kind.FILE, Kind.PROGRAM})


class BadTree(ValueError):
    """This is no tree: `code` says why, `path` where, if known."""

    def __init__(self, code: str, path: str = "") -> None:
        super().__init__(f"{code}: {path}" if path else code)
        self.code, self.path = code, path


@dataclass(frozen=True, slots=True)
class Entry:
    """One path.  `sha256` and `size` are of a file's content, `target` is that of a link."""

    path: str
    kind: Kind
    sha256: str = ""
    size: int = 0
    target: str = ""

    @property
    def has_content(self) -> bool:
        """Tell whether it is a file."""
        return self.kind in HAS_CONTENT

    def to_json(self) -> list[Any]:
        """Return the entry as in a manifest."""
        match self.kind:
            case Kind.LINK:
                return [self.path, self.kind.value, self.target]
            case Kind.FOLDER:
                return [self.path, self.kind.value]
            case _:
                return [self.path, self.kind.value, self.sha256, self.size]

    @classmethod
    def from_json(cls, said: object) -> Entry:
        """Read an entry of a manifest.  Raises BadTree."""
        match said:
            case [str(path), "file" | "program" as kind, str(sha256), int(size)] if (
                DIGEST.fullmatch(sha256) and not isinstance(size, bool) and 0 <= size < 1 << 60
            ):
                return cls(path, Kind(kind), sha256, size)
            case [str(path), "link", str(target)]:
                return cls(path, Kind.LINK, target=target)
            case [str(path), "folder"]:
                return cls(path, Kind.FOLDER)
        path = said[0] if isinstance(said, list) and said and isinstance(said[0], str) else ""
        raise BadTree("entry", path)


@dataclass(frozen=True, slots=True)
class Tree:
    """Entries in the order of their paths, each path once, none below anything but a folder."""

    entries: tuple[Entry, ...]

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Tree:
        """Build a tree of entries in any order.  Raises BadTree."""
        ordered = tuple(sorted(entries, key=lambda entry: entry.path))
        _check(ordered)
        return cls(ordered)

    @classmethod
    def load(cls, value: object) -> Tree:
        """Read a manifest that was parsed as JSON.  Raises BadTree."""
        match value:
            case {"format": 1, "entries": list(entries), **rest} if not rest:
                return cls.of(Entry.from_json(each) for each in entries)
        raise BadTree("format")

    def dump(self) -> bytes:
        """Return the canonical manifest."""
        value = {"format": FORMAT, "entries": [entry.to_json() for entry in self.entries]}
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    @property
    def id(self) -> str:
        """Return the SHA-256 of the manifest."""
        return hashlib.sha256(self.dump()).hexdigest()

    @property
    def size(self) -> int:
        """Return the bytes of all files, each path counted."""
        return sum(entry.size for entry in self.entries)

    def contents(self) -> dict[str, int]:
        """Return the size of each content by its SHA-256.  Raises BadTree when two entries disagree."""
        found: dict[str, int] = {}
        for entry in self.entries:
            if entry.has_content and found.setdefault(entry.sha256, entry.size) != entry.size:
                raise BadTree("size", entry.path)
        return found


@dataclass(frozen=True, slots=True)
class Supplied:
    """An uploaded tree of `size` bytes for a job.

    `where` has each content's file on this machine and the offset in it, by its SHA-256; a preview of a
    submission has the size alone.
    """

    size: int
    tree: Tree = field(default_factory=lambda: Tree(()))
    where: Mapping[str, tuple[str, int]] = field(default_factory=dict)


def address(tree: str) -> str:
    """Return the address of the tree with that id, as in job files."""
    return f"{SCHEME}{tree}"


def find_addresses(text: str) -> Iterator[str]:
    """Yield every address of a tree in a text."""
    return (match[0] for match in _ADDRESS.finditer(text))


def tree_id_of(place: str) -> str | None:
    """Return the id in an address; '' for an upload address without a valid id, None for any other one."""
    if not place.startswith(SCHEME):
        return None
    tree = place.removeprefix(SCHEME).rstrip("/")
    return tree if DIGEST.fullmatch(tree) else ""


def find_trees(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """Yield the pointer and the tree id (or '') of every location of the job that is a tree.

    A code source or mount with an id alone (a code source of DLC) may have the address there.
    """
    sources = [("/code", spec.code)] if spec.code else []
    mounts = [(f"/mounts/{position}", mount) for position, mount in enumerate(spec.mounts)]
    for pointer, source in (*sources, *mounts):
        for name in ("uri", "id"):
            if (tree := tree_id_of(getattr(source, name))) is not None:
                yield f"{pointer}/{name}", tree
                break


# --- what a tree may hold --------------------------------------------------------------------------------


def _check(entries: Sequence[Entry]) -> None:
    """Raise BadTree for the first wrong path, and for a link that leads out of the tree."""
    kinds: dict[str, Entry] = {}
    folders: set[str] = set()
    for entry in entries:
        _check_path(entry.path)
        if entry.path in kinds:
            raise BadTree("twice", entry.path)
        kinds[entry.path] = entry
        around = entry.path
        while (around := around.rpartition("/")[0]) and around not in folders:
            folders.add(around)
    for path in folders & set(kinds):
        if kinds[path].kind is not Kind.FOLDER:
            raise BadTree("below_a_file", path)
    links = {path: entry.target for path, entry in kinds.items() if entry.kind is Kind.LINK}
    for path in links:
        _check_link(path, links)


def _check_path(path: str) -> None:
    names = path.split("/")
    if not path or any(name in ("", ".", "..") for name in names):
        raise BadTree("path", path)
    if not _is_printable(path) or len(path.encode()) > LONGEST_PATH:
        raise BadTree("name", path)
    if any(len(name.encode()) > LONGEST_NAME for name in names):
        raise BadTree("name", path)


def _is_printable(text: str) -> bool:
    """Tell whether UTF-8 can encode the text and it has no control characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return not any(ord(character) < 32 or ord(character) == 127 for character in text)


def _check_link(path: str, links: dict[str, str]) -> None:
    """Raise BadTree for a link that, followed through other links, leads out of the tree."""
    target = links[path]
    if not target or not _is_printable(target) or len(target.encode()) > LONGEST_PATH:
        raise BadTree("link", path)
    here = path.split("/")[:-1]
    ahead = target.split("/")
    followed = 1
    if target.startswith("/"):
        raise BadTree("link_out", path)
    while ahead:
        name = ahead.pop(0)
        if name in ("", "."):
            continue
        if name == "..":
            if not here:
                raise BadTree("link_out", path)
            here.pop()
            continue
        here.append(name)
        further = links.get("/".join(here))
        if further is not None:
            followed += 1
            if further.startswith("/"):
                raise BadTree("link_out", path)
            if followed > MOST_LINKS:
                return  # the system gives up there too
            here.pop()
            ahead = further.split("/") + ahead

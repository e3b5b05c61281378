"""Uploaded trees of files: how one is written down, and the address by which job files name it.

A tree is a list of paths, each with what lies there: a file (by the SHA-256 of its content), a program (a
file that may be executed), a link, or an empty folder.  Written in the one canonical way, its own SHA-256 is
its id.  Nothing here opens a file: this is the wire format of console, backends and command line.
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
"""As many links as Linux follows on one way."""


class Kind(StrEnum):
    """What lies at a path."""

    FILE = "file"
    PROGRAM = "program"
    LINK = "link"
    FOLDER = "folder"


HAS_CONTENT: Final = frozenset({Kind.FILE, Kind.PROGRAM})


class BadTree(ValueError):
    """This is no tree: `code` says why, `path` where, as far as that can be said."""

    def __init__(self, code: str, path: str = "") -> None:
        super().__init__(f"{code}: {path}" if path else code)
        self.code, self.path = code, path


@dataclass(frozen=True, slots=True)
class Entry:
    """One path.  `sha256` and `size` are of a file's content, `target` is where a link leads."""

    path: str
    kind: Kind
    sha256: str = ""
    size: int = 0
    target: str = ""

    @property
    def has_content(self) -> bool:
        """Whether it is a file."""
        return self.kind in HAS_CONTENT

    def to_json(self) -> list[Any]:
        """As it stands in a manifest."""
        match self.kind:
            case Kind.LINK:
                return [self.path, self.kind.value, self.target]
            case Kind.FOLDER:
                return [self.path, self.kind.value]
            case _:
                return [self.path, self.kind.value, self.sha256, self.size]

    @classmethod
    def from_json(cls, said: object) -> Entry:
        """From a manifest.  Raises BadTree."""
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
        """In whatever order they come.  Raises BadTree."""
        ordered = tuple(sorted(entries, key=lambda entry: entry.path))
        _check(ordered)
        return cls(ordered)

    @classmethod
    def load(cls, value: object) -> Tree:
        """From a manifest that was read as JSON.  Raises BadTree."""
        if (
            not isinstance(value, dict)
            or value.get("format") != FORMAT
            or set(value) != {"format", "entries"}
        ):
            raise BadTree("format")
        if not isinstance(value["entries"], list):
            raise BadTree("format")
        return cls.of(Entry.from_json(each) for each in value["entries"])

    def dump(self) -> bytes:
        """The manifest, as it is written everywhere."""
        value = {"format": FORMAT, "entries": [entry.to_json() for entry in self.entries]}
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    @property
    def id(self) -> str:
        """The SHA-256 of the manifest."""
        return hashlib.sha256(self.dump()).hexdigest()

    @property
    def size(self) -> int:
        """Bytes of all files, each path counted."""
        return sum(entry.size for entry in self.entries)

    def contents(self) -> dict[str, int]:
        """What lies in the files: SHA-256 → bytes, each content once.  Raises BadTree when two disagree."""
        found: dict[str, int] = {}
        for entry in self.entries:
            if entry.has_content and found.setdefault(entry.sha256, entry.size) != entry.size:
                raise BadTree("size", entry.path)
        return found


@dataclass(frozen=True, slots=True)
class Supplied:
    """An uploaded tree of `size` bytes for a job, and where on this machine each of its contents lies:
    SHA-256 → the file and the offset in it.  Whoever only looks at what would be sent has the size alone.
    """

    size: int
    tree: Tree = field(default_factory=lambda: Tree(()))
    where: Mapping[str, tuple[str, int]] = field(default_factory=dict)


def address(tree: str) -> str:
    """How job files name the tree with that id."""
    return f"{SCHEME}{tree}"


def mentioned(text: str) -> Iterator[str]:
    """Every address of a tree that stands in a text."""
    return (match[0] for match in _ADDRESS.finditer(text))


def named(place: str) -> str | None:
    """The id in an address; '' for an address of uploads without a right one, None for any other place."""
    if not place.startswith(SCHEME):
        return None
    tree = place.removeprefix(SCHEME).rstrip("/")
    return tree if DIGEST.fullmatch(tree) else ""


def places(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """Every place of the job that is a tree: where in the spec (a pointer), and its id or ''.

    What has only room for an id of the target's own (a code source of DLC) may hold the address there.
    """
    if spec.code is not None:
        for field in ("uri", "id"):
            if (tree := named(getattr(spec.code, field))) is not None:
                yield f"/code/{field}", tree
                break
    for position, mount in enumerate(spec.mounts):
        for field in ("uri", "id"):
            if (tree := named(getattr(mount, field))) is not None:
                yield f"/mounts/{position}/{field}", tree
                break


# --- what a tree may hold --------------------------------------------------------------------------------


def _check(entries: Sequence[Entry]) -> None:
    """Raises BadTree for the first path that can't be, and for a link that leads out."""
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
    if not _sayable(path) or len(path.encode()) > LONGEST_PATH:
        raise BadTree("name", path)
    if any(len(name.encode()) > LONGEST_NAME for name in names):
        raise BadTree("name", path)


def _sayable(text: str) -> bool:
    """Whether it is text that UTF-8 can write, without control characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return not any(ord(character) < 32 or ord(character) == 127 for character in text)


def _check_link(path: str, links: dict[str, str]) -> None:
    """A link, with every link on its way, leads to a place in the tree; it need not be there."""
    target = links[path]
    if not target or not _sayable(target) or len(target.encode()) > LONGEST_PATH:
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

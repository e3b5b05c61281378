"""Mounts, code, packages and data of a plan.

Plain dataclasses, for the same reason as in `plan`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self

from jobs import trees

IN_WORK: Final = -1
"""In place of a bound's number."""


class MountKind(StrEnum):
    """Kind of a mount.

    FOLDER: a folder of this machine.  OUTPUT: likewise, and made with the person's rights where it is
    missing.  STORE: likewise, and made for the person by the console, below `Bound.root`.
    MEMORY: a file system in memory.  EMPTY: an empty folder that goes with the attempt.  INNER: likewise,
    in the replica's own folder.  JOB: the own folder of a replica of another job of the same person, or a
    folder in it; `Bound.root` is the replica's.
    """

    FOLDER = "folder"
    OUTPUT = "output"
    STORE = "store"
    MEMORY = "memory"
    EMPTY = "empty"
    INNER = "inner"
    JOB = "job"


@dataclass(frozen=True, slots=True)
class MountSpec:
    """One place: `path` in the job; `source` on this machine, without links in it; `size_mib` of memory."""

    path: str
    kind: MountKind
    source: str = ""
    read_only: bool = False
    root: str = ""
    size_mib: int = 0

    @property
    def on_this_machine(self) -> bool:
        """Tell whether it is a folder that outlives the job."""
        return bool(self.source)

    @property
    def at_its_own_place(self) -> bool:
        """Tell whether the job finds it where the machine has it."""
        return self.path == self.source

    @classmethod
    def load(cls, value: Mapping[str, Any]) -> Self:
        """Read it from JSON."""
        return cls(**{**value, "kind": MountKind(value["kind"])})


@dataclass(frozen=True, slots=True)
class PackageSpec:
    """Python packages that are installed for the job's user before the command: those named, and those that
    requirements.txt in `directory` (of the job) names; in `patience_s` seconds.  At most `cache_bytes` of
    what was installed are kept for the next time.
    """

    names: tuple[str, ...] = ()
    directory: str = ""
    patience_s: int = 0
    cache_bytes: int = 0

    @classmethod
    def load(cls, value: Mapping[str, Any]) -> Self:
        """Read it from JSON."""
        return cls(**{**value, "names": tuple(value["names"])})


@dataclass(frozen=True, slots=True)
class CodeSpec:
    """Code that is in the place number `bound` of a plan before the command starts.

    It is copied from `folder`, or fetched by the program `git` from the repository at `uri`, or at `folder`:
    the branch or tag `ref`, or the `commit`.  At most `most_bytes`, in `patience_s` seconds.  No secret is
    in here.

    An uploaded tree has its address as `uri` and needs no program; its place may be the working folder
    itself, which is none of the bounds (IN_WORK).

    `submodules` are fetched too, from the repository's own host; `is_code_dir` says that it is OpenPAI's,
    which has a login of its own.

    `inside` says that an admin allows the host by its name, wherever it is; `alone` that its login is not the
    person's, and so nothing that the job says about the way there is believed; `shut` that git is kept to the
    addresses that were looked at.
    """

    bound: int
    folder: str = ""
    git: str = ""
    uri: str = ""
    ref: str = ""
    commit: str = ""
    most_bytes: int = 0
    patience_s: int = 0

    inside: bool = False
    alone: bool = False
    shut: bool = False
    submodules: bool = False
    is_code_dir: bool = False

    @property
    def tree(self) -> str:
        """The id of the uploaded tree that it is; '' for any other code."""
        return "" if self.git else trees.tree_id_of(self.uri) or ""

    @property
    def name(self) -> str:
        """Return its origin as shown to people."""
        return self.uri or self.folder


@dataclass(frozen=True, slots=True)
class DataSpec:
    """Objects of a store, or a file of the web, that are in the place number `bound` of a plan before the
    command starts; with `back`, what is new there afterwards is taken where it came from.

    `uri` is `s3://bucket/folder` for every object store; `inside` are hosts in this network that may be
    spoken to, None for all.  At most `most_bytes`, of which `cache_bytes` are kept for the next time.  With
    `look` it is only looked at, with `bring` off nothing is there at first.  With `is_code` an archive is
    unpacked, and a failure is one of the code.  No secret is in here.
    """

    bound: int
    name: str
    uri: str
    endpoint: str = ""
    region: str = ""
    addressing: str = "auto"
    inside: tuple[str, ...] | None = ()
    back: bool = False
    bring: bool = True
    look: bool = False
    most_bytes: int = 0
    cache_bytes: int = 0
    patience_s: int = 0
    is_code: bool = False

    @classmethod
    def load(cls, value: Mapping[str, Any]) -> Self:
        """Read it from JSON."""
        inside = value["inside"]
        return cls(**{**value, "inside": None if inside is None else tuple(inside)})


@dataclass(frozen=True, slots=True)
class DataMoverRuntime:
    """Runtime of the data mover: this Python, the folder of its installation where jobs don't see that
    ('' where they do), and the folder of its libraries.
    """

    python: str
    base: str
    site: str

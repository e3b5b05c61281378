"""Folders of this machine that jobs may use: those that an admin names, and no others.

The most specific named folder decides, so that a folder inside another may be kept for fewer workspaces,
and nobody gets it by asking for the one around it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from jobs.facilities import EVERYBODY, USER, SharedFolder

NEVER: Final = (
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/etc",
    "/boot",
    "/var/run",
    "/var/lib/containers",
    "/var/lib/containerd",
    "/var/lib/docker",
    "/var/lib/kubelet",
)
"""What makes a machine itself: whoever can change it, or use its sockets, can be anybody on it."""

_SETTINGS: Final = frozenset({"workspaces", "write"})


@dataclass(frozen=True, slots=True)
class Requester:
    """The requester: the workspace's slug, and the person's login name."""

    workspace: str
    user: str


@dataclass(frozen=True, slots=True)
class SharedFolderRule:
    """A folder that an admin names, for the workspaces with these slugs, `*` for all."""

    parts: tuple[str, ...]
    workspaces: frozenset[str]
    write: bool = False

    @classmethod
    def from_settings(cls, path: str, said: Mapping[str, Any]) -> Self:
        """`"/data": {"workspaces": ["vision"], "write": true}`; ValueError for anything else."""
        parts = parts_of(path)
        slugs = said.get("workspaces", ())
        known = not set(said) - _SETTINGS and isinstance(slugs, Sequence) and not isinstance(slugs, str)
        if not parts or parts[0] == USER or not known:
            raise ValueError(f"folders: {path} is not an absolute path with workspaces and write")
        return cls(parts, frozenset(slugs), said.get("write", False) is True)

    def covers(self, parts: Sequence[str]) -> bool:
        """Tell whether the place is this folder, or lies in it, whoever asks."""
        return len(parts) >= len(self.parts) and all(map(_same, self.parts, parts))

    def lies_in(self, parts: Sequence[str]) -> bool:
        """Tell whether this folder lies in that place."""
        return len(parts) < len(self.parts) and all(map(_same, self.parts, parts))

    def admits(self, asker: Requester, parts: Sequence[str]) -> bool:
        """Tell whether those who ask may use a place that it covers, or (of the place, as much as there is)
        that it lies in.
        """
        known = asker.workspace in self.workspaces or EVERYBODY in self.workspaces
        return known and all(
            mine != USER or (index < len(parts) and parts[index] == asker.user)
            for index, mine in enumerate(self.parts)
        )


@dataclass(frozen=True, slots=True)
class FolderGrant:
    """A folder that may be used: its path without links, whether it may be written to, and whether it is
    itself one that the admin names, in no other that anybody may write to.
    """

    path: str
    write: bool
    steady: bool


class Folders:
    """The folders of one cluster's settings; `hidden` are places that no job may ever see."""

    def __init__(self, named: Iterable[SharedFolderRule] = (), hidden: Iterable[str] = ()) -> None:
        self._said = tuple(named)
        self._links, self._named = _without_links(self._said)
        self._hidden = [parts_of(os.path.realpath(path)) for path in hidden]
        self._never = [*map(parts_of, NEVER), *self._hidden]

    def grant(self, path: str, asker: Requester) -> FolderGrant | None:
        """Return the requester's rights in the folder; None for none."""
        parts = self._resolve(parts_of(path))
        if not parts or self._is_never(parts):
            return None
        deciding = max(
            (named for named in self._named if named.covers(parts)),
            key=lambda named: (len(named.parts), -named.parts.count(USER)),
            default=None,
        )
        inner = [named for named in self._named if named.lies_in(parts)]
        if deciding is None or not all(named.admits(asker, parts) for named in (deciding, *inner)):
            return None
        around = [named for named in self._named if named.covers(parts) and len(named.parts) < len(parts)]
        return FolderGrant(
            path="/" + "/".join(parts),
            write=all(named.write for named in (deciding, *inner)),
            steady=len(deciding.parts) == len(parts) and not any(named.write for named in around),
        )

    def shared_folders(self) -> tuple[SharedFolder, ...]:
        """The folders by the paths that the admin wrote, and by those to which links in them lead."""
        both = (*self._said, *self._named)
        found = ((f"/{'/'.join(one.parts)}", tuple(sorted(one.workspaces))) for one in both)
        return tuple(SharedFolder(*each) for each in dict.fromkeys(found))

    def _resolve(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """The place by the path to which the links lead that an admin has in the names."""
        for before, after in self._links:
            if parts[: len(before)] == before:
                return after + parts[len(before) :]
        return parts

    def _is_never(self, parts: tuple[str, ...]) -> bool:
        """Tell whether the place lies in what no job may have, or has it in itself."""
        return any(
            parts[: len(other)] == other or other[: len(parts)] == parts for other in self._never if other
        )


def parts_of(path: str) -> tuple[str, ...]:
    """The names on an absolute path; () for one that is relative, is the root, or has `..` in it."""
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    return parts if path.startswith("/") and ".." not in parts and "\0" not in path else ()


def _same(mine: str, theirs: str) -> bool:
    return mine in (theirs, USER)


def _without_links(
    named: Iterable[SharedFolderRule],
) -> tuple[list[tuple[tuple[str, ...], tuple[str, ...]]], list[SharedFolderRule]]:
    """Return the targets of links in the names, the longest first, and the folders by resolved paths."""
    links: dict[tuple[str, ...], tuple[str, ...]] = {}
    folders = []
    for one in named:
        fixed = one.parts[: one.parts.index(USER)] if USER in one.parts else one.parts
        real = parts_of(os.path.realpath("/" + "/".join(fixed)))
        if real:  # a link to the root names nothing
            links[fixed] = real
            folders.append(SharedFolderRule(real + one.parts[len(fixed) :], one.workspaces, one.write))
    return sorted(links.items(), key=lambda pair: -len(pair[0])), folders

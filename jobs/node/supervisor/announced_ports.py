"""Announced ports: lines of JSON that the job appends to a file in its own folder.

The job writes what it likes, so nothing of it is believed: the file is opened through no link, has to be an
ordinary one of the job's own, and is read only so far; a line that is not exactly as documented says nothing.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

NAME: Final = ".job-console-endpoints"
"""Of the file, in the replica's own folder."""

MOST: Final = 16
"""Labels of one replica."""

LONGEST_LABEL: Final = 64
LONGEST_PATH: Final = 500
MOST_BYTES: Final = 64 * 1024
MOST_ANNOUNCED: Final = 256
"""In all of an attempt."""

_TOKEN: Final = re.compile(r"[A-Za-z_-]{0,32}")
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class AnnouncedPort:
    """A port that is served; `path` is where to begin, `probe` what answers by HTTP once it is ready, and
    `token` the name under which it wants the link's token in the query.
    """

    label: str
    port: int
    path: str = ""
    probe: str = ""
    token: str = ""


class AnnouncementFile:
    """One replica's announcements, read again when the file has changed.

    `uid` is the job's user; None where that tells nothing.
    """

    def __init__(self, folder: Path, uid: int | None) -> None:
        self._folder, self._uid = folder, uid
        self._version: tuple[int, int, int] | None = None
        self._said: tuple[AnnouncedPort, ...] = ()

    def read(self) -> tuple[AnnouncedPort, ...]:
        """Return the announced ports; of several lines with one label the last."""
        try:
            fd = os.open(self._folder / NAME, _FLAGS)
        except OSError:
            self._version, self._said = None, ()
            return ()
        try:
            now = os.fstat(fd)
            version = (now.st_ino, now.st_mtime_ns, now.st_size)
            if version != self._version:
                text = os.pread(fd, MOST_BYTES, 0) if self._is_its_own(now) else b""
                self._version, self._said = version, tuple(_parse(text))
        except OSError:
            self._version, self._said = None, ()
        finally:
            os.close(fd)
        return self._said

    def _is_its_own(self, now: os.stat_result) -> bool:
        """An ordinary file of the job's user, known by no other name."""
        return stat.S_ISREG(now.st_mode) and now.st_nlink == 1 and self._uid in (None, now.st_uid)


class Announcements:
    """The announced ports of all replicas of an attempt."""

    def __init__(self, path: Path, positions: Mapping[int, str], uid: int | None) -> None:
        """Take the attempt's folder and the names of its replicas by their positions."""
        self._files = {at: AnnouncementFile(path / "work" / name, uid) for at, name in positions.items()}
        self._found: dict[int, Mapping[int, AnnouncedPort]] = {}

    def read(self, positions: Iterable[int]) -> bool:
        """Read what these replicas announce now; tell whether anything is."""
        left = MOST_ANNOUNCED
        self._found = {}
        for position in positions:
            found = self._files[position].read()[:left]
            self._found[position] = {each.port: each for each in found}
            left -= len(found)
        return left < MOST_ANNOUNCED

    def of(self, position: int) -> Mapping[int, AnnouncedPort]:
        """Return a replica's announced ports, by their numbers."""
        return self._found.get(position, {})


def _parse(text: bytes) -> Iterator[AnnouncedPort]:
    found: dict[str, AnnouncedPort] = {}
    for line in text.split(b"\n")[:-1]:
        one = _parse_line(line)
        if one is not None and (one.label in found or len(found) < MOST):
            found[one.label] = one
    yield from found.values()


def _parse_line(line: bytes) -> AnnouncedPort | None:
    """One line; None unless it is just as it should be.  A number as long as the line would not be read."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    label, port = value.get("label", ""), value.get("port")
    path, probe = value.get("path", ""), value.get("probe", "")
    if type(port) is not int or not 0 < port < 1 << 16 or not _is_label(label):
        return None
    token = value.get("token", "")
    understood = _is_path(path) and _is_path(probe) and isinstance(token, str) and _TOKEN.fullmatch(token)
    return AnnouncedPort(label, port, path, probe, token) if understood else None


def _is_label(value: Any) -> bool:
    return (
        isinstance(value, str)
        and value.isprintable()
        and 0 < len(value.strip()) <= len(value) <= LONGEST_LABEL
    )


def _is_path(value: Any) -> bool:
    """A path of this very host, with a query perhaps; or nothing."""
    if not isinstance(value, str) or len(value) > LONGEST_PATH:
        return False
    plain = value.isascii() and value.isprintable() and " " not in value and "\\" not in value
    return not value or (plain and value.startswith("/") and not value.startswith("//"))

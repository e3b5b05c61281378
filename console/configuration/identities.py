"""Find out what jobs share with others by the user and group ids that they have on this machine."""

from __future__ import annotations

import grp
import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import Final

SUBORDINATE: Final = Path("/etc/subuid")


def supplementary_groups() -> list[str]:
    """Return the groups that this process has beside its own, by their names."""
    return sorted(_name_of(number) for number in set(os.getgroups()) - {os.getegid()})


def _name_of(group: int) -> str:
    try:
        return grp.getgrgid(group).gr_name
    except KeyError:
        return str(group)


def taken_ids(ids: range) -> list[str]:
    """Return who has user ids among `ids` already: accounts, and ranges of subordinate ids."""
    found = [f"{each.pw_name} ({each.pw_uid})" for each in pwd.getpwall() if each.pw_uid in ids]
    for name, first, count in _subordinate():
        if first < ids.stop and ids.start < first + count:
            found.append(f"{name} ({first}-{first + count - 1} in {SUBORDINATE})")
    return found


def _subordinate() -> Iterator[tuple[str, int, int]]:
    """Yield the rows of /etc/subuid: whose, the first id, and how many (subuid(5))."""
    try:
        lines = SUBORDINATE.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        name, _, rest = line.partition(":")
        first, _, count = rest.partition(":")
        if first.isdecimal() and count.isdecimal():
            yield name, int(first), int(count)

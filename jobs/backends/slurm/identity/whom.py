"""As which UNIX user a job runs, where a cluster tells its people apart.

Who that is was said by an admin or by the identity provider.  Here, where the user is looked up, it is made
sure that it is a person's: none of the system's, not Slurm's and not the console's.
"""

from __future__ import annotations

import os
import pwd
import re
from functools import cache
from pathlib import Path, PurePath
from typing import Final, TypeVar

from jobs.backends.base import Observation, Person, Refused
from jobs.backends.slurm.client.programs import Programs
from jobs.backends.slurm.config import SlurmConfig
from jobs.states import Reason, ReasonCode

LOGIN_DEFS: Final = Path("/etc/login.defs")
_LEAST: Final = 1000
_NOBODY: Final = 65534
_UID_MIN: Final = re.compile(r"^UID_MIN\s+(\d+)", re.MULTILINE)
_SLURM_USER: Final = re.compile(r"^SlurmUser\s*=\s*([^\s(]+)", re.MULTILINE)
_NO_SHELLS: Final = frozenset({"nologin", "false", "true", "sync", "halt", "shutdown"})


T = TypeVar("T")

Account = pwd.struct_passwd

_LONGEST: Final = 255
_LATEST: Final = 1 << 32


def account(person: Person, slurm_user: str = "") -> Account:
    """The user as whom the person's jobs run; `slurm_user` is whom Slurm itself runs as.  Raises Refused."""
    name = person.unix_name
    if not name:
        raise _refused("no_unix_name", person.name)
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise _refused("unix_name_unknown", name) from None
    if name.isdigit() or not _is_a_persons(found) or found.pw_uid in (os.geteuid(), number(slurm_user)):
        raise _refused("unix_name_of_the_system", name)
    return found


def slurm_user(config: SlurmConfig) -> str:
    """As whom Slurm itself runs.  Raises Unreachable."""
    if config.slurm_user:
        return config.slurm_user
    asked = (config.configuration, config.programs, config.login.address if config.login else "")
    if asked not in _told:
        match = _SLURM_USER.search(Programs(config).scontrol("show", "config"))
        _told[asked] = match[1] if match else ""
    return _told[asked]


_told: Final[dict[tuple[str, str, str], str]] = {}
"""By a cluster's configuration, its programs and where they run; it does not change while Slurm runs."""


def number(name: str) -> int | None:
    """A user's number; None where there is no such user."""
    try:
        return pwd.getpwnam(name).pw_uid if name else None
    except KeyError:
        return None


def plausible(seen: T, user: str) -> T:
    """What was seen, made of what `user` may have written at will.  ValueError for what can't be."""
    if not user or not isinstance(seen, Observation):
        return seen
    times = [seen.started_at, seen.ended_at]
    for each in seen.replicas:
        times += [each.started_at, each.ended_at]
        if not 0 <= (each.exit_code or 0) <= _LONGEST or len(each.node) > _LONGEST:
            raise ValueError(each.role)
    if any(at is not None and not 0 <= at < _LATEST for at in times):
        raise ValueError(user)
    return seen


def _is_a_persons(found: Account) -> bool:
    is_low = found.pw_uid < max(_LEAST, _first_person()) or found.pw_uid == _NOBODY
    return not is_low and PurePath(found.pw_shell).name not in _NO_SHELLS


@cache
def _first_person() -> int:
    """From which number on this system's users are people."""
    try:
        told = _UID_MIN.search(LOGIN_DEFS.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return _LEAST
    return int(told[1]) if told else _LEAST


def _refused(why: str, name: str = "") -> Refused:
    return Refused(Reason(ReasonCode.REFUSED, {"why": why, **({"name": name} if name else {})}))

"""The UNIX users of jobs, where jobs run as their owners.

An admin or the identity provider names them.  Here each is looked up, and refused unless it is a person's:
none of the system's, not Slurm's and not the console's.
"""

from __future__ import annotations

import os
import pwd
from typing import Final

from jobs.backends.base import Person
from jobs.backends.refusals import refusal
from jobs.backends.slurm.client.programs import Programs
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.identity import as_user

Account = pwd.struct_passwd


def resolve_account(person: Person, slurm_user: str = "") -> Account:
    """Return the user as whom a person's jobs run; `slurm_user` is Slurm's own.  Raises Refused."""
    name = person.unix_name
    if not name:
        raise refusal("no_unix_name", name=person.name)
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise refusal("unix_name_unknown", name=name) from None
    if (
        name.isdigit()
        or as_user.is_system_user(found)
        or found.pw_uid in (os.geteuid(), find_uid(slurm_user))
    ):
        raise refusal("unix_name_of_the_system", name=name)
    return found


def slurm_user(config: SlurmConfig) -> str:
    """Return the user as whom Slurm itself runs.  Raises Unreachable."""
    if config.slurm_user:
        return config.slurm_user
    cluster = (config.configuration, config.programs, config.login.address if config.login else "")
    if cluster not in _slurm_users:
        _slurm_users[cluster] = Programs(config).read_setting("SlurmUser")
    return _slurm_users[cluster]


_slurm_users: Final[dict[tuple[str, str, str], str]] = {}
"""By a cluster's configuration, programs and login node; it does not change while Slurm runs."""


def find_uid(name: str) -> int | None:
    """Return a user's number, None where there is no such user."""
    try:
        return pwd.getpwnam(name).pw_uid if name else None
    except KeyError:
        return None

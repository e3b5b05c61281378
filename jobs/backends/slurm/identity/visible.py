"""Whether Slurm shows the console everybody's jobs: where people are told apart, it looks at theirs."""

from __future__ import annotations

import os
import pwd
import re
from typing import Final

from jobs.backends.base import Unreachable
from jobs.backends.slurm.client.programs import Programs
from jobs.backends.slurm.config import SlurmConfig

HIDDEN: Final = (
    "Slurm does not show {user} other people's jobs (PrivateData=jobs): make it an operator, "
    "sacctmgr modify user {user} set AdminLevel=Operator, or take jobs out of PrivateData where there is no "
    "slurmdbd."
)

_PRIVATE: Final = re.compile(r"^PrivateData\s*=\s*(\S*)", re.MULTILINE)
_SLURM_USER: Final = re.compile(r"^SlurmUser\s*=\s*([^\s(]+)", re.MULTILINE)
_ABOVE_OTHERS: Final = frozenset({"Operator", "Administrator"})


def check(config: SlurmConfig) -> None:
    """Raise Unreachable where it does not."""
    where = config.login.address if config.login else config.url
    asked = (config.configuration, config.programs, where, asking(config))
    if asked in _shown:
        return
    if told := hidden(config):
        raise Unreachable(told)
    _shown.add(asked)


_shown: Final[set[tuple[str, str, str, str]]] = set()
"""Clusters that did: a process asks until one does."""


def hidden(config: SlurmConfig) -> str:
    """What an admin has to do about it; nothing where there is nothing to do.  Raises Unreachable."""
    programs, user = Programs(config), asking(config)
    said = programs.scontrol("show", "config")
    private = _PRIVATE.search(said)
    if private is None or "jobs" not in private[1].split(","):
        return ""
    slurms_own = _SLURM_USER.search(said)
    if user in {"root", slurms_own[1] if slurms_own else ""}:
        return ""
    level = programs.sacctmgr("list", "user", f"name={user}", "format=AdminLevel")
    return "" if level and level.strip() in _ABOVE_OTHERS else of_people(config)


def of_people(config: SlurmConfig) -> str:
    """What is said where Slurm is known to hide their jobs."""
    return HIDDEN.format(user=asking(config))


def asking(config: SlurmConfig) -> str:
    """As whom Slurm is asked."""
    if config.way == "rest":
        return config.user
    return config.login.user if config.login else pwd.getpwuid(os.geteuid()).pw_name

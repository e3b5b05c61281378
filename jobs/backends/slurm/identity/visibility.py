"""Checks that Slurm shows the console the jobs of all users, which run as their owners."""

from __future__ import annotations

import os
import pwd
from typing import Final

from jobs.backends.base import Unreachable
from jobs.backends.slurm.client.programs import Programs
from jobs.backends.slurm.config import SlurmConfig

HIDDEN: Final = (
    "Slurm does not show {user} other people's jobs (PrivateData=jobs): make it an operator, sacctmgr "
    "modify user {user} set AdminLevel=Operator, or take jobs out of PrivateData where there is no slurmdbd."
)

_ABOVE_OTHERS: Final = frozenset({"Operator", "Administrator"})


def check(config: SlurmConfig) -> None:
    """Raise Unreachable where Slurm hides jobs from the console."""
    where = config.login.address if config.login else config.url
    asked = (config.configuration, config.programs, where, asking_user(config))
    if asked in _shown:
        return
    if message := describe_hidden(config):
        raise Unreachable(message)
    _shown.add(asked)


_shown: Final[set[tuple[str, str, str, str]]] = set()
"""Clusters that show them: a process asks until one does."""


def describe_hidden(config: SlurmConfig) -> str:
    """Return what an admin has to do so that jobs are shown, "" for nothing.  Raises Unreachable."""
    programs, user = Programs(config), asking_user(config)
    if "jobs" not in programs.read_setting("PrivateData").split(","):
        return ""
    if user in {"root", programs.read_setting("SlurmUser")}:
        return ""
    level = programs.sacctmgr("list", "user", f"name={user}", "format=AdminLevel")
    return "" if level and level.strip() in _ABOVE_OTHERS else hidden_message(config)


def hidden_message(config: SlurmConfig) -> str:
    """Return the message where Slurm is known to hide their jobs."""
    return HIDDEN.format(user=asking_user(config))


def asking_user(config: SlurmConfig) -> str:
    """Return the user as whom the console asks Slurm."""
    if config.way == "rest":
        return config.user
    return config.login.user if config.login else pwd.getpwuid(os.geteuid()).pw_name

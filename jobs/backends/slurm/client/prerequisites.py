"""Prerequisites on this machine and at Slurm, each named when it is missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from jobs.backends.base import Refused, Unreachable
from jobs.backends.slurm.client.programs import Programs
from jobs.backends.slurm.client.rest import tokens
from jobs.backends.slurm.config import JWT, SUDO, SlurmConfig
from jobs.backends.slurm.identity import folder_access, helper, unix_users, visibility
from jobs.backends.slurm.identity.as_user import PATH

PROGRAMS: Final = ("sbatch", "squeue", "scontrol", "scancel")

DOWN: Final = "slurmctld does not answer: it is down, or a firewall is between. Slurm says: {said}"

NOT_TAKEN: Final = (
    "slurmctld does not answer, or does not accept the token: auth/jwt has to be among AuthAltTypes in "
    "slurm.conf, and the key that of its jwt_key. slurmrestd says: {said}"
)

KEY: Final = (
    "slurmctld does not accept what munge signs on this machine: give it the cluster's key, and compare the "
    "clocks. Slurm says: {said}"
)

STRANGER: Final = (
    "slurmctld does not know the console's user: make it where slurmctld runs too, with the same number. "
    "Slurm says: {said}"
)

NOWHERE: Final = (
    "There is no slurm.conf: install the cluster's, or name it as `configuration`. Slurm says: {said}"
)

NOT_THERE: Final = (
    "There are no programs of Slurm on the login node: install them there, or name their folder as "
    "`programs`. It says: {said}"
)

MEANINGS: Final = (
    (": env: ", NOT_THERE),
    (
        "munge",
        "munge does not answer on this machine: start munged, with the cluster's key. Slurm says: {said}",
    ),
    ("could not establish a configuration source", NOWHERE),
    ("resolve_ctls_from_dns_srv", NOWHERE),  # without one, Slurm looks in the DNS
    ("invalid user id", STRANGER),
    ("error generating job credential", STRANGER),
    ("zero bytes were transmitted", KEY),
    ("protocol authentication error", KEY),
    ("unspecified error", NOT_TAKEN),
    ("unable to contact slurm controller", DOWN),
    ("did not answer within", DOWN),
)
"""Phrases of Slurm's errors, and what they mean."""


TEST_SCRIPT: Final = """\
#!/bin/sh
#SBATCH --ntasks=1
#SBATCH --mem=1
#SBATCH --time=1
{option}true
"""

REFUSED: Final = (
    "Slurm takes no job of {user} with --{option}={name}, which the cluster's setting {setting} names: {said}"
)


def check(config: SlurmConfig) -> None:
    """Raise Unreachable for what this machine lacks, before Slurm is asked."""
    if config.login is None:
        _check_programs(config)
    if not is_there(config):
        raise Unreachable(
            f"There is no folder {config.root}: make it where all nodes see it, and start the console with "
            "CONSOLE_SLURM_FOLDER."
        )
    if config.identity == SUDO:
        helper.check(config)
    if config.identity == JWT:
        tokens.check(config)
        _check_slurm_user(config)
    if config.tells_apart:
        folder_access.check(config.root)
    if not _is_writable(config.root):
        raise Unreachable(f"The console may not write into {config.root}: give the folder to its user.")
    if config.identity == SUDO:
        visibility.check(config)


def _check_programs(config: SlurmConfig) -> None:
    where = config.programs or PATH
    absent = [name for name in PROGRAMS if shutil.which(name, path=where) is None]
    if absent and (config.way == "commands" or config.identity == SUDO):
        raise Unreachable(
            f"There is no {', '.join(absent)} in {where}: install Slurm's client programs, or name their "
            "folder as `programs`."
        )
    if config.configuration and not Path(config.configuration).is_file():
        raise Unreachable(
            f"There is no {config.configuration}: `configuration` names the cluster's slurm.conf."
        )


def is_there(config: SlurmConfig) -> bool:
    """Return whether the folder is there; the console makes its own.

    A folder that an admin named may be of a file system that is not mounted: one made in its place would not
    be shared.
    """
    if config.own:
        config.root.mkdir(mode=0o700, exist_ok=True)
    return config.root.is_dir()


def find_refused(config: SlurmConfig, programs: Programs, user: str) -> Iterator[str]:
    """Yield what Slurm refuses to the user of `programs`, by `sbatch --test-only`.  Raises Unreachable."""
    for setting, option, name in list_names(config):
        try:
            programs.test(TEST_SCRIPT.format(option=f"#SBATCH --{option}={name}\n"))
        except Refused as refused:
            said = refused.reason.params.get("detail", "")
            yield REFUSED.format(user=user, option=option, name=name, setting=setting, said=said)


def list_names(config: SlurmConfig) -> Iterator[tuple[str, str, str]]:
    """Yield setting, option of sbatch, and name: each name once."""
    said = (
        ("partition", "partition", (config.partition,)),
        ("partitions", "partition", config.partitions.values()),
        ("account", "account", (config.account,)),
        ("accounts", "account", config.accounts.values()),
        ("qos", "qos", config.qos.values()),
    )
    seen = set()
    for setting, option, names in said:
        for name in names:
            if name and (option, name) not in seen:
                seen.add((option, name))
                yield setting, option, name


@contextmanager
def explaining_errors() -> Iterator[None]:
    """Raise Unreachable with the meaning of Slurm's error where that is known."""
    try:
        yield
    except Unreachable as error:
        said = str(error)
        meaning = next((text for phrase, text in MEANINGS if phrase in said.lower()), "{said}")
        raise Unreachable(meaning.format(said=said)) from error


def _check_slurm_user(config: SlurmConfig) -> None:
    try:
        unix_users.slurm_user(config)
    except Unreachable as error:
        raise Unreachable(
            "It is not known as whom Slurm itself runs, and nobody's jobs may run as that: install scontrol, "
            f"or name the user as `slurm_user`. {error}"
        ) from error


def _is_writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK | os.X_OK)

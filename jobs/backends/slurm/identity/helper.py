"""Slurm's programs as one of the console's users, by the helper that sudo runs (`as_user`)."""

from __future__ import annotations

import shutil
import stat
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from jobs.backends.base import Unreachable
from jobs.backends.slurm.client.login import ConnectionLost
from jobs.backends.slurm.client.programs import (
    CompletedProgram,
    ExpectedStart,
    Programs,
    run_here,
    run_on_login,
)
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.identity import as_user
from jobs.backends.slurm.identity.as_user import PATH

_SUDO: Final = "sudo:"
_LANGUAGE: Final = {"LANG": "C.UTF-8"}


class SudoHelper(Programs):
    """The programs run as `user`; each is one of the helper's verbs."""

    def __init__(self, config: SlurmConfig, user: str) -> None:
        super().__init__(config)
        self._user = user

    def submit(self, key: str, script: str) -> int:
        """See `JobActions`."""
        return self._submit("submit", key, script=script)

    def test(self, script: str) -> ExpectedStart:
        """See `Programs`."""
        return self._parse_test(self._call("test", stdin=script))

    def release(self, numbers: Sequence[int]) -> None:
        """See `JobActions`."""
        self._check(self._call("release", ",".join(map(str, numbers))))

    def cancel(self, numbers: Sequence[int], *, waiting_only: bool = False, name: str = "") -> None:
        """See `JobActions`."""
        which = "waiting" if waiting_only else "all"
        self._check(self._call("cancel", which, name or "-", ",".join(map(str, numbers))))

    def remove(self, key: str) -> None:
        """Remove what they made in a job's folder, as far as that is possible."""
        with suppress(Unreachable):
            self._call("remove", key)

    def command(self, name: str, *arguments: str) -> list[str]:
        """Return the command line of the helper as that user."""
        sudo = "sudo" if self._config.login else shutil.which("sudo", path=PATH)
        if sudo is None:
            raise FileNotFoundError(f"there is no sudo in {PATH}")
        return [sudo, "-n", "-u", self._user, "--", self._config.helper, name, *arguments]

    def _is_prevented(self, done: CompletedProgram) -> bool:
        is_sudos = any(line.startswith(_SUDO) for line in done.err.splitlines())
        return is_sudos or done.code == as_user.REFUSED or super()._is_prevented(done)

    def _run(self, name: str, *arguments: str, stdin: str = "") -> CompletedProgram:
        return _run(self._config, self.command(name, *arguments), stdin)


def check(config: SlurmConfig) -> None:
    """Raise Unreachable where the helper is missing, or another user than root could change it.

    It is checked on the login node where there is one.
    """
    where = f" on {config.login.host}" if config.login else ""
    for path in (config.helper, f"{config.helper}.json"):
        found = _output(config, "stat", "--dereference", "--format=%u %a", path).split()
        if not found:
            raise Unreachable(
                f"There is no {path}{where}: with identity sudo an admin has to install the helper "
                "(docs/slurm.md)."
            )
        owner, mode = int(found[0]), int(found[1], 8)
        if owner != 0 or mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise Unreachable(f"{path}{where} has to be root's, and nobody else's to write.")
    allowed = _output(config, "sudo", "-n", "-l")
    if config.helper not in allowed and not any(line.endswith(" ALL") for line in allowed.splitlines()):
        raise Unreachable(f"sudo does not let the console run {config.helper}{where}: see docs/slurm.md.")


def _run(config: SlurmConfig, words: Sequence[str], stdin: str = "") -> CompletedProgram:
    """Run a program where the helper is."""
    environment: Mapping[str, str] = _LANGUAGE
    if config.login is not None:
        return run_on_login(config.login, words, environment, stdin, config.timeout_s)
    return run_here(words, {"PATH": PATH, **environment}, stdin, config.timeout_s)


def _output(config: SlurmConfig, *words: str) -> str:
    """Return what a program prints where the helper is.  Raises Unreachable where it can't be run."""
    try:
        return _run(config, words).out
    except (OSError, ConnectionLost, subprocess.SubprocessError) as error:
        where = f" on {config.login.host}" if config.login else ""
        raise Unreachable(f"{words[0]} does not answer{where}: {error}") from error

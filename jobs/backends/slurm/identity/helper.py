"""Slurm's programs as one of the console's people, by the helper that sudo runs (`as_user`)."""

from __future__ import annotations

import shutil
import stat
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from jobs.backends.base import Unreachable
from jobs.backends.slurm.client.login import Lost
from jobs.backends.slurm.client.programs import Done, Expected, Programs, there
from jobs.backends.slurm.config import PATH, SlurmConfig
from jobs.backends.slurm.identity import as_user

_SUDO: Final = "sudo:"
_LANGUAGE: Final = {"LANG": "C.UTF-8"}


class Helper(Programs):
    """What is done as `user`; each program is one of the helper's verbs."""

    def __init__(self, config: SlurmConfig, user: str) -> None:
        super().__init__(config)
        self._user = user

    def submit(self, key: str, script: str) -> int:
        """Submit a script, held; its job id.  Raises Refused, NotSent or Unknown."""
        return self._submitted("submit", key, script=script)

    def test(self, script: str) -> Expected:
        """When and where a script would start; nothing of it is kept.  Raises Refused or Unreachable."""
        return self._tested(self._call("test", stdin=script))

    def release(self, numbers: Sequence[int]) -> None:
        """Let held jobs go; those that are no longer there don't matter."""
        self._done(self._call("release", ",".join(map(str, numbers))))

    def end(self, numbers: Sequence[int], *, waiting_only: bool = False, name: str = "") -> None:
        """End jobs, or those called so; those that are no longer there don't matter."""
        which = "waiting" if waiting_only else "all"
        self._done(self._call("cancel", which, name or "-", ",".join(map(str, numbers))))

    def remove(self, key: str) -> None:
        """Remove what they made in a job's folder, as far as that goes."""
        with suppress(Unreachable):
            self._call("remove", key)

    def command(self, name: str, *arguments: str) -> list[str]:
        """The helper, as that user."""
        return [_sudo(self._config), "-n", "-u", self._user, "--", self._config.helper, name, *arguments]

    def _is_prevented(self, done: Done) -> bool:
        is_sudos = any(line.startswith(_SUDO) for line in done.err.splitlines())
        return is_sudos or done.code == as_user.REFUSED or super()._is_prevented(done)

    def _run(self, name: str, *arguments: str, stdin: str = "") -> Done:
        """Like any program; but whoever runs it may not be able to kill what sudo started."""
        if self._config.login is not None:
            command = self.command(name, *arguments)
            return there(self._config.login, command, _LANGUAGE, stdin, self._config.timeout_s)
        process = subprocess.Popen(
            self.command(name, *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": PATH, **_LANGUAGE},
            cwd="/",
            start_new_session=True,
        )
        try:
            out, err = process.communicate(stdin.encode(), timeout=self._config.timeout_s)
        except subprocess.TimeoutExpired:
            with suppress(PermissionError):
                process.kill()
            raise
        return Done(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))


def check(config: SlurmConfig) -> None:
    """Raise Unreachable where the helper is not there, or somebody else than root could change it; on the
    login node, where there is one.
    """
    for path in (config.helper, f"{config.helper}.json"):
        said = _asked(config, "stat", "--dereference", "--format=%u %a", path).out.split()
        if not said:
            raise Unreachable(
                f"There is no {path}{_where(config)}: with identity sudo an admin has to install the helper "
                "(docs/slurm.md)."
            )
        owner, mode = int(said[0]), int(said[1], 8)
        if owner != 0 or mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise Unreachable(f"{path}{_where(config)} has to be root's, and nobody else's to write.")
    may = _asked(config, "sudo", "-n", "-l").out
    if config.helper not in may and not any(line.endswith(" ALL") for line in may.splitlines()):
        raise Unreachable(
            f"sudo does not let the console run {config.helper}{_where(config)}: see docs/slurm.md."
        )


def _where(config: SlurmConfig) -> str:
    return f" on {config.login.host}" if config.login else ""


def _sudo(config: SlurmConfig) -> str:
    """The login node finds it by itself."""
    program = "sudo" if config.login else shutil.which("sudo", path=PATH)
    if program is None:
        raise FileNotFoundError(f"there is no sudo in {PATH}")
    return program


def _asked(config: SlurmConfig, *words: str) -> Done:
    """What a program says where the helper is.  Raises Unreachable where it can't be run."""
    try:
        if config.login is not None:
            return there(config.login, words, _LANGUAGE, "", config.timeout_s)
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=config.timeout_s,
            env={"PATH": PATH, **_LANGUAGE},
            start_new_session=True,
            check=False,
        )
    except (OSError, Lost, subprocess.SubprocessError) as error:
        raise Unreachable(f"{words[0]} does not answer{_where(config)}: {error}") from error
    return Done(done.returncode, done.stdout, done.stderr)

"""Slurm's programs as one of the console's people, by the helper that sudo runs (`as_user`)."""

from __future__ import annotations

import shutil
import stat
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from jobs.backends.base import Unreachable
from jobs.backends.slurm import as_user
from jobs.backends.slurm.config import PATH, SlurmConfig
from jobs.backends.slurm.programs import Done, Expected, Programs

_SUDO: Final = "sudo:"


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
        return [_sudo(), "-n", "-u", self._user, "--", self._config.helper, name, *arguments]

    def _is_prevented(self, done: Done) -> bool:
        return done.code == as_user.REFUSED or done.err.startswith(_SUDO)

    def _run(self, name: str, *arguments: str, stdin: str = "") -> Done:
        """Like any program; but whoever runs it may not be able to kill what sudo started."""
        process = subprocess.Popen(
            self.command(name, *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": PATH, "LANG": "C.UTF-8"},
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
    """Raise Unreachable where the helper is not there, or somebody else than root could change it."""
    for path in (Path(config.helper), Path(f"{config.helper}.json")):
        try:
            found = path.stat()
        except OSError:
            raise Unreachable(
                f"There is no {path}: with identity sudo an admin has to install the helper (docs/slurm.md)."
            ) from None
        if found.st_uid != 0 or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise Unreachable(f"{path} has to be root's, and nobody else's to write.")
    _check_sudo(config)


def _sudo() -> str:
    program = shutil.which("sudo", path=PATH)
    if program is None:
        raise FileNotFoundError(f"there is no sudo in {PATH}")
    return program


def _check_sudo(config: SlurmConfig) -> None:
    try:
        done = subprocess.run(
            [_sudo(), "-n", "-l"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=config.timeout_s,
            env={"PATH": PATH, "LANG": "C.UTF-8"},
            start_new_session=True,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise Unreachable(f"sudo does not answer: {error}") from error
    if config.helper not in done.stdout and not done.stdout.rstrip().endswith(" ALL"):
        raise Unreachable(f"sudo does not let the console run {config.helper}: see docs/slurm.md.")

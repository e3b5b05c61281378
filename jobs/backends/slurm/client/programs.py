"""Slurm's programs, run here or on the login node.

Each is run with arguments, without a shell, with a timeout, and with an environment of its own: sbatch passes
its environment to the job, and the console's is not for jobs.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from jobs.backends.base import NotSubmitted, Refused, Unknown, Unreachable
from jobs.backends.slurm.client.login import ConnectionLost, Login, NoLogin, run
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.identity import as_user
from jobs.backends.slurm.identity.as_user import PATH

NO_CONNECTION: Final = (
    "unable to contact slurm controller",
    "connection refused",
    "could not establish a configuration source",
    "unable to establish controller machine",
    "failed to connect to socket",
    "munge encode failed",
    "slurm backup controller in standby mode",
)
"""Slurm's errors when nothing can have reached its controller."""

NO_ANSWER: Final = (
    "socket timed out",
    "controller (send failure)",
    "controller (receive failure)",
    "controller (shutdown failure)",
    "message send failure",
    "message receive failure",
    "zero bytes were transmitted",
    "transport endpoint",
    "unexpected message received",
    "connection reset",
    "protocol authentication error",
    "communication connection failure",
    "communication shutdown failure",
)
"""Its errors when a request was sent, and its outcome is unknown."""

NOT_NOW: Final = (
    "temporarily unable to accept job",
    "resource temporarily unavailable",
    "job submit limit",
    "submissions disabled",
    "presently disabled",
    "i/o error writing script",
    "authentication credential",
    "credential invalid",
    "unable to connect to database",
    "maxsubmitjob",
    "job size or time limits and/or job submit",
)
"""Its errors when the same job may be accepted later."""

PAST: Final = (
    "invalid job id specified",
    "job has already finished",
    "already completing or completed",
    "job is no longer pending execution",
)
"""Its errors for a job that is no longer there, or no longer waits."""

NO_ACCOUNTING: Final = (
    "accounting storage is disabled",
    "not running a supported accounting_storage plugin",
)
"""Its errors where it has no slurmdbd."""

NO_PROGRAM: Final = 127
"""A shell's exit code for a missing program."""

_EXPECTED: Final = re.compile(r"to start at (?P<start>\d+) using \d+ processors on (?:nodes )?(?P<nodes>\S+)")
_PREFIX: Final = re.compile(r"^(?:Batch job submission failed|allocation failure): ")


@dataclass(frozen=True, slots=True)
class CompletedProgram:
    """A program's exit code and output."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """Return its first error message."""
        return next(iter(self.errors), f"exit code {self.code}")

    @property
    def errors(self) -> list[str]:
        """Return its error messages, without its own name."""
        lines = (line.split("error: ", 1)[-1].strip() for line in self.err.splitlines())
        return [line for line in lines if line]

    def says(self, *phrases: str) -> bool:
        """Return whether its errors contain one of these phrases."""
        said = self.err.lower()
        return any(phrase in said for phrase in phrases)


@dataclass(frozen=True, slots=True)
class ExpectedStart:
    """Slurm's estimate of a job's start, in seconds since the epoch, and its nodes."""

    starts_at: int
    nodes: str


class Programs:
    """The programs of one cluster, run as the console."""

    def __init__(self, config: SlurmConfig) -> None:
        self._config = config

    def submit(self, key: str, script: str) -> int:
        """See `JobActions`."""
        return self._submit("sbatch", "--parsable", "--hold", script=script)

    def _submit(self, name: str, *arguments: str, script: str) -> int:
        try:
            done = self._run(name, *arguments, stdin=script)
        except (FileNotFoundError, PermissionError, NoLogin) as error:
            raise NotSubmitted.not_sent(error) from error
        except subprocess.TimeoutExpired as error:
            raise Unknown(f"sbatch did not answer within {self._config.timeout_s} s") from error
        except ConnectionLost as error:
            raise Unknown(str(error)) from error
        number = done.out.strip().split(";")[0]
        if done.code == 0 and number.isdigit():
            return int(number)
        if done.says(*NO_ANSWER) or done.code <= 0:
            raise Unknown(done.complaint)
        if self._is_prevented(done) or done.says(*NO_CONNECTION, *NOT_NOW):
            raise NotSubmitted.not_sent(done.complaint)
        raise Refused.by_engine(_why(done))

    def test(self, script: str) -> ExpectedStart:
        """Return when and where a script would start, without submitting it.

        Raises Refused or Unreachable.
        """
        return self._parse_test(self._call("sbatch", "--test-only", stdin=script))

    def _parse_test(self, done: CompletedProgram) -> ExpectedStart:
        if done.code == 0 and (match := _EXPECTED.search(done.err)):
            return ExpectedStart(int(match["start"]), match["nodes"])
        if done.code <= 0 or self._is_prevented(done) or done.says(*NO_ANSWER, *NO_CONNECTION, *NOT_NOW):
            raise Unreachable(done.complaint)
        raise Refused.by_engine(_why(done))

    def squeue(self, *arguments: str) -> str:
        """Return the queue, times in seconds since the epoch.  Raises Unreachable."""
        return self._ask("squeue", "--noheader", "--states=all", *arguments)

    def sacct(self, *arguments: str) -> str | None:
        """Return jobs and steps of accounting; None where there is none.  Raises Unreachable."""
        return self._of_accounting("sacct", "--noheader", "--parsable2", "--allusers", *arguments)

    def sacctmgr(self, *arguments: str) -> str | None:
        """Return accounts and limits of accounting, likewise."""
        return self._of_accounting("sacctmgr", "--noheader", "--parsable2", "--immediate", *arguments)

    def _of_accounting(self, name: str, *arguments: str) -> str | None:
        if self._config.login is None and self._find(name) is None:
            return None
        done = self._call(name, *arguments)
        if done.says(*NO_ACCOUNTING) or done.code == NO_PROGRAM:
            return None
        if done.code:
            raise Unreachable(f"{name}: {done.complaint}")
        return done.out

    def scontrol(self, *arguments: str) -> str:
        """Return the controller's answer.  Raises Unreachable."""
        return self._ask("scontrol", *arguments)

    def read_setting(self, name: str) -> str:
        """Return a setting of the running controller, "" if it has none.  Raises Unreachable."""
        found = re.search(rf"^{name}\s*=\s*([^\s(]*)", self.scontrol("show", "config"), re.MULTILINE)
        return found[1] if found else ""

    def srun(self, *arguments: str) -> CompletedProgram:
        """Run a command on nodes now.  Raises Unreachable."""
        return self._call("srun", *arguments)

    def release(self, numbers: Sequence[int]) -> None:
        """See `JobActions`."""
        self._check(self._call("scontrol", "release", ",".join(map(str, numbers))))

    def cancel(self, numbers: Sequence[int], *, waiting_only: bool = False, name: str = "") -> None:
        """See `JobActions`."""
        only = ["--state=PENDING"] if waiting_only else []
        named = [f"--name={name}"] if name else []
        self._check(self._call("scancel", *only, *named, *map(str, numbers)))

    def _is_prevented(self, done: CompletedProgram) -> bool:
        """Return whether Slurm's program could not be run."""
        return self._config.login is not None and done.code == NO_PROGRAM

    def _check(self, done: CompletedProgram) -> None:
        if done.code and not done.says(*PAST):
            raise Unreachable(done.complaint)

    def _ask(self, name: str, *arguments: str) -> str:
        done = self._call(name, *arguments)
        if done.code:
            raise Unreachable(f"{name}: {done.complaint}")
        return done.out

    def _call(self, name: str, *arguments: str, stdin: str = "") -> CompletedProgram:
        try:
            return self._run(name, *arguments, stdin=stdin)
        except (OSError, ConnectionLost) as error:
            raise Unreachable(f"{name}: {error}") from error
        except subprocess.TimeoutExpired as error:
            raise Unreachable(f"{name} did not answer within {self._config.timeout_s} s") from error

    def _run(self, name: str, *arguments: str, stdin: str = "") -> CompletedProgram:
        config = self._config
        if config.login is None:
            return run_here(self.command(name, *arguments), self.environment(), stdin, config.timeout_s)
        program = f"{config.programs}/{name}" if config.programs else name
        environment = {"LANG": "C.UTF-8", "SLURM_TIME_FORMAT": "%s"}  # the rest is of the user there
        if config.configuration:
            environment["SLURM_CONF"] = config.configuration
        return run_on_login(config.login, [program, *arguments], environment, stdin, config.timeout_s)

    def command(self, name: str, *arguments: str) -> list[str]:
        """Return a program's path and its arguments.  Raises FileNotFoundError."""
        if (program := self._find(name)) is None:
            raise FileNotFoundError(f"there is no {name} in {self._config.programs or PATH}")
        return [program, *arguments]

    def _find(self, name: str) -> str | None:
        return shutil.which(name, path=self._config.programs or PATH)

    def environment(self) -> dict[str, str]:
        """Return a program's environment."""
        return {**login_environment(self._config), "SLURM_TIME_FORMAT": "%s"}


def run_here(
    words: Sequence[str], environment: Mapping[str, str], stdin: str, timeout_s: float
) -> CompletedProgram:
    """Run a program on this machine.  Raises OSError or TimeoutExpired."""
    process = subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        cwd="/",
        start_new_session=True,
    )
    try:
        out, err = process.communicate(stdin.encode(), timeout=timeout_s)
    except subprocess.TimeoutExpired:
        with suppress(PermissionError):  # what sudo started is not ours to kill
            process.kill()
            process.communicate()
        raise
    return _decode(process.returncode, out, err)


def run_on_login(
    login: Login, words: Sequence[str], environment: Mapping[str, str], stdin: str, timeout_s: float
) -> CompletedProgram:
    """Run a program on a login node.  Raises NoLogin, ConnectionLost or TimeoutExpired."""
    return _decode(*run(login, words, environment, stdin, timeout_s))


def _decode(code: int, out: bytes, err: bytes) -> CompletedProgram:
    return CompletedProgram(code, out.decode(errors="replace"), err.decode(errors="replace"))


def login_environment(config: SlurmConfig, account: pwd.struct_passwd | None = None) -> dict[str, str]:
    """Return the environment of a login, of the console's own user or of `account`."""
    return as_user.login_environment(account or pwd.getpwuid(os.geteuid()), config.configuration)


def _why(done: CompletedProgram) -> str:
    """Return sbatch's error messages, each once."""
    messages = [_PREFIX.sub("", line) for line in done.errors] or [done.complaint]
    return "; ".join(dict.fromkeys(messages))[:500]

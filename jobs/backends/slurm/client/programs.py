"""Slurm's programs: the only module of this backend that runs commands.

Each is run with arguments, never by a shell, for so long and no longer, and with an environment of its own:
sbatch hands on what it finds there, and the console's is nobody else's business.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from jobs.backends.base import NotSent, Refused, Unknown, Unreachable
from jobs.backends.slurm.client.login import Login, Lost, NoLogin, run
from jobs.backends.slurm.config import PATH, SlurmConfig
from jobs.states import Reason, ReasonCode

NO_CONNECTION: Final = (
    "unable to contact slurm controller",
    "connection refused",
    "could not establish a configuration source",
    "unable to establish controller machine",
    "failed to connect to socket",
    "munge encode failed",
    "slurm backup controller in standby mode",
)
"""What Slurm says when nothing can have reached its controller."""

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
"""What it says when something was sent, and what became of it is not known."""

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
"""What it says when the same job may be taken later."""

PAST: Final = (
    "invalid job id specified",
    "job has already finished",
    "already completing or completed",
    "job is no longer pending execution",
)
"""What it says of a job that is no longer there, or no longer waits."""


NO_ACCOUNTING: Final = (
    "accounting storage is disabled",
    "not running a supported accounting_storage plugin",
)
"""What it says where it has no slurmdbd."""

NO_PROGRAM: Final = 127
"""A shell's exit code for a program that there is not."""

_EXPECTED: Final = re.compile(r"to start at (?P<start>\d+) using \d+ processors on (?:nodes )?(?P<nodes>\S+)")
_PREFIX: Final = re.compile(r"^(?:Batch job submission failed|allocation failure): ")


@dataclass(frozen=True, slots=True)
class Done:
    """How a program ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """What it complained about, without its own name in front."""
        lines = (line.split("error: ", 1)[-1].strip() for line in self.err.splitlines())
        return next((line for line in lines if line), f"exit code {self.code}")

    def says(self, *phrases: str) -> bool:
        """Whether it complained about one of these."""
        said = self.err.lower()
        return any(phrase in said for phrase in phrases)


@dataclass(frozen=True, slots=True)
class Expected:
    """When a job would start, as Slurm counts on it now, in seconds since the epoch, and on which nodes."""

    starts_at: int
    nodes: str


class Programs:
    """The programs of one cluster."""

    def __init__(self, config: SlurmConfig) -> None:
        self._config = config

    def sbatch(self, script: str) -> int:
        """Submit a script, held; its job id.  Raises Refused, NotSent or Unknown."""
        return self._submitted("sbatch", "--parsable", "--hold", script=script)

    def _submitted(self, name: str, *arguments: str, script: str) -> int:
        try:
            done = self._run(name, *arguments, stdin=script)
        except (FileNotFoundError, PermissionError, NoLogin) as error:
            raise NotSent(Reason(ReasonCode.NOT_SENT, {"detail": str(error)})) from error
        except subprocess.TimeoutExpired as error:
            raise Unknown(f"sbatch did not answer within {self._config.timeout_s} s") from error
        except Lost as error:
            raise Unknown(str(error)) from error
        number = done.out.strip().split(";")[0]
        if done.code == 0 and number.isdigit():
            return int(number)
        if done.says(*NO_ANSWER) or done.code <= 0:
            raise Unknown(done.complaint)
        if self._is_prevented(done) or done.says(*NO_CONNECTION, *NOT_NOW):
            raise NotSent(Reason(ReasonCode.NOT_SENT, {"detail": done.complaint}))
        raise Refused(Reason(ReasonCode.REFUSED, {"detail": _why(done)}))

    def test(self, script: str) -> Expected:
        """When and where a script would start; nothing of it is kept.  Raises Refused or Unreachable."""
        return self._tested(self._call("sbatch", "--test-only", stdin=script))

    def _tested(self, done: Done) -> Expected:
        if done.code == 0 and (match := _EXPECTED.search(done.err)):
            return Expected(int(match["start"]), match["nodes"])
        if done.code <= 0 or self._is_prevented(done) or done.says(*NO_ANSWER, *NO_CONNECTION, *NOT_NOW):
            raise Unreachable(done.complaint)
        raise Refused(Reason(ReasonCode.REFUSED, {"detail": _why(done)}))

    def squeue(self, *arguments: str) -> str:
        """What is in the queue, times as seconds since the epoch; raises Unreachable without an answer."""
        return self._asked("squeue", "--noheader", "--states=all", *arguments)

    def sacct(self, *arguments: str) -> str | None:
        """What accounting has of jobs; None where there is none.  Raises Unreachable without an answer."""
        return self._of_accounting(
            "sacct", "--noheader", "--parsable2", "--allocations", "--allusers", *arguments
        )

    def sacctmgr(self, *arguments: str) -> str | None:
        """What accounting allows, likewise."""
        return self._of_accounting("sacctmgr", "--noheader", "--parsable2", "--immediate", *arguments)

    def _of_accounting(self, name: str, *arguments: str) -> str | None:
        if self._config.login is None and not self._has(name):
            return None
        done = self._call(name, *arguments)
        if done.says(*NO_ACCOUNTING) or done.code == NO_PROGRAM:
            return None
        if done.code:
            raise Unreachable(f"{name}: {done.complaint}")
        return done.out

    def scontrol(self, *arguments: str) -> str:
        """What the controller says; raises Unreachable without an answer."""
        return self._asked("scontrol", *arguments)

    def srun(self, *arguments: str) -> Done:
        """Run something on nodes now; how it ended.  Raises Unreachable without an answer."""
        return self._call("srun", *arguments)

    def release(self, numbers: Sequence[int]) -> None:
        """Let held jobs go; those that are no longer there don't matter."""
        done = self._call("scontrol", "release", ",".join(map(str, numbers)))
        self._done(done)

    def cancel(self, *arguments: str) -> None:
        """End jobs; those that are no longer there don't matter."""
        done = self._call("scancel", *arguments)
        self._done(done)

    def _is_prevented(self, done: Done) -> bool:
        """Whether Slurm's program was not even run."""
        return self._config.login is not None and done.code == NO_PROGRAM

    def _done(self, done: Done) -> None:
        if done.code and not done.says(*PAST):
            raise Unreachable(done.complaint)

    def _asked(self, name: str, *arguments: str) -> str:
        done = self._call(name, *arguments)
        if done.code:
            raise Unreachable(f"{name}: {done.complaint}")
        return done.out

    def _call(self, name: str, *arguments: str, stdin: str = "") -> Done:
        try:
            return self._run(name, *arguments, stdin=stdin)
        except (OSError, Lost) as error:
            raise Unreachable(f"{name}: {error}") from error
        except subprocess.TimeoutExpired as error:
            raise Unreachable(f"{name} did not answer within {self._config.timeout_s} s") from error

    def _run(self, name: str, *arguments: str, stdin: str = "") -> Done:
        if self._config.login is not None:
            return self._run_there(self._config.login, name, *arguments, stdin=stdin)
        done = subprocess.run(
            self.command(name, *arguments),
            input=stdin.encode(),
            capture_output=True,
            timeout=self._config.timeout_s,
            env=self.environment(),
            cwd="/",
            check=False,
        )
        return Done(
            done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        )

    def _run_there(self, login: Login, name: str, *arguments: str, stdin: str) -> Done:
        """On the login node, where the environment is that of its user."""
        program = f"{self._config.programs}/{name}" if self._config.programs else name
        given = {"LANG": "C.UTF-8", "SLURM_TIME_FORMAT": "%s"}
        if self._config.configuration:
            given["SLURM_CONF"] = self._config.configuration
        return there(login, [program, *arguments], given, stdin, self._config.timeout_s)

    def command(self, name: str, *arguments: str) -> list[str]:
        """A program by its path, and its arguments.  FileNotFoundError where there is no such program."""
        program = shutil.which(name, path=self._config.programs or PATH)
        if program is None:
            raise FileNotFoundError(f"there is no {name} in {self._config.programs or PATH}")
        return [program, *arguments]

    def _has(self, name: str) -> bool:
        return shutil.which(name, path=self._config.programs or PATH) is not None

    def environment(self) -> dict[str, str]:
        """What a program is given, and nothing of the console's."""
        return {**of_login(self._config), "SLURM_TIME_FORMAT": "%s"}


def there(
    login: Login, words: Sequence[str], environment: Mapping[str, str], stdin: str, timeout_s: float
) -> Done:
    """How a program ended on a login node.  Raises NoLogin, Lost or TimeoutExpired."""
    code, out, err = run(login, words, environment, stdin, timeout_s)
    return Done(code, out.decode(errors="replace"), err.decode(errors="replace"))


def of_login(config: SlurmConfig, account: pwd.struct_passwd | None = None) -> dict[str, str]:
    """The environment that a login would have, the console's own user's or another's."""
    person = account or pwd.getpwuid(os.geteuid())
    found = {
        "PATH": PATH,
        "LANG": "C.UTF-8",
        "HOME": person.pw_dir,
        "USER": person.pw_name,
        "LOGNAME": person.pw_name,
        "SHELL": person.pw_shell or "/bin/bash",
    }
    return {**found, **({"SLURM_CONF": config.configuration} if config.configuration else {})}


def _why(done: Done) -> str:
    """The lines in which sbatch says why, the general one behind the others left out."""
    lines = [line.split("error: ", 1)[-1].strip() for line in done.err.splitlines() if line.strip()]
    told = [_PREFIX.sub("", line) for line in lines] or [done.complaint]
    return "; ".join(dict.fromkeys(told))[:500]

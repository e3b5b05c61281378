#!/usr/bin/python3 -IS
"""The sudo helper: the console's actions as one of its users, where jobs run as their owners.

An admin installs this file, and sudo runs it as that user (docs/slurm.md, As whom jobs run).  It needs only
the standard library.  Beside it lies `<its name>.json`, written by the admin:

    {"folder": "/shared/job-console", "console": "job-console"}

It submits scripts, releases and cancels jobs, starts sessions, and lists and removes files, of this one user
and in the console's folder, and nothing else.  Every argument is checked, and no shell is used.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

REFUSED: Final = 77
"""The exit code of a refusal."""

KEYS: Final = frozenset({"folder", "console", "configuration", "programs", "python"})
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where programs are looked for."""

SESSION_STEP: Final = (
    "--overlap",
    "--nodes=1",
    "--ntasks=1",
    "--mpi=none",
    "--kill-on-bad-exit=0",
    "--export=PATH",
)
"""The options of a step for a session agent, beside those for its job and node."""

LOGIN_DEFS: Final = Path("/etc/login.defs")
_KEY: Final = re.compile(r"[a-z0-9]+-(?P<job>[a-z0-9]+)-(?P<attempt>[1-9][0-9]*)")
_NUMBERS: Final = re.compile(r"[1-9][0-9]{0,9}(,[1-9][0-9]{0,9})*")
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,9}")
_PLACE: Final = re.compile(r"[0-9]{1,3}|-")
_NODE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
_ARCHIVE: Final = re.compile(r"[0-9a-f]{24}\.pyz")
_UID_MIN: Final = re.compile(r"^UID_MIN\s+(\d+)", re.MULTILINE)
_NO_SHELLS: Final = frozenset({"nologin", "false", "true", "sync", "halt", "shutdown"})
_LEAST, _NOBODY = 1000, 65534


class HelperRefusal(Exception):
    """The helper refuses; `str` tells why."""


def main() -> NoReturn:
    """Run one verb."""
    verb, *words = sys.argv[1:] or [""]
    try:
        helper = HelperVerbs(read_settings(), current_person())
        does: Mapping[str, Callable[..., NoReturn]] = {
            "submit": helper.submit,
            "test": helper.test,
            "release": helper.release,
            "cancel": helper.cancel,
            "enter": helper.enter,
            "look": helper.look,
            "remove": helper.remove,
        }
        if verb not in does or len(words) != WORDS[verb]:
            raise HelperRefusal("it is asked for nothing that it does")
        does[verb](*words)
    except (HelperRefusal, OSError, subprocess.SubprocessError) as error:
        print(f"job-console: {error}", file=sys.stderr)
    sys.exit(REFUSED)


WORDS: Final = {"submit": 1, "test": 0, "release": 1, "cancel": 3, "enter": 4, "look": 2, "remove": 1}
"""The number of arguments of each verb."""


def read_settings() -> Mapping[str, str]:
    """Return the admin's settings.  Raises HelperRefusal where another user could have written them."""
    path = Path(f"{os.path.realpath(__file__)}.json")
    with path.open(encoding="utf-8") as file:
        found = os.fstat(file.fileno())
        if found.st_uid != 0 or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise HelperRefusal(f"{path} has to be root's, and nobody else's to write")
        told = json.load(file)
    if not isinstance(told, dict) or set(told) - KEYS or not {"folder", "console"} <= set(told):
        raise HelperRefusal(f"{path} says folder and console, and maybe configuration, programs and python")
    return {name: str(value) for name, value in told.items()}


def current_person() -> pwd.struct_passwd:
    """Return the user as whom it runs.  Raises HelperRefusal for a user of the system."""
    found = pwd.getpwuid(os.geteuid())
    if is_system_user(found) or os.getuid() != found.pw_uid:
        raise HelperRefusal(f"{found.pw_name} is a user of the system")
    return found


def is_system_user(user: pwd.struct_passwd) -> bool:
    """Return whether a user is no person: a low number, or no shell."""
    try:
        limit = _UID_MIN.search(LOGIN_DEFS.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        limit = None
    least = max(_LEAST, int(limit[1]) if limit else _LEAST)
    return user.pw_uid < least or user.pw_uid == _NOBODY or Path(user.pw_shell).name in _NO_SHELLS


def login_environment(who: pwd.struct_passwd, configuration: str) -> dict[str, str]:
    """Return the environment of a login."""
    found = {"PATH": PATH, "LANG": "C.UTF-8", "HOME": who.pw_dir}
    found |= {"USER": who.pw_name, "LOGNAME": who.pw_name, "SHELL": who.pw_shell or "/bin/bash"}
    return {**found, **({"SLURM_CONF": configuration} if configuration else {})}


def session_options(number: str, place: str, node: str) -> list[str]:
    """Return the options of a step for a session agent; `place` is "-" for a job of one component."""
    component = [] if place == "-" else [f"--het-group={place}"]
    return [*SESSION_STEP, f"--jobid={number}", f"--nodelist={node}", *component]


class HelperVerbs:
    """The verbs for one user; each ends in another program, or in this one's end."""

    def __init__(self, settings: Mapping[str, str], who: pwd.struct_passwd) -> None:
        self._settings, self._who = settings, who
        self._console = pwd.getpwnam(settings["console"]).pw_uid
        if who.pw_uid == self._console:
            raise HelperRefusal("that is the console itself")

    def submit(self, key: str) -> NoReturn:
        """Submit the script on stdin, held."""
        folder = self._folder(key)
        ours = [f"--job-name={key}", f"--chdir={folder}", f"--output={folder}/slurm.output"]
        self._run("sbatch", "--parsable", "--hold", "--open-mode=append", *ours)

    def test(self) -> NoReturn:
        """Test the script on stdin."""
        self._run("sbatch", "--test-only")

    def release(self, numbers: str) -> NoReturn:
        """Release jobs of theirs."""
        self._run("scontrol", "release", ",".join(self._theirs(numbers)))

    def cancel(self, which: str, key: str, numbers: str) -> NoReturn:
        """Cancel jobs of theirs: `waiting` ones, or `all`; those with that key, or any for `-`."""
        if which not in ("waiting", "all") or not (key == "-" or _KEY.fullmatch(key)):
            raise HelperRefusal("it cancels waiting jobs, or all")
        found = self._theirs(numbers, "" if key == "-" else key)
        self._run("scancel", *(["--state=PENDING"] if which == "waiting" else []), *found)

    def enter(self, number: str, place: str, node: str, archive: str) -> NoReturn:
        """Start a session agent of the node bundle `archive` beside a job of theirs."""
        if not (_NUMBER.fullmatch(number) and _PLACE.fullmatch(place) and _NODE.fullmatch(node)):
            raise HelperRefusal("that is no part of a job")
        [theirs] = self._theirs(number)
        self._run("srun", *session_options(theirs, place, node), *self._python(archive))

    def look(self, key: str, archive: str) -> NoReturn:
        """Start a session agent in the folder of an ended job of theirs."""
        os.chdir(self._folder(key))
        self._run(*self._python(archive))

    def remove(self, key: str) -> NoReturn:
        """Remove what they made in a job's folder; the folder itself is the console's."""
        os.chdir(self._folder(key))
        quiet: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
            "env": self._environment(),
        }
        subprocess.run(["chmod", "-R", "u+rwX", "--", "."], check=False, **quiet)
        subprocess.run(["find", ".", "-mindepth", "1", "-delete"], check=False, **quiet)
        sys.exit(0)

    def _folder(self, key: str) -> Path:
        """Return the folder of an attempt, which the console has made.  Raises HelperRefusal."""
        match = _KEY.fullmatch(key)
        if match is None:
            raise HelperRefusal("that is no job of the console's")
        found = Path(self._settings["folder"])
        for part in ("", match["job"], match["attempt"]):
            found = found / part
            seen = found.lstat()
            if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != self._console:
                raise HelperRefusal(f"{found} is no folder of the console's")
        return found

    def _theirs(self, numbers: str, only: str = "") -> Sequence[str]:
        """Return those numbers that are jobs of this user from the console.  Raises HelperRefusal for
        none.
        """
        if _NUMBERS.fullmatch(numbers) is None:
            raise HelperRefusal("these are no numbers of jobs")
        asked = ("--noheader", "--states=all", f"--user={self._who.pw_uid}", "--format=%A|%Z|%j")
        done = subprocess.run(
            [*self._command("squeue"), *asked],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=self._environment(),
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            sys.exit(done.returncode)
        lines = (line.strip().split("|") for line in done.stdout.splitlines())
        known = {
            line[0] for line in lines if len(line) == 3 and self._is_ours(*line[1:]) and only in ("", line[2])
        }
        found = [number for number in numbers.split(",") if number in known]
        if not found:
            print("Invalid job id specified", file=sys.stderr)  # as Slurm says of what it does not know
            sys.exit(1)
        return found

    def _is_ours(self, folder: str, key: str) -> bool:
        match = _KEY.fullmatch(key)
        return match is not None and folder == f"{self._settings['folder']}/{match['job']}/{match['attempt']}"

    def _python(self, archive: str) -> Sequence[str]:
        if _ARCHIVE.fullmatch(archive) is None:
            raise HelperRefusal("that is no archive of the console's")
        return (
            self._settings.get("python", "python3"),
            "-I",
            "-S",
            f"{self._settings['folder']}/.node/{archive}",
        )

    def _environment(self) -> dict[str, str]:
        found = login_environment(self._who, self._settings.get("configuration", ""))
        return {**found, "SLURM_TIME_FORMAT": "%s"}

    def _command(self, name: str) -> list[str]:
        own = (
            self._settings.get("programs")
            if name in ("sbatch", "squeue", "scontrol", "scancel", "srun")
            else None
        )
        program = shutil.which(name, path=own or PATH)
        if program is None:
            raise HelperRefusal(f"there is no {name} in {own or PATH}")
        return [program]

    def _run(self, name: str, *arguments: str) -> NoReturn:
        """Execute that program in place of this one."""
        command = [*self._command(name), *arguments]
        os.execve(command[0], command, self._environment())


if __name__ == "__main__":
    main()

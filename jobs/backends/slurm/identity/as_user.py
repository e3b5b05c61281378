#!/usr/bin/python3 -IS
"""What the console may do as one of its people, where each job runs as its owner's own UNIX user.

An admin installs this file, and sudo runs it as that user (docs/slurm.md, As whom jobs run).  It needs
nothing but Python's own library.  Beside it lies `<its name>.json`, written by the admin:

    {"folder": "/shared/job-console", "console": "job-console"}

It submits scripts, lets go, stops and enters jobs, and looks at and removes files, of this one user and in
the console's folder, and nothing else.  Every word of its command line is checked, and nothing is given to a
shell.
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
"""How it ends when it does not do what it was asked for."""

KEYS: Final = frozenset({"folder", "console", "configuration", "programs", "python"})
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_KEY: Final = re.compile(r"[a-z0-9]+-(?P<job>[a-z0-9]+)-(?P<attempt>[1-9][0-9]*)")
_NUMBERS: Final = re.compile(r"[1-9][0-9]{0,9}(,[1-9][0-9]{0,9})*")
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,9}")
_PLACE: Final = re.compile(r"[0-9]{1,3}|-")
_NODE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
_ARCHIVE: Final = re.compile(r"[0-9a-f]{24}\.pyz")
_UID_MIN: Final = re.compile(r"^UID_MIN\s+(\d+)", re.MULTILINE)
_NO_SHELLS: Final = frozenset({"nologin", "false", "true", "sync", "halt", "shutdown"})
_LEAST, _NOBODY = 1000, 65534


class No(Exception):
    """It is not done; `str` says why."""


def main() -> NoReturn:
    """Do one thing."""
    verb, *words = sys.argv[1:] or [""]
    try:
        acting = Acting(settings(), person())
        does: Mapping[str, Callable[..., NoReturn]] = {
            "submit": acting.submit,
            "test": acting.test,
            "release": acting.release,
            "cancel": acting.cancel,
            "enter": acting.enter,
            "look": acting.look,
            "remove": acting.remove,
        }
        if verb not in does or len(words) != WORDS[verb]:
            raise No("it is asked for nothing that it does")
        does[verb](*words)
    except (No, OSError, subprocess.SubprocessError) as error:
        print(f"job-console: {error}", file=sys.stderr)
    sys.exit(REFUSED)


WORDS: Final = {"submit": 1, "test": 0, "release": 1, "cancel": 3, "enter": 4, "look": 2, "remove": 1}
"""How many words follow."""


def settings() -> Mapping[str, str]:
    """What the admin wrote.  Raises No when somebody else could have."""
    path = Path(f"{os.path.realpath(__file__)}.json")
    with path.open(encoding="utf-8") as file:
        found = os.fstat(file.fileno())
        if found.st_uid != 0 or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise No(f"{path} has to be root's, and nobody else's to write")
        told = json.load(file)
    if not isinstance(told, dict) or set(told) - KEYS or not {"folder", "console"} <= set(told):
        raise No(f"{path} says folder and console, and maybe configuration, programs and python")
    return {name: str(value) for name, value in told.items()}


def person() -> pwd.struct_passwd:
    """Whom it runs as.  Raises No for a user of the system."""
    found = pwd.getpwuid(os.geteuid())
    try:
        told = _UID_MIN.search(Path("/etc/login.defs").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        told = None
    least = max(_LEAST, int(told[1]) if told else _LEAST)
    system = found.pw_uid < least or found.pw_uid == _NOBODY or os.getuid() != found.pw_uid
    if system or Path(found.pw_shell).name in _NO_SHELLS:
        raise No(f"{found.pw_name} is a user of the system")
    return found


class Acting:
    """What is done for one person; every way of it ends in another program, or in this one's end."""

    def __init__(self, told: Mapping[str, str], who: pwd.struct_passwd) -> None:
        self._told, self._who = told, who
        self._console = pwd.getpwnam(told["console"]).pw_uid
        if who.pw_uid == self._console:
            raise No("that is the console itself")

    def submit(self, key: str) -> NoReturn:
        """Hand the script on stdin over, held."""
        folder = self._folder(key)
        ours = [f"--job-name={key}", f"--chdir={folder}", f"--output={folder}/slurm.output"]
        self._run("sbatch", "--parsable", "--hold", "--open-mode=append", *ours)

    def test(self) -> NoReturn:
        """Ask what would become of the script on stdin."""
        self._run("sbatch", "--test-only")

    def release(self, numbers: str) -> NoReturn:
        """Let jobs of theirs go."""
        self._run("scontrol", "release", ",".join(self._theirs(numbers)))

    def cancel(self, which: str, key: str, numbers: str) -> NoReturn:
        """End jobs of theirs: `waiting` ones, or `all`; those with that key, or any for `-`."""
        if which not in ("waiting", "all") or not (key == "-" or _KEY.fullmatch(key)):
            raise No("it cancels waiting jobs, or all")
        found = self._theirs(numbers, "" if key == "-" else key)
        self._run("scancel", *(["--state=PENDING"] if which == "waiting" else []), *found)

    def enter(self, number: str, place: str, node: str, archive: str) -> NoReturn:
        """Begin a step beside a job of theirs, in which the console's archive sees a session through."""
        if not (_NUMBER.fullmatch(number) and _PLACE.fullmatch(place) and _NODE.fullmatch(node)):
            raise No("that is no part of a job")
        [theirs] = self._theirs(number)
        where = [
            f"--jobid={theirs}",
            f"--nodelist={node}",
            *([] if place == "-" else [f"--het-group={place}"]),
        ]
        how = ("--overlap", "--nodes=1", "--ntasks=1", "--mpi=none", "--kill-on-bad-exit=0", "--export=PATH")
        self._run("srun", *how, *where, *self._python(archive))

    def look(self, key: str, archive: str) -> NoReturn:
        """Let the console's archive show what is left of a job of theirs."""
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
        """The folder of an attempt, which the console has made.  Raises No."""
        match = _KEY.fullmatch(key)
        if match is None:
            raise No("that is no job of the console's")
        found = Path(self._told["folder"])
        for part in ("", match["job"], match["attempt"]):
            found = found / part
            seen = found.lstat()
            if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != self._console:
                raise No(f"{found} is no folder of the console's")
        return found

    def _theirs(self, numbers: str, only: str = "") -> Sequence[str]:
        """Those of the numbers that are jobs of this user, sent by the console.  Raises No for none."""
        if _NUMBERS.fullmatch(numbers) is None:
            raise No("these are no numbers of jobs")
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
        return match is not None and folder == f"{self._told['folder']}/{match['job']}/{match['attempt']}"

    def _python(self, archive: str) -> Sequence[str]:
        if _ARCHIVE.fullmatch(archive) is None:
            raise No("that is no archive of the console's")
        return (self._told.get("python", "python3"), "-I", "-S", f"{self._told['folder']}/.node/{archive}")

    def _environment(self) -> dict[str, str]:
        who = self._who
        found = {"PATH": PATH, "LANG": "C.UTF-8", "SLURM_TIME_FORMAT": "%s", "HOME": who.pw_dir}
        found |= {"USER": who.pw_name, "LOGNAME": who.pw_name, "SHELL": who.pw_shell or "/bin/bash"}
        if self._told.get("configuration"):
            found["SLURM_CONF"] = self._told["configuration"]
        return found

    def _command(self, name: str) -> list[str]:
        own = (
            self._told.get("programs")
            if name in ("sbatch", "squeue", "scontrol", "scancel", "srun")
            else None
        )
        program = shutil.which(name, path=own or PATH)
        if program is None:
            raise No(f"there is no {name} in {own or PATH}")
        return [program]

    def _run(self, name: str, *arguments: str) -> NoReturn:
        """Become that program."""
        command = [*self._command(name), *arguments]
        os.execve(command[0], command, self._environment())


if __name__ == "__main__":
    main()

"""Cleanup of attempts: tombstones of their keys, and folders that the console can't remove itself.

A tombstone keeps a delayed submission from running a forgotten attempt again.

The console has rights on whatever is made there, unless the job takes them away, for example by a folder that
is closed to others.  Where only Slurm can act as that user (`jwt`), a small job of theirs removes it.  Until
then a note stands for it, which is retried; an admin is told of what stays.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from jobs.backends.base import NotSubmitted, Refused, Unknown, Unreachable
from jobs.backends.remote import attempts
from jobs.backends.slurm.client.rest.user_actions import TokenActions
from jobs.backends.slurm.config import SlurmConfig
from jobs.dialects.base import Refused as Unread
from jobs.dialects.document import Document
from jobs.dialects.sbatch.header import read
from jobs.node.folder_removal import remove_folder
from jobs.node.supervisor import checkpoints

FOLDER: Final = ".left"
NAME: Final = "job-console-remove"

SOON_S: Final = 60
"""The time between two tries, and LATER_S once a folder has been there for that long."""

LATER_S: Final = 3600
MAX_TRIED: Final = 10
"""So many are tried at a time."""

TRIES: Final = 3
"""So many jobs are submitted to remove one, LATER_S apart."""

SAME: Final = ("partition", "account", "qos", "reservation")
"""Options that such a job takes from the one whose folder it removes."""

_WORD: Final = re.compile(r"[A-Za-z0-9._,:@/+-]+")

SCRIPT: Final = Path(__file__).with_name("removal.sh").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Leftover:
    """A folder to remove: its user, since when, the options of its job, and how many jobs were submitted."""

    user: str
    since: float
    options: Mapping[str, str]
    tries: int = 0


def remove(config: SlurmConfig, key: str, user: str) -> None:
    """Remove an attempt's folder, now or later."""
    folder = attempts.attempt_folder(config.root, key)
    script = attempts.read_text(folder / "script")
    place = config.root / FOLDER
    if _is_gone(folder):
        _drop(folder.parent)
    elif not (place / key).exists():
        place.mkdir(mode=0o700, exist_ok=True)
        _submit_removal(config, key, Leftover(user, time.time(), _options(script) if script else {}))


def retry(config: SlurmConfig) -> None:
    """Retry the folders that are due."""
    due = ((at, note, left) for at, note, left in _notes(config) if time.time() >= _next(at, left))
    for _at, note, left in list(due)[:MAX_TRIED]:
        folder = attempts.attempt_folder(config.root, note.name)
        if _is_gone(folder):
            note.unlink(missing_ok=True)
            _drop(folder.parent)
        elif left.tries < TRIES and time.time() > left.since + left.tries * LATER_S:
            _submit_removal(config, note.name, left)
        else:
            attempts.write_text(note, json.dumps(asdict(left)))


def describe_leftovers(config: SlurmConfig) -> Iterator[str]:
    """Yield what an admin should know."""
    old = [(note.name, left) for _, note, left in _notes(config) if time.time() > left.since + LATER_S]
    if old:
        key, left = old[0]
        folder = attempts.attempt_folder(config.root, key)
        yield (
            f"The folders of {len(old)} jobs that were removed are still there, since what is in them is "
            f"their users' alone and no job of theirs has removed it: {folder} of "
            f"{left.user}, for one. Remove them as root."
        )


def _submit_removal(config: SlurmConfig, key: str, left: Leftover) -> None:
    """Submit a job of that user that removes it, and record that."""
    note = config.root / FOLDER / key
    attempts.write_text(note, json.dumps(asdict(replace(left, tries=left.tries + 1))))
    given = {
        **left.options,
        "job-name": NAME,
        "chdir": "/",
        "output": "/dev/null",
        "ntasks": "1",
        "mem": "64",
        "time": "60",
    }
    options = "\n".join(f"#SBATCH --{name}={value}" for name, value in given.items())
    folder = attempts.attempt_folder(config.root, key)
    script = f"#!/bin/bash\n{options}\nfolder={shlex.quote(str(folder))}\n{SCRIPT}"
    actions = TokenActions(config, left.user)
    with suppress(NotSubmitted, Refused, Unknown, Unreachable):
        actions.release([actions.submit(NAME, script)])


def _options(script: str) -> dict[str, str]:
    try:
        options = read(Document(script)).options(0)
    except Unread:
        return {}
    return {name: options[name] for name in SAME if _WORD.fullmatch(options.get(name, ""))}


def _is_gone(folder: Path) -> bool:
    with suppress(subprocess.CalledProcessError):
        remove_folder(folder)
    return not folder.exists()


def _drop(folder: Path) -> None:
    """Remove a job's folder, with its checkpoints, once no attempt is in it."""
    saved = folder / checkpoints.FOLDER
    with suppress(OSError, subprocess.CalledProcessError):
        if [path.name for path in folder.iterdir()] == [saved.name]:
            remove_folder(saved)
        folder.rmdir()


def _notes(config: SlurmConfig) -> list[tuple[float, Path, Leftover]]:
    """Return the notes with the time of their last try, earliest first."""
    place, found = config.root / FOLDER, []
    for note in place.iterdir() if place.is_dir() else ():
        with suppress(FileNotFoundError):  # another worker was there
            if not note.name.startswith("."):
                found.append((note.stat().st_mtime, note, Leftover(**json.loads(note.read_bytes()))))
    return sorted(found, key=lambda each: each[0])


def _next(at: float, left: Leftover) -> float:
    return at + (SOON_S if at < left.since + LATER_S else LATER_S)

"""What a job that ran as its owner left in its folder and the console can't remove.

The console's rights hold on whatever is made there, unless the job takes them away: by a folder for nobody
else, for one.  Where nobody but Slurm can act as that user (`jwt`), a small job of theirs removes it.  Until
then it stands in a note, and is looked after now and then; what stays is told to an admin.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from jobs.backends.base import NotSent, Refused, Unknown, Unreachable
from jobs.backends.slurm.client.rest.acting import ByToken
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.script import layout
from jobs.dialects.base import Refused as Unread
from jobs.dialects.document import Document
from jobs.dialects.sbatch.header import read
from jobs.node.clearing import clear

FOLDER: Final = ".left"
NAME: Final = "job-console-remove"

SOON_S: Final = 60
"""So long it is left alone before it is looked at again, and LATER_S once it has been there for that long."""

LATER_S: Final = 3600
MOST: Final = 10
"""So many are looked at in one go."""

TRIES: Final = 3
"""So many jobs are sent to remove one, LATER_S apart."""

SAME: Final = ("partition", "account", "qos", "reservation")
"""Options that such a job has of the one whose folder it is."""

_WORD: Final = re.compile(r"[A-Za-z0-9._,:@/+-]+")

SCRIPT: Final = """\
#!/bin/bash
{options}
cd {folder} || exit 0
find . -mindepth 1 -type d ! -perm -u=rwx -exec chmod u+rwx {{}} \\;
find . -mindepth 1 -delete
exit 0
"""


@dataclass(frozen=True, slots=True)
class Left:
    """One folder: whose it is, since when it should be gone, how its job was sent, and how often one was sent
    to remove it.
    """

    user: str
    since: float
    options: Mapping[str, str]
    tries: int = 0


def remove(config: SlurmConfig, key: str, user: str) -> None:
    """Remove an attempt's folder, now or by and by."""
    folder = layout.attempt(config.root, key)
    script = layout.text(folder / "script")
    place = config.root / FOLDER
    if _is_gone(folder) or (place / key).exists():
        return
    place.mkdir(mode=0o700, exist_ok=True)
    _send(config, key, Left(user, time.time(), _options(script) if script else {}))


def look_after(config: SlurmConfig) -> None:
    """Try again with what was left, as far as its time has come."""
    due = ((at, note, left) for at, note, left in _notes(config) if time.time() >= _next(at, left))
    for _at, note, left in list(due)[:MOST]:
        folder = layout.attempt(config.root, note.name)
        if _is_gone(folder):
            note.unlink(missing_ok=True)
            _drop(folder.parent)
        elif left.tries < TRIES and time.time() > left.since + left.tries * LATER_S:
            _send(config, note.name, left)
        else:
            layout.put(note, json.dumps(asdict(left)))


def told(config: SlurmConfig) -> Iterator[str]:
    """What an admin should know."""
    old = [(note.name, left) for _, note, left in _notes(config) if time.time() > left.since + LATER_S]
    if old:
        key, left = old[0]
        yield (
            f"The folders of {len(old)} jobs that were removed are still there, since what is in them is "
            f"their users' alone and no job of theirs has removed it: {layout.attempt(config.root, key)} of "
            f"{left.user}, for one. Remove them as root."
        )


def _send(config: SlurmConfig, key: str, left: Left) -> None:
    """Send a job of that user to remove it, and write that down."""
    note = config.root / FOLDER / key
    layout.put(note, json.dumps(asdict(replace(left, tries=left.tries + 1))))
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
    script = SCRIPT.format(options=options, folder=layout.attempt(config.root, key))
    acting = ByToken(config, left.user)
    with suppress(NotSent, Refused, Unknown, Unreachable):
        acting.release([acting.submit(NAME, script)])


def _options(script: str) -> dict[str, str]:
    try:
        said = read(Document(script)).options(0)
    except Unread:
        return {}
    return {name: said[name] for name in SAME if _WORD.fullmatch(said.get(name, ""))}


def _is_gone(folder: Path) -> bool:
    with suppress(subprocess.CalledProcessError):
        clear(folder)
    return not folder.exists()


def _drop(folder: Path) -> None:
    """A job's folder, once no attempt is in it."""
    with suppress(OSError):
        folder.rmdir()


def _notes(config: SlurmConfig) -> list[tuple[float, Path, Left]]:
    """When each was looked at last, longest ago first."""
    place, found = config.root / FOLDER, []
    for note in place.iterdir() if place.is_dir() else ():
        with suppress(FileNotFoundError):  # another worker was there
            if not note.name.startswith("."):
                found.append((note.stat().st_mtime, note, Left(**json.loads(note.read_bytes()))))
    return sorted(found, key=lambda each: each[0])


def _next(at: float, left: Left) -> float:
    return at + (SOON_S if at < left.since + LATER_S else LATER_S)

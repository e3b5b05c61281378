"""What a job that ran as its owner left in its folder and the console can't remove.

The console's rights hold on whatever is made there, unless the job takes them away: by a folder for nobody
else, for one.  Where nobody but Slurm can act as that user (`jwt`), a small job of theirs removes it.  Until
then it stands in a note, and is looked after now and then; what stays is told to an admin.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from jobs.backends.base import NotSent, Refused, Unknown, Unreachable
from jobs.backends.local.clearing import clear
from jobs.backends.slurm import layout
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.rest.acting import ByToken
from jobs.dialects.sbatch.header import read

FOLDER: Final = ".left"
NAME: Final = "job-console-remove"

SOON_S: Final = 60
"""So long it is left alone before it is looked at again, and LATER_S once it has been there for that long."""

LATER_S: Final = 3600
MOST: Final = 10
"""So many are looked at in one go."""

TRIES: Final = 3
"""So many jobs are sent to remove one."""

SAME: Final = ("partition", "account", "qos", "reservation")
"""Options that such a job has of the one whose folder it is."""

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
    for note in _notes(config)[:MOST]:
        if (left := _read(note)) is None or time.time() < _next(note, left):
            continue
        folder = layout.attempt(config.root, note.name)
        if _is_gone(folder):
            note.unlink(missing_ok=True)
            _drop(folder.parent)
        elif left.tries < TRIES:
            _send(config, note.name, left)
        else:
            note.touch()


def told(config: SlurmConfig) -> Iterator[str]:
    """What an admin should know."""
    old = [
        (note.name, left)
        for note in _notes(config)
        if (left := _read(note)) is not None and time.time() > left.since + LATER_S
    ]
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
    said = read(script).options(0)
    return {name: said[name] for name in SAME if name in said}


def _is_gone(folder: Path) -> bool:
    with suppress(subprocess.CalledProcessError):
        clear(folder)
    return not folder.exists()


def _drop(folder: Path) -> None:
    """A job's folder, once no attempt is in it."""
    with suppress(OSError):
        folder.rmdir()


def _notes(config: SlurmConfig) -> list[Path]:
    """Those that were looked at longest ago first."""
    place = config.root / FOLDER
    if not place.is_dir():
        return []
    found = [(path.stat().st_mtime, path) for path in place.iterdir() if not path.name.startswith(".")]
    return [path for _at, path in sorted(found)]


def _next(note: Path, left: Left) -> float:
    seen = note.stat().st_mtime
    return seen + (SOON_S if seen < left.since + LATER_S else LATER_S)


def _read(note: Path) -> Left | None:
    value = json.loads(layout.text(note) or "null")
    return Left(**value) if value else None

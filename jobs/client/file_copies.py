"""`cp`: files and folders to and from a job's folder, which may have ended; links are not followed."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from jobs.client.answers import Entry
from jobs.client.api import Console
from jobs.client.commands import find_job
from jobs.client.errors import ConsoleError
from jobs.client.failure import CommandFailure
from jobs.client.job_stream import Screen
from jobs.client.python_client import Client
from jobs.language import gettext as _
from jobs.language import ngettext


@dataclass(frozen=True, slots=True)
class JobPath:
    """A path below the working folder of a replica, which is chosen by the console where `role` is empty."""

    job: str
    path: str
    role: str
    index: int

    @property
    def name(self) -> str:
        """Return the last part of the path."""
        return PurePosixPath(self.path).name


def cp_command(console: Console, arguments: argparse.Namespace, screen: Screen) -> int:
    """Copy; the exit status."""
    sides = [_read(console, text, arguments.replica, screen) for text in (arguments.source, arguments.target)]
    with Client(console.server, console.token) as client:
        try:
            match sides:
                case [JobPath() as source, Path() as target]:
                    count = _fetch(client, source, target, screen)
                case [Path() as source, JobPath() as target]:
                    count = _send(client, source, target, screen)
                case _:
                    raise CommandFailure(_("Write one of the two as JOB:PATH."), 2)
        except (ConsoleError, OSError) as error:
            raise CommandFailure(str(error)) from error
    screen.now("")
    screen.say(ngettext("%(count)s file copied.", "%(count)s files copied.", count) % {"count": count})
    return 0


def _read(console: Console, text: str, replica: str | None, screen: Screen) -> JobPath | Path:
    """Return the place that an argument names: JOB:PATH where a colon comes before any slash."""
    job, colon, path = text.partition(":")
    if not colon or not job or "/" in job:
        return Path(text)
    role, _slash, index = (replica or "").rpartition("/")
    number = int(index) if index.isascii() and index.isdigit() else 0
    return JobPath(find_job(console, job, screen.say), path.strip("/").removeprefix("./"), role, number)


def _fetch(client: Client, source: JobPath, target: Path, screen: Screen) -> int:
    """Fetch a file, or a folder with what is in it; return the count of files."""
    if not client.has_folder(source.job, source.path, role=source.role, index=source.index):
        screen.now(source.path)
        place = target / source.name if target.is_dir() else target
        client.download(source.job, source.path, place, role=source.role, index=source.index)
        return 1
    around = target / source.name if target.is_dir() and source.name not in {"", "."} else target
    count = 0
    for found in _walk(client, source, source.path):
        place = around / PurePosixPath(found.path).relative_to(source.path)
        place.parent.mkdir(parents=True, exist_ok=True)
        screen.now(found.path)
        client.download(source.job, found.path, place, role=source.role, index=source.index)
        count += 1
    return count


def _walk(client: Client, source: JobPath, folder: str) -> Iterator[Entry]:
    """Yield the files below a folder.  Raises CommandFailure for names that lead out of it."""
    for found in client.list_files(source.job, folder, role=source.role, index=source.index):
        name = PurePosixPath(found.path).relative_to(folder)
        if len(name.parts) != 1 or name.parts[0] in {"..", "."} or "\0" in found.path:
            raise CommandFailure(
                _("Not copied, since its name leads elsewhere: %(name)r") % {"name": found.path}
            )
        if found.kind == "folder":
            yield from _walk(client, source, found.path)
        elif found.kind == "file":
            yield found


def _send(client: Client, source: Path, target: JobPath, screen: Screen) -> int:
    """Send a file, or a folder with what is in it; return the count of files."""
    if not source.is_dir():
        screen.now(str(source))
        into = client.has_folder(target.job, target.path, role=target.role, index=target.index)
        path = f"{target.path}/{source.name}".lstrip("/") if into else target.path
        client.upload(target.job, source, path, role=target.role, index=target.index)
        return 1
    around = PurePosixPath(target.path)
    if client.has_folder(target.job, target.path, role=target.role, index=target.index):
        around /= source.resolve().name
    count = 0
    for folder, _folders, names in os.walk(source):
        inner = around / Path(folder).relative_to(source).as_posix()
        client.make_folder(target.job, str(inner), role=target.role, index=target.index)
        files = (Path(folder, name) for name in sorted(names))
        for file in (each for each in files if each.is_file() and not each.is_symlink()):
            screen.now(str(file))
            client.upload(target.job, file, str(inner / file.name), role=target.role, index=target.index)
            count += 1
    return count

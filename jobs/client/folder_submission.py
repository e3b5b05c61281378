"""`run`: from a folder and a command to a job."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final
from urllib.parse import quote

import httpx

from jobs.client import folder_scan, job_building, upload
from jobs.client.api import Console, RequestRefused
from jobs.client.failure import CommandFailure
from jobs.client.folder_scan import FolderContent
from jobs.client.job_building import BaseFile, JobOptions
from jobs.client.job_stream import Screen
from jobs.client.submission import submit_file
from jobs.dialects.document import Document
from jobs.language import gettext as _
from jobs.language import ngettext
from jobs.trees import BadTree

TRIES: Final = 3
"""A folder that changes while it is sent is looked at again, so often."""

NAMED: Final = 5
"""So many of what is warned of are named."""

MIB: Final = 1024 * 1024


def run_command(console: Console, arguments: argparse.Namespace, screen: Screen) -> int:
    """Send the folder, and submit the command."""
    wanted = JobOptions(
        argv=arguments.command,
        name=arguments.name,
        gpus=arguments.gpus,
        gpu_type=arguments.gpu_type,
        cpus=arguments.cpus,
        memory=arguments.memory,
        image=arguments.image,
        env=job_building.variables(arguments.env),
        nodes=arguments.nodes,
        time=arguments.time,
        ports=arguments.port,
        tags=job_building.tags(arguments.tag),
        after=arguments.after,
    )
    base = _base(console, arguments)
    if base is None and not wanted.argv:
        raise CommandFailure(_("Specify a command: job-console run -- python train.py"), 2)
    folder = Path(arguments.folder)
    upload = "" if arguments.no_code else _send(console, folder, screen)
    file = (
        job_building.change_file(base, wanted, upload)
        if base
        else job_building.create_file(wanted, upload, folder)
    )
    body = {
        "file": file.document.text,
        "dialect": file.document.dialect,
        **{name: getattr(arguments, name) for name in ("cluster", "quota", "workspace")},
        "like": arguments.like,
        "template": (base.template or None) if base else None,
        "keep_original": base is not None,
    }
    return submit_file(console, body, arguments, screen)


def _base(console: Console, arguments: argparse.Namespace) -> BaseFile | None:
    """The job file to begin with, of a job or of a template."""
    if arguments.like and arguments.template:
        raise CommandFailure(_("Use either --like or --template, not both."), 2)
    if arguments.like:
        answer = console.get(f"/jobs/{arguments.like}/file")
        return BaseFile(Document(answer["text"], answer["dialect"]))
    if arguments.set and not arguments.template:
        raise CommandFailure(_("--set sets a template parameter; add --template."), 2)
    if arguments.template:
        return _of_template(console, arguments)
    return None


def _of_template(console: Console, arguments: argparse.Namespace) -> BaseFile:
    """A template, ID or ID@VERSION, filled in by the console that keeps it."""
    public_id, _at, version = arguments.template.partition("@")
    if not public_id or (version and not (version.isascii() and version.isdigit())):
        raise CommandFailure(_("Specify the template as ID or ID@VERSION."), 2)
    body = {"version": int(version) if version else None, "answers": job_building.answers(arguments.set)}
    try:
        answer = console.post(f"/templates/{quote(public_id, safe='')}/file", body)
    except RequestRefused as refused:
        if refused.status_code != httpx.codes.NOT_FOUND:
            raise
        names = ", ".join(each["id"] for each in console.get("/templates")["templates"])
        raise CommandFailure(_("Template not found. Available: %(names)s.") % {"names": names}, 2) from None
    return BaseFile(Document(answer["text"], answer["dialect"]), answer["template"])


def _send(console: Console, folder: Path, screen: Screen) -> str:
    if not folder.is_dir():
        raise CommandFailure(_("%(folder)s is not a folder.") % {"folder": folder}, 2)
    for number in range(TRIES):
        try:
            found = folder_scan.scan(folder)
        except (BadTree, OSError) as error:
            raise CommandFailure(_("Can't send the folder: %(why)s") % {"why": error}) from error
        if not number:
            _warn(found, screen)
        try:
            uri = upload.send(console, found, _Progress(screen))
        except upload.FileChanged:
            continue
        screen.now("")
        return uri
    raise CommandFailure(_("Files keep changing while they are being sent."))


class _Progress:
    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def __call__(self, sent: int, total: int) -> None:
        if self._screen.tty and total:
            params = {"sent": f"{sent / MIB:.1f}", "total": f"{total / MIB:.1f}"}
            self._screen.now(_("Sending files: %(sent)s of %(total)s MiB") % params)


def _warn(found: FolderContent, screen: Screen) -> None:
    """Name what a person would rather not have sent, or thinks was sent."""
    if found.secrets:
        screen.say(
            _("These files look like secrets and will be sent. To exclude them, list them in .jobignore:")
        )
        _name(found.secrets, screen)
    if found.large:
        screen.say(_("These files are large. If the job does not need them, list them in .jobignore:"))
        _name([f"{path} ({size / MIB:.0f} MiB)" for path, size in found.large], screen)
    whys = {
        "link_out": _("a link that points outside the folder"),
        "special": _("a pipe, a socket or a device"),
        "name": _("a name that can't be written as text"),
        "unreadable": _("no read permission"),
    }
    if found.left_out:
        screen.say(_("Not sent:"))
        _name([f"{path!r} ({whys[code]})" for path, code in found.left_out], screen)


def _name(lines: list[str], screen: Screen) -> None:
    for line in lines[:NAMED]:
        screen.say(f"  {line}")
    if more := len(lines) - NAMED if len(lines) > NAMED else 0:
        screen.say("  " + ngettext("and %(count)s more", "and %(count)s more", more) % {"count": more})

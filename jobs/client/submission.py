"""`run` and `submit`: from a folder or a job file to a job."""

from __future__ import annotations

import argparse
import sys
import uuid
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx

from jobs.client import describing, scanning, sending, sweeping
from jobs.client.api import Console, Refused
from jobs.client.describing import Base, Wanted
from jobs.client.following import report_submission
from jobs.client.scanning import Found
from jobs.client.trouble import Trouble
from jobs.client.watching import Screen
from jobs.dialects.base import Refused as BadFile
from jobs.dialects.document import Document
from jobs.dialects.source import decode
from jobs.language import gettext as _
from jobs.language import ngettext
from jobs.messages.problems import problem_message
from jobs.trees import BadTree

TRIES: Final = 3
"""A folder that changes while it is sent is looked at again, so often."""

NAMED: Final = 5
"""So many of what is warned of are named."""

MIB: Final = 1024 * 1024
STANDARD_INPUT: Final = "-"


def run(console: Console, arguments: argparse.Namespace, screen: Screen) -> int:
    """Send the folder, and submit the command."""
    wanted = Wanted(
        argv=arguments.command,
        name=arguments.name,
        gpus=arguments.gpus,
        gpu_type=arguments.gpu_type,
        cpus=arguments.cpus,
        memory=arguments.memory,
        image=arguments.image,
        env=describing.variables(arguments.env),
        after=arguments.after,
    )
    base = _base(console, arguments)
    if base is None and not wanted.argv:
        raise Trouble(_("Say what to run: job-console run -- python train.py"), 2)
    folder = Path(arguments.folder)
    upload = "" if arguments.no_code else _send(console, folder, screen)
    file = describing.changed(base, wanted, upload) if base else describing.new(wanted, upload, folder)
    body = {
        "file": file.document.text,
        "dialect": file.document.dialect,
        **{name: getattr(arguments, name) for name in ("cluster", "quota", "workspace")},
        "like": arguments.like,
        "template": (base.template or None) if base else None,
        "keep_original": base is not None,
    }
    return _submit_file(console, body, arguments, screen)


def _submit_file(
    console: Console, body: dict[str, Any], arguments: argparse.Namespace, screen: Screen
) -> int:
    """Submit a file: as the job that it is, or as the sweep."""
    key = str(uuid.uuid4())
    try:
        job = console.post("/jobs", body, headers={"Idempotency-Key": key})
    except Refused as refused:
        if not sweeping.is_meant(refused):
            raise
        return sweeping.submit(console, body, key, arguments, screen)
    return report_submission(console, job, arguments, screen)


def _base(console: Console, arguments: argparse.Namespace) -> Base | None:
    """The job file to begin with, of a job or of a template."""
    if arguments.like and arguments.template:
        raise Trouble(_("Either --like or --template."), 2)
    if arguments.like:
        told = console.get(f"/jobs/{arguments.like}/file")
        return Base(Document(told["text"], told["dialect"]))
    if arguments.set and not arguments.template:
        raise Trouble(_("--set answers a template's questions: --template says which."), 2)
    if arguments.template:
        return _of_template(console, arguments)
    return None


def _of_template(console: Console, arguments: argparse.Namespace) -> Base:
    """A template, ID or ID@VERSION, filled in by the console that keeps it."""
    public_id, _at, version = arguments.template.partition("@")
    if not public_id or (version and not (version.isascii() and version.isdigit())):
        raise Trouble(_("A template is named by its id, or by ID@VERSION."), 2)
    body = {"version": int(version) if version else None, "answers": describing.answers(arguments.set)}
    try:
        told = console.post(f"/templates/{quote(public_id, safe='')}/file", body)
    except Refused as refused:
        if refused.status_code != httpx.codes.NOT_FOUND:
            raise
        names = ", ".join(each["id"] for each in console.get("/templates")["templates"])
        raise Trouble(_("There is no such template. There are: %(names)s.") % {"names": names}, 2) from None
    return Base(Document(told["text"], told["dialect"]), told["template"])


def _send(console: Console, folder: Path, screen: Screen) -> str:
    if not folder.is_dir():
        raise Trouble(_("%(folder)s is no folder.") % {"folder": folder}, 2)
    for number in range(TRIES):
        try:
            found = scanning.scan(folder)
        except (BadTree, OSError) as error:
            raise Trouble(_("The folder can't be sent: %(why)s") % {"why": error}) from error
        if not number:
            _warn(found, screen)
        try:
            uri = sending.send(console, found, _Progress(screen))
        except sending.Changed:
            continue
        screen.now("")
        return uri
    raise Trouble(_("The files change faster than they can be sent."))


class _Progress:
    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def __call__(self, sent: int, total: int) -> None:
        if self._screen.tty and total:
            told = {"sent": f"{sent / MIB:.1f}", "total": f"{total / MIB:.1f}"}
            self._screen.now(_("Sending files: %(sent)s of %(total)s MiB") % told)


def _warn(found: Found, screen: Screen) -> None:
    """Name what a person would rather not have sent, or thinks was sent."""
    if found.secrets:
        screen.say(_("These look like secrets and are sent; name them in .jobignore if they should not be:"))
        _name(found.secrets, screen)
    if found.large:
        screen.say(_("These are large; name them in .jobignore if the job does not need them:"))
        _name([f"{path} ({size / MIB:.0f} MiB)" for path, size in found.large], screen)
    whys = {
        "link_out": _("a link that leads out of the folder"),
        "special": _("a pipe, a socket or a device"),
        "name": _("a name that can't be written as text"),
        "unreadable": _("you may not read it"),
    }
    if found.left_out:
        screen.say(_("These are left out:"))
        _name([f"{path!r} ({whys[code]})" for path, code in found.left_out], screen)


def _name(lines: list[str], screen: Screen) -> None:
    for line in lines[:NAMED]:
        screen.say(f"  {line}")
    if more := len(lines) - NAMED if len(lines) > NAMED else 0:
        screen.say("  " + ngettext("and %(count)s more", "and %(count)s more", more) % {"count": more})


def submit(console: Console, arguments: argparse.Namespace, screen: Screen) -> int:
    """A job file as it is: its problems are said by the console, with their places."""
    from_stdin = arguments.file == STANDARD_INPUT
    data = sys.stdin.buffer.read() if from_stdin else Path(arguments.file).read_bytes()
    places = {name: getattr(arguments, name) for name in ("dialect", "cluster", "quota", "workspace")}
    body = {"file": _decode(data, arguments.file), **places}
    return _submit_file(console, body, arguments, screen)


def _decode(data: bytes, name: str) -> str:
    try:
        return decode(data)
    except BadFile as refused:
        raise Trouble("\n".join(f"{name}: {problem_message(each)}" for each in refused.problems), 2) from None

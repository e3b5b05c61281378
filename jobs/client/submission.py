"""`run` and `submit`: from a folder or a job file to a job, or to a sweep that is followed to its end."""

from __future__ import annotations

import argparse
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx

from jobs.client import folder_scan, job_building, upload
from jobs.client.api import Console, RequestRefused
from jobs.client.failure import CommandFailure
from jobs.client.folder_scan import FolderContent
from jobs.client.job_building import BaseFile, JobOptions
from jobs.client.job_stream import FAILED_ANYHOW, Screen
from jobs.client.progress import INTERRUPTED, is_left_at_once, report_submission
from jobs.dialects.base import Refused as BadFile
from jobs.dialects.document import Document
from jobs.dialects.source import decode
from jobs.language import gettext as _
from jobs.language import ngettext
from jobs.messages.problems import problem_message
from jobs.states import TERMINAL, State
from jobs.trees import BadTree

TRIES: Final = 3
"""A folder that changes while it is sent is looked at again, so often."""

NAMED: Final = 5
"""So many of what is warned of are named."""

MIB: Final = 1024 * 1024
STANDARD_INPUT: Final = "-"
ARRAY: Final = "array_is_sweep"
SWEEP_FIELDS: Final = ("file", "dialect", "workspace", "cluster", "quota", "template")
PAUSE_S: Final = 2.0


def run(console: Console, arguments: argparse.Namespace, screen: Screen) -> int:
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
    return _submit_file(console, body, arguments, screen)


def _submit_file(
    console: Console, body: dict[str, Any], arguments: argparse.Namespace, screen: Screen
) -> int:
    """Submit a file: as the job that it is, or as the sweep."""
    key = str(uuid.uuid4())
    try:
        job = console.post("/jobs", body, headers={"Idempotency-Key": key})
    except RequestRefused as refused:
        if all(problem.get("code") != ARRAY for problem in refused.body.get("problems") or ()):
            raise
        return _submit_sweep(console, body, key, arguments, screen)
    return report_submission(console, job, arguments, screen)


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
        raise CommandFailure(
            "\n".join(f"{name}: {problem_message(each)}" for each in refused.problems), 2
        ) from None


def _submit_sweep(
    console: Console, body: Mapping[str, Any], key: str, arguments: argparse.Namespace, screen: Screen
) -> int:
    """Submit the file as a sweep, and follow it; the exit status."""
    sweep_body = {name: body.get(name) for name in SWEEP_FIELDS}
    sweep = console.post("/sweeps", sweep_body, headers={"Idempotency-Key": key})
    params = {
        "name": sweep["name"],
        "id": sweep["id"],
        "page": f"{console.server}/sweeps/{sweep['id']}",
        "jobs": _count_jobs(len(sweep["runs"])),
        "at_once": sweep["at_once"],
    }
    screen.say(_("%(name)s is sweep %(id)s: %(page)s") % params)
    screen.say(_("%(jobs)s, at most %(at_once)s at a time") % params)
    if is_left_at_once(sweep, arguments):
        return 0
    try:
        return _follow_sweep(console, sweep["id"], screen)
    except KeyboardInterrupt:
        screen.say("")
        screen.say(_("Sweep %(id)s is still running.") % params)
        return INTERRUPTED


def _count_jobs(count: int) -> str:
    return ngettext("%(count)s job", "%(count)s jobs", count) % {"count": count}


def _follow_sweep(console: Console, sweep: str, screen: Screen) -> int:
    """Tell the end of each; 0 when all have succeeded."""
    said: set[str] = set()
    while True:
        jobs = [run["job"] for run in console.get(f"/sweeps/{sweep}")["runs"]]
        ended = [job for job in jobs if State(job["state"]) in TERMINAL]
        for job in ended:
            if job["id"] not in said:
                params = {name: job[name] for name in ("name", "id", "state")} | {
                    "why": job["reason"]["message"]
                }
                screen.say(_("%(name)s (%(id)s) · %(state)s · %(why)s") % params)
                said.add(job["id"])
        if len(ended) == len(jobs):
            return 0 if all(job["state"] == State.SUCCEEDED for job in jobs) else FAILED_ANYHOW
        screen.now(_("Ended: %(ended)s of %(count)s") % {"ended": len(ended), "count": len(jobs)})
        time.sleep(PAUSE_S)

"""`submit`: from a job file to a job, or to a sweep that is followed to its end."""

from __future__ import annotations

import argparse
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from jobs.client.api import Console, RequestRefused
from jobs.client.failure import CommandFailure
from jobs.client.job_stream import FAILED_ANYHOW, Screen
from jobs.client.progress import INTERRUPTED, is_left_at_once, report_submission
from jobs.language import gettext as _
from jobs.language import ngettext
from jobs.states import TERMINAL, State

STANDARD_INPUT: Final = "-"
ARRAY: Final = "array_is_sweep"
SWEEP_FIELDS: Final = (
    *("file", "dialect", "workspace", "cluster", "quota", "template"),
    *("parameters", "at_once"),
)
PAUSE_S: Final = 2.0


def submit_command(console: Console, arguments: argparse.Namespace, screen: Screen) -> int:
    """A job file as it is: its problems are said by the console, with their places."""
    from_stdin = arguments.file == STANDARD_INPUT
    data = sys.stdin.buffer.read() if from_stdin else Path(arguments.file).read_bytes()
    places = {name: getattr(arguments, name) for name in ("dialect", "cluster", "quota", "workspace")}
    body = {"file": _decode(data, arguments.file), **places}
    if parameters := _sweep_parameters(arguments):
        sweep = {**body, "parameters": parameters, "at_once": arguments.at_once}
        return _submit_sweep(console, sweep, str(uuid.uuid4()), arguments, screen)
    return submit_file(console, body, arguments, screen)


def _sweep_parameters(arguments: argparse.Namespace) -> str:
    """Return the lines of a sweep as New job has them, "" where none is asked for."""
    settings = {name: getattr(arguments, name) for name in ("trials", "seed", "objective", "early_stop")}
    lines = [f"{name}: {value}" for name, value in settings.items() if value is not None]
    if not arguments.param and (lines or arguments.at_once):
        raise CommandFailure(_("A sweep needs parameters. Add --param NAME=VALUES."), 2)
    return "\n".join([*arguments.param, *lines])


def submit_file(console: Console, body: dict[str, Any], arguments: argparse.Namespace, screen: Screen) -> int:
    """Submit a file: as the job that it is, or as the sweep."""
    key = str(uuid.uuid4())
    try:
        job = console.post("/jobs", body, headers={"Idempotency-Key": key})
    except RequestRefused as refused:
        if all(problem.get("code") != ARRAY for problem in refused.body.get("problems") or ()):
            raise
        return _submit_sweep(console, body, key, arguments, screen)
    return report_submission(console, job, arguments, screen)


def _decode(data: bytes, name: str) -> str:
    """Return the text of a job file; encodings other than UTF-8 are left to the dialects' own reader."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return _decode_other(data, name)


def _decode_other(data: bytes, name: str) -> str:
    from jobs.dialects.base import Refused  # noqa: PLC0415 dialects take longer than everything else here
    from jobs.dialects.source import decode  # noqa: PLC0415
    from jobs.messages.problems import problem_message  # noqa: PLC0415

    try:
        return decode(data)
    except Refused as refused:
        raise CommandFailure(
            "\n".join(f"{name}: {problem_message(each)}" for each in refused.problems), 2
        ) from None


def _submit_sweep(
    console: Console, body: Mapping[str, Any], key: str, arguments: argparse.Namespace, screen: Screen
) -> int:
    """Submit the file as a sweep, and follow it; the exit status."""
    sweep_body = {name: body[name] for name in SWEEP_FIELDS if name in body}
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

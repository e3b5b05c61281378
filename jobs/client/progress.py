"""Following what was submitted to its end, unless it is left; and Ctrl-C meanwhile."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from jobs.client.api import Console
from jobs.client.job_stream import Screen, Watch, exit_code
from jobs.language import gettext as _
from jobs.states import TERMINAL, State

INTERRUPTED: Final = 130
TIMED_OUT: Final = 124
"""As `timeout` of the GNU core utilities has it."""

FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 5.0


def report_submission(
    console: Console, job: dict[str, Any], arguments: argparse.Namespace, screen: Screen
) -> int:
    """Report the job that was made, and follow it unless it is to be left at once."""
    for note in job.get("notes") or ():
        screen.say(_("note: %(message)s") % {"message": note["message"]})
    page = f"{console.server}/jobs/{job['id']}"
    screen.say(_("%(name)s is job %(id)s: %(page)s") % {"name": job["name"], "id": job["id"], "page": page})
    if is_left_at_once(job, arguments):
        return 0
    return follow(console, job["id"], first_log(console, job["id"]), screen)


def first_log(console: Console, job: str) -> str:
    """The first replica, by the job's own file: there may be no replicas yet."""
    return f"{console.get(f'/jobs/{job}/file')['roles'][0]}/0"


def follow(console: Console, job: str, log: str, screen: Screen, *, timestamps: bool = False) -> int:
    """Show a replica's log until the job has ended; return the command's exit status."""
    watch = Watch(console, screen, job, log, timestamps=timestamps)
    while True:
        try:
            ended = watch.to_the_end()
        except KeyboardInterrupt:
            decided = _ask(console, job, screen)
            if decided is not None:
                return decided
        else:
            tell_end(ended, screen)
            return exit_code(ended)


def wait_for(
    console: Console, jobs: Iterable[str], screen: Screen, limit_s: float | None = None
) -> list[dict[str, Any]]:
    """Wait until jobs have ended, for at most `limit_s`; tell each end, return those that have."""
    deadline = math.inf if limit_s is None else time.monotonic() + limit_s
    ended: dict[str, dict[str, Any]] = {}
    wanted = list(dict.fromkeys(jobs))
    pause = FIRST_PAUSE_S
    while True:
        for job in (each for each in wanted if each not in ended):
            found = console.get(f"/jobs/{job}")
            if State(found["state"]) in TERMINAL:
                ended[job] = found
                tell_end(found, screen)
        left = deadline - time.monotonic()
        if len(ended) == len(wanted) or left <= 0:
            return [ended[job] for job in wanted if job in ended]
        time.sleep(min(pause, left))
        pause = min(1.5 * pause, LONGEST_PAUSE_S)


def tell_end(job: dict[str, Any], screen: Screen) -> None:
    """Report the state of a job."""
    params = {"name": job["name"], "state": job["state"], "why": job["reason"]["message"]}
    screen.say(_("%(name)s · %(state)s · %(why)s") % params)


def is_left_at_once(made: Mapping[str, Any], arguments: argparse.Namespace) -> bool:
    """Print what was submitted: all of it where that is asked for, else its id where it is not followed;
    whether it is not.
    """
    if arguments.json:
        print(json.dumps(made, ensure_ascii=False))  # noqa: T201
    elif arguments.detach:
        print(made["id"])  # noqa: T201
    return bool(arguments.detach)


def _ask(console: Console, job: str, screen: Screen) -> int | None:
    """The command's exit status; None to go on.

    Where nobody can be asked, and at a second Ctrl-C, the job is left running.
    """
    if not sys.stdin.isatty():
        return _leave(job, screen)
    try:
        screen.say("")
        screen.say(_("Stop the job [s], leave it running [l], or keep following [Enter]?"))
        answer = input("> ").strip().lower()
    except (KeyboardInterrupt, EOFError):
        return _leave(job, screen)
    if answer in {"s", "stop"}:
        console.post(f"/jobs/{job}/stop", None)
        return None  # its end is followed
    return _leave(job, screen) if answer in {"l", "leave", "d"} else None


def _leave(job: str, screen: Screen) -> int:
    screen.say(_("The job is still running. To follow again: job-console logs -f %(job)s") % {"job": job})
    return INTERRUPTED

"""Whether what was submitted is followed; and Ctrl-C while a job is: stop it, leave it running, or go on."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from typing import Any, Final

from jobs.client.api import Console
from jobs.client.watching import Screen
from jobs.language import gettext as _

INTERRUPTED: Final = 130


def at_once(made: Mapping[str, Any], arguments: argparse.Namespace) -> bool:
    """Print what was submitted: all of it where that is asked for, else its id where it is not followed;
    whether it is not.
    """
    if arguments.json:
        print(json.dumps(made, ensure_ascii=False))  # noqa: T201
    elif arguments.detach:
        print(made["id"])  # noqa: T201
    return bool(arguments.detach)


def ask(console: Console, job: str, screen: Screen) -> int | None:
    """The command's exit status; None to go on.

    Where nobody can be asked, and at a second Ctrl-C, the job is left running.
    """
    if not sys.stdin.isatty():
        return _left(job, screen)
    try:
        screen.say("")
        screen.say(_("Stop the job [s], leave it running [l], or go on following it [Enter]?"))
        answer = input("> ").strip().lower()
    except (KeyboardInterrupt, EOFError):
        return _left(job, screen)
    if answer in {"s", "stop"}:
        console.post(f"/jobs/{job}/stop", None)
        return None  # its end is followed
    return _left(job, screen) if answer in {"l", "leave", "d"} else None


def _left(job: str, screen: Screen) -> int:
    screen.say(_("The job goes on. To follow it again: job-console logs -f %(job)s") % {"job": job})
    return INTERRUPTED

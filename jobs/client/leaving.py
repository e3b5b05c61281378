"""Ctrl-C while a job is followed: stop it, leave it running, or go on following."""

from __future__ import annotations

import sys
from typing import Final

from django.utils.translation import gettext as _

from jobs.client.api import Console
from jobs.client.watching import Screen

INTERRUPTED: Final = 130


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

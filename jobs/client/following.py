"""From a job that was submitted to its end: what is told of it meanwhile, and Ctrl-C."""

from __future__ import annotations

import argparse
from typing import Any

from jobs.client import leaving
from jobs.client.api import Console
from jobs.client.watching import Screen, Watch, exit_code
from jobs.language import gettext as _


def report_submission(
    console: Console, job: dict[str, Any], arguments: argparse.Namespace, screen: Screen
) -> int:
    """Say which job was made, and follow it unless it is to be left at once."""
    for note in job.get("notes") or ():
        screen.say(_("note: %(message)s") % {"message": note["message"]})
    page = f"{console.server}/jobs/{job['id']}"
    screen.say(_("%(name)s is job %(id)s: %(page)s") % {"name": job["name"], "id": job["id"], "page": page})
    if leaving.at_once(job, arguments):
        return 0
    return follow(console, job["id"], first_log(console, job["id"]), screen)


def first_log(console: Console, job: str) -> str:
    """The first replica, by the job's own file: there may be no replicas yet."""
    return f"{console.get(f'/jobs/{job}/file')['roles'][0]}/0"


def follow(console: Console, job: str, log: str, screen: Screen) -> int:
    """Show a replica's log until the job has ended; return the command's exit status."""
    watch = Watch(console, screen, job, log)
    while True:
        try:
            ended = watch.to_the_end()
        except KeyboardInterrupt:
            decided = leaving.ask(console, job, screen)
            if decided is not None:
                return decided
        else:
            tell_end(ended, screen)
            return exit_code(ended)


def tell_end(job: dict[str, Any], screen: Screen) -> None:
    """Say how a job stands."""
    told = {"name": job["name"], "state": job["state"], "why": job["reason"]["message"]}
    screen.say(_("%(name)s · %(state)s · %(why)s") % told)

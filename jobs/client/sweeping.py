"""A job file for many jobs: submitted as the sweep that it is, and followed until all of them have ended."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import Any, Final

from jobs.client import leaving
from jobs.client.api import Console, Refused
from jobs.client.watching import FAILED_ANYHOW, Screen
from jobs.language import gettext as _
from jobs.language import ngettext
from jobs.states import TERMINAL, State

ARRAY: Final = "array_is_sweep"
FIELDS: Final = ("file", "dialect", "workspace", "cluster", "quota", "template")
PAUSE_S: Final = 2.0


def is_meant(refused: Refused) -> bool:
    """Whether the console takes the file for many jobs and not for one."""
    return any(problem.get("code") == ARRAY for problem in refused.body.get("problems") or ())


def submit(
    console: Console, body: Mapping[str, Any], key: str, arguments: argparse.Namespace, screen: Screen
) -> int:
    """Submit the file as a sweep, and follow it; the exit status."""
    asked = {name: body.get(name) for name in FIELDS}
    sweep = console.post("/sweeps", asked, headers={"Idempotency-Key": key})
    told = {
        "name": sweep["name"],
        "id": sweep["id"],
        "page": f"{console.server}/sweeps/{sweep['id']}",
        "jobs": _jobs(len(sweep["runs"])),
        "at_once": sweep["at_once"],
    }
    screen.say(_("%(name)s is sweep %(id)s: %(page)s") % told)
    screen.say(_("%(jobs)s, at most %(at_once)s at a time") % told)
    if leaving.at_once(sweep, arguments):
        return 0
    try:
        return _follow(console, sweep["id"], screen)
    except KeyboardInterrupt:
        screen.say("")
        screen.say(_("Sweep %(id)s goes on.") % told)
        return leaving.INTERRUPTED


def _jobs(count: int) -> str:
    return ngettext("%(count)s job", "%(count)s jobs", count) % {"count": count}


def _follow(console: Console, sweep: str, screen: Screen) -> int:
    """Tell the end of each; 0 when all have succeeded."""
    said: set[str] = set()
    while True:
        jobs = [run["job"] for run in console.get(f"/sweeps/{sweep}")["runs"]]
        ended = [job for job in jobs if State(job["state"]) in TERMINAL]
        for job in ended:
            if job["id"] not in said:
                told = {name: job[name] for name in ("name", "id", "state")} | {
                    "why": job["reason"]["message"]
                }
                screen.say(_("%(name)s (%(id)s) · %(state)s · %(why)s") % told)
                said.add(job["id"])
        if len(ended) == len(jobs):
            return 0 if all(job["state"] == State.SUCCEEDED for job in jobs) else FAILED_ANYHOW
        screen.now(_("Ended: %(ended)s of %(count)s") % {"ended": len(ended), "count": len(jobs)})
        time.sleep(PAUSE_S)

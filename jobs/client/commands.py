"""What each command does."""

from __future__ import annotations

import argparse
import getpass
import importlib
import json
import sys
import uuid
from typing import Final

import httpx

from jobs.client import login
from jobs.client.api import Console, Refused
from jobs.client.following import first_log, follow, report_submission, tell_end
from jobs.client.login import Login
from jobs.client.naming import find
from jobs.client.trouble import Trouble
from jobs.client.watching import Screen
from jobs.language import gettext as _

SUBMISSION: Final = "jobs.client.submission"
"""What is only loaded to submit: it knows job files."""

INTERRUPTED: Final = 130


def run(name: str, arguments: argparse.Namespace) -> int:
    """Run a command; its exit status."""
    screen = Screen()
    try:
        if name == "login":
            return _login(arguments, screen)
        with Console(login.find(arguments.server), screen.say) as console:
            _find_jobs(console, arguments, screen)
            if name in _SUBMITTING:
                return int(getattr(importlib.import_module(SUBMISSION), name)(console, arguments, screen))
            return int(_COMMANDS[name](console, arguments, screen))
    except Trouble as trouble:
        screen.say(str(trouble))
        return trouble.status
    except KeyboardInterrupt:
        screen.say("")
        return INTERRUPTED


def _find_jobs(console: Console, arguments: argparse.Namespace, screen: Screen) -> None:
    """Put ids where jobs are named."""
    for field in ("job", "like"):
        if named := getattr(arguments, field, None):
            setattr(arguments, field, find(console, named, screen.say))
    if named := getattr(arguments, "after", None):
        arguments.after = [find(console, each, screen.say) for each in named]


def _login(arguments: argparse.Namespace, screen: Screen) -> int:
    """The token is read from the terminal without being shown, or from standard input: never an argument."""
    server = login.address(arguments.url)
    screen.say(_("Make a token in Settings of %(server)s, with read, submit and stop.") % {"server": server})
    token = getpass.getpass(_("Token: ")) if sys.stdin.isatty() else sys.stdin.readline()
    made = Login(server, token.strip())
    try:
        with Console(made, screen.say) as console:
            answer = console.http.get("/jobs", params={"limit": 1})
    except httpx.TransportError as error:
        told = {"server": server, "why": str(error)}
        raise Trouble(_("%(server)s does not answer: %(why)s") % told) from error
    if answer.is_error:
        raise Refused(answer)
    screen.say(_("Kept in %(path)s.") % {"path": login.keep(made)})
    return 0


def _list(console: Console, arguments: argparse.Namespace, screen: Screen) -> int:
    owner = None if arguments.all else "me"
    jobs = console.get("/jobs", owner=owner, limit=max(1, arguments.limit))["jobs"]
    if arguments.json:
        print(json.dumps(jobs, ensure_ascii=False))  # noqa: T201
        return 0
    rows = [(_("ID"), _("STATE"), _("CREATED"), _("NAME"), _("OWNER"))]
    rows += [
        (job["id"], job["state"], job["created_at"][:16].replace("T", " "), job["name"], job["owner"])
        for job in jobs
    ]
    for id_, state, created, name, owner in rows:
        columns = (f"{id_:<12}", f"{state:<10}", f"{created:<16}", f"{name:<24}" if arguments.all else name)
        print("  ".join([*columns, *([owner] if arguments.all else [])]))  # noqa: T201
    return 0


def _status(console: Console, arguments: argparse.Namespace, screen: Screen) -> int:
    job = console.get(f"/jobs/{arguments.job}")
    if arguments.json:
        print(json.dumps(job, ensure_ascii=False))  # noqa: T201
        return 0
    print(f"{job['name']} ({job['id']})")  # noqa: T201
    print(f"{job['state']} · {job['reason']['message']}")  # noqa: T201
    print(f"{job['owner']} · {job['workspace']} · {job['cluster']} · {job['quota']}")  # noqa: T201
    for task in job["tasks"] or ():
        code = "" if task["exit_code"] is None else f"  {task['exit_code']}"
        print(f"  {task['role']}/{task['index']}  {task['state']}  {task['node']}{code}")  # noqa: T201
        for endpoint in task["endpoints"]:
            where = endpoint["url"] or f"{endpoint['host']}:{endpoint['port']}"
            print(f"    {endpoint['label']}: {where}")  # noqa: T201
    return 0


def _logs(console: Console, arguments: argparse.Namespace, screen: Screen) -> int:
    log = arguments.replica or first_log(console, arguments.job)
    if arguments.follow:
        return follow(console, arguments.job, log, screen)
    role, _slash, index = log.rpartition("/")
    offset, state = 0, "open"
    while state == "open":
        response = console.http.get(
            f"/jobs/{arguments.job}/logs", params={"role": role, "index": index, "offset": offset}
        )
        if response.is_error:
            raise Refused(response)
        sys.stdout.buffer.write(response.content)
        if not response.content:
            break
        offset, state = int(response.headers["X-Next-Offset"]), response.headers["X-State"]
        if state != "open" and offset < int(response.headers.get("X-Size", offset)):
            state = "open"
    sys.stdout.flush()
    return 0


def _stop(console: Console, arguments: argparse.Namespace, screen: Screen) -> int:
    return _change(console, arguments, screen, "stop")


def _hold(console: Console, arguments: argparse.Namespace, screen: Screen) -> int:
    return _change(console, arguments, screen, "hold", {"reason": arguments.reason})


def _release(console: Console, arguments: argparse.Namespace, screen: Screen) -> int:
    return _change(console, arguments, screen, "release")


def _change(
    console: Console, arguments: argparse.Namespace, screen: Screen, action: str, body: object = None
) -> int:
    job = console.post(f"/jobs/{arguments.job}/{action}", body)
    if arguments.json:
        print(json.dumps(job, ensure_ascii=False))  # noqa: T201
    else:
        tell_end(job, screen)
    return 0


def _again(console: Console, arguments: argparse.Namespace, screen: Screen) -> int:
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    query = "?second_copy=true" if arguments.second_copy else ""
    job = console.post(f"/jobs/{arguments.job}/again{query}", None, headers=headers)
    return report_submission(console, job, arguments, screen)


_COMMANDS: Final = {
    "list": _list,
    "status": _status,
    "logs": _logs,
    "stop": _stop,
    "hold": _hold,
    "release": _release,
    "again": _again,
}

_SUBMITTING: Final = frozenset({"run", "submit"})

"""The commands that talk to a console."""

from __future__ import annotations

import argparse
import getpass
import importlib
import json
import re
import sys
import uuid
from collections.abc import Callable
from functools import partial
from typing import Final

import httpx

from jobs.client import login
from jobs.client.api import Console, RequestRefused, Tell
from jobs.client.failure import CommandFailure
from jobs.client.job_stream import Screen
from jobs.client.login import Login
from jobs.client.progress import INTERRUPTED, first_log, follow, report_submission, tell_end
from jobs.language import gettext as _
from jobs.language import ngettext

SUBMISSION: Final = "jobs.client.submission"
"""The module of `run` and `submit`, which knows job files and is imported for them alone."""

MOST_NAMESAKES: Final = 100
_JOB_ID: Final = re.compile(r"[a-z0-9]{12}")


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
    except CommandFailure as trouble:
        screen.say(str(trouble))
        return trouble.status
    except KeyboardInterrupt:
        screen.say("")
        return INTERRUPTED


def _find_jobs(console: Console, arguments: argparse.Namespace, screen: Screen) -> None:
    """Put ids where jobs are named."""
    for field in ("job", "like"):
        if named := getattr(arguments, field, None):
            setattr(arguments, field, _find_job(console, named, screen.say))
    if named := getattr(arguments, "after", None):
        arguments.after = [_find_job(console, each, screen.say) for each in named]


def _find_job(console: Console, text: str, tell: Tell) -> str:
    """Return the id of a job: that one, or my newest of that name.  Raises CommandFailure, RequestRefused.

    Which one it is is told where several have the name.
    """
    if _JOB_ID.fullmatch(text) and _is_there(console, text):
        return text
    rows = console.get("/jobs", owner="me", name=text, limit=MOST_NAMESAKES)["jobs"]
    found = [row["id"] for row in rows if row["name"] == text]
    if not found:
        raise CommandFailure(_("No job with ID or name %(text)s.") % {"text": text})
    if len(found) > 1:
        words = ngettext(
            "%(count)s job is called %(name)s; the newest is %(id)s.",
            "%(count)s jobs are called %(name)s; the newest is %(id)s.",
            len(found),
        )
        tell(words % {"count": len(found), "name": text, "id": found[0]})
    return str(found[0])


def _is_there(console: Console, job: str) -> bool:
    """Tell whether there is a job of that id, as far as I may know."""
    try:
        console.get(f"/jobs/{job}")
    except RequestRefused as refused:
        return refused.status_code != httpx.codes.NOT_FOUND
    return True


def _login(arguments: argparse.Namespace, screen: Screen) -> int:
    """The token is read from the terminal without being shown, or from standard input: never an argument."""
    server = login.address(arguments.url)
    screen.say(
        _("Create a token in the settings of %(server)s, with the scopes read, submit and stop.")
        % {"server": server}
    )
    token = getpass.getpass(_("Token: ")) if sys.stdin.isatty() else sys.stdin.readline()
    made = Login(server, token.strip())
    try:
        with Console(made, screen.say) as console:
            answer = console.http.get("/jobs", params={"limit": 1})
    except httpx.TransportError as error:
        params = {"server": server, "why": str(error)}
        raise CommandFailure(_("%(server)s is not responding: %(why)s") % params) from error
    if answer.is_error:
        raise RequestRefused(answer)
    screen.say(_("Saved in %(path)s.") % {"path": login.keep(made)})
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
    for replica in job["tasks"] or ():
        code = "" if replica["exit_code"] is None else f"  {replica['exit_code']}"
        print(f"  {replica['role']}/{replica['index']}  {replica['state']}  {replica['node']}{code}")  # noqa: T201
        for endpoint in replica["endpoints"]:
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
            raise RequestRefused(response)
        sys.stdout.buffer.write(response.content)
        if not response.content:
            break
        offset, state = int(response.headers["X-Next-Offset"]), response.headers["X-State"]
        if state != "open" and offset < int(response.headers.get("X-Size", offset)):
            state = "open"
    sys.stdout.flush()
    return 0


def _change(console: Console, arguments: argparse.Namespace, screen: Screen, action: str) -> int:
    body = {"reason": arguments.reason} if action == "hold" else None
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


_COMMANDS: Final[dict[str, Callable[..., int]]] = {
    "list": _list,
    "status": _status,
    "logs": _logs,
    **{action: partial(_change, action=action) for action in ("stop", "hold", "release")},
    "again": _again,
}

_SUBMITTING: Final = frozenset({"run", "submit"})

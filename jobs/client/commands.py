"""The commands that talk to a console."""

from __future__ import annotations

import argparse
import getpass
import importlib
import json
import re
import sys
import unicodedata
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final
from urllib.parse import urlencode

import httpx

from jobs.client import login, replica_logs
from jobs.client.api import Console, RequestRefused, Tell
from jobs.client.durations import parse_duration
from jobs.client.failure import FAILED, CommandFailure
from jobs.client.job_stream import Screen, exit_code
from jobs.client.login import Login
from jobs.client.progress import (
    INTERRUPTED,
    TIMED_OUT,
    first_log,
    follow,
    report_submission,
    tell_end,
    wait_for,
)
from jobs.language import gettext as _
from jobs.language import ngettext

_MODULES: Final = {
    "run": "jobs.client.folder_submission",
    "submit": "jobs.client.submission",
    "exec": "jobs.client.remote_commands",
    "cp": "jobs.client.file_copies",
}
"""Modules that are imported for one command alone; their function is called as the command is."""

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
            if module := _MODULES.get(name):
                command = getattr(importlib.import_module(module), f"{name}_command")
                return int(command(console, arguments, screen))
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
            setattr(arguments, field, find_job(console, named, screen.say))
    for field in ("after", "jobs"):
        if named := getattr(arguments, field, None):
            setattr(arguments, field, [find_job(console, each, screen.say) for each in named])


def find_job(console: Console, text: str, tell: Tell) -> str:
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
        _("Create a token in the settings of %(server)s, with the scopes read, submit, stop and exec.")
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
    query = " ".join(arguments.query) or None
    most = max(1, arguments.limit)
    answer = console.get("/jobs", q=query, owner=owner, state=arguments.state, limit=most)
    jobs = answer["jobs"]
    while len(jobs) < most and answer["next"]:  # a search that goes on
        answer = console.call("GET", answer["next"])
        jobs += answer["jobs"][: most - len(jobs)]
    if arguments.json:
        return _print_json(jobs)
    heads = [
        _("ID"),
        _("STATE"),
        _("CREATED"),
        _("NAME"),
        *([_("OWNER")] if arguments.all else []),
        _("REASON"),
    ]
    rows = [
        [job["id"], job["state"], job["created_at"][:16].replace("T", " "), job["name"]]
        + ([job["owner"]] if arguments.all else [])
        + [job["reason"]["message"].partition("\n")[0]]
        for job in jobs
    ]
    _print_table([heads, *rows])
    return 0


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)]
        print("  ".join(cells).rstrip())  # noqa: T201


def _width(text: str) -> int:
    """Return the columns of a terminal that a text takes."""
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)


def _print_json(value: object) -> int:
    print(json.dumps(value, ensure_ascii=False))  # noqa: T201
    return 0


def _status(console: Console, arguments: argparse.Namespace, screen: Screen) -> int:
    job = console.get(f"/jobs/{arguments.job}")
    if arguments.json:
        return _print_json(job)
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
    if arguments.all:
        wanted = {"following": arguments.follow, "timestamps": arguments.timestamps}
        return replica_logs.print_all(console, arguments.job, screen, **wanted)
    log = arguments.replica or first_log(console, arguments.job)
    if arguments.follow:
        return follow(console, arguments.job, log, screen, timestamps=arguments.timestamps)
    for piece in replica_logs.read(console, arguments.job, log, timestamps=arguments.timestamps):
        sys.stdout.buffer.write(piece)
    sys.stdout.flush()
    return 0


def _wait(console: Console, arguments: argparse.Namespace, screen: Screen) -> int:
    """The exit status is that of the first job that did not succeed."""
    limit = parse_duration(arguments.timeout) if arguments.timeout else None
    ended = wait_for(console, arguments.jobs, screen, limit)
    if arguments.json:
        _print_json(ended)
    if len(ended) < len(set(arguments.jobs)):
        return TIMED_OUT
    return next((code for code in map(exit_code, ended) if code), 0)


def _delete(console: Console, arguments: argparse.Namespace, screen: Screen) -> int:
    if not arguments.yes and sys.stdin.isatty():
        count = len(arguments.jobs)
        screen.say(
            ngettext("Delete %(count)s job? [y/N]", "Delete %(count)s jobs? [y/N]", count) % {"count": count}
        )
        if input("> ").strip().lower() not in {"y", "yes"}:
            return FAILED
    for job in dict.fromkeys(arguments.jobs):
        console.call("DELETE", f"/jobs/{job}")
        if not arguments.json:
            screen.say(_("%(job)s deleted.") % {"job": job})
    return _print_json(list(dict.fromkeys(arguments.jobs))) if arguments.json else 0


def _keep(console: Console, arguments: argparse.Namespace, screen: Screen) -> int:
    if arguments.as_dataset:
        query = urlencode({"path": arguments.path})
        answer = console.post(f"/jobs/{arguments.job}/files/dataset?{query}", {"name": arguments.as_dataset})
        if arguments.json:
            return _print_json(answer)
        screen.say(_("Copying the folder into dataset %(id)s.") % {"id": answer["id"]})
        return 0
    answer = console.post(f"/jobs/{arguments.job}/files/keep", None)
    if arguments.json:
        return _print_json(answer)
    until = answer["kept_until"][:16].replace("T", " ")
    screen.say(_("The files are kept until %(until)s UTC.") % {"until": until})
    return 0


def _change(console: Console, arguments: argparse.Namespace, screen: Screen, action: str) -> int:
    body = {"reason": arguments.reason} if action == "hold" else None
    job = console.post(f"/jobs/{arguments.job}/{action}", body)
    if arguments.json:
        return _print_json(job)
    tell_end(job, screen)
    return 0


def _again(console: Console, arguments: argparse.Namespace, screen: Screen) -> int:
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    query = {
        **({"second_copy": "true"} if arguments.second_copy else {}),
        **({"memory": "more"} if arguments.more_memory else {}),
    }
    job = console.post(f"/jobs/{arguments.job}/again?{urlencode(query)}", None, headers=headers)
    return report_submission(console, job, arguments, screen)


_COMMANDS: Final[dict[str, Callable[..., int]]] = {
    "list": _list,
    "status": _status,
    "logs": _logs,
    "wait": _wait,
    "delete": _delete,
    "keep": _keep,
    **{action: partial(_change, action=action) for action in ("stop", "hold", "release")},
    "again": _again,
}

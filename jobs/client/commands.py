"""What each command does."""

from __future__ import annotations

import argparse
import getpass
import json
import sys
import uuid
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from jobs.client import describing, leaving, login, scanning, sending, sweeping
from jobs.client.api import Console, Refused
from jobs.client.describing import Base, Wanted
from jobs.client.login import Login
from jobs.client.scanning import Found
from jobs.client.trouble import Trouble
from jobs.client.watching import Screen, Watch, exit_code
from jobs.dialects.base import Refused as BadFile
from jobs.dialects.source import decode
from jobs.messages.problems import problem_message
from jobs.trees import BadTree

TRIES: Final = 3
"""A folder that changes while it is sent is looked at again, so often."""

NAMED: Final = 5
"""So many of what is warned of are named."""

MIB: Final = 1024 * 1024
STANDARD_INPUT: Final = "-"
INTERRUPTED: Final = 130


def run(name: str, arguments: argparse.Namespace) -> int:
    """Run a command; its exit status."""
    screen = Screen()
    try:
        if name == "login":
            return _login(arguments, screen)
        with Console(login.find(arguments.server), screen.say) as console:
            return int(_COMMANDS[name](console, arguments, screen))
    except Trouble as trouble:
        screen.say(str(trouble))
        return trouble.status
    except KeyboardInterrupt:
        screen.say("")
        return INTERRUPTED


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


# --- run -------------------------------------------------------------------------------------------------


def _run(console: Console, arguments: argparse.Namespace, screen: Screen) -> int:
    wanted = Wanted(
        argv=arguments.command,
        name=arguments.name,
        gpus=arguments.gpus,
        gpu_type=arguments.gpu_type,
        cpus=arguments.cpus,
        memory=arguments.memory,
        image=arguments.image,
        env=describing.variables(arguments.env),
        after=arguments.after,
    )
    base = _base(console, arguments)
    if base is None and not wanted.argv:
        raise Trouble(_("Say what to run: job-console run -- python train.py"), 2)
    folder = Path(arguments.folder)
    upload = "" if arguments.no_code else _send(console, folder, screen)
    file = describing.changed(base, wanted, upload) if base else describing.new(wanted, upload, folder)
    body = {
        "file": file.text,
        "dialect": file.dialect,
        **{name: getattr(arguments, name) for name in ("cluster", "quota", "workspace")},
        "like": arguments.like,
        "template": (base.template or None) if base else None,
        "keep_original": base is not None,
    }
    return _sent(console, body, arguments, screen)


def _sent(console: Console, body: dict[str, Any], arguments: argparse.Namespace, screen: Screen) -> int:
    """Submit a file: as the job that it is, or as the sweep."""
    key = str(uuid.uuid4())
    try:
        job = console.post("/jobs", body, headers={"Idempotency-Key": key})
    except Refused as refused:
        if not sweeping.is_meant(refused):
            raise
        return sweeping.submit(console, body, key, arguments, screen)
    return _submitted(console, job, arguments, screen)


def _base(console: Console, arguments: argparse.Namespace) -> Base | None:
    """The job file to begin with, of a job or of a template."""
    if arguments.like and arguments.template:
        raise Trouble(_("Either --like or --template."), 2)
    if arguments.like:
        told = console.get(f"/jobs/{arguments.like}/file")
        return Base(told["dialect"], told["text"])
    if arguments.set and not arguments.template:
        raise Trouble(_("--set answers a template's questions: --template says which."), 2)
    if arguments.template:
        return _of_template(console, arguments)
    return None


def _of_template(console: Console, arguments: argparse.Namespace) -> Base:
    """A template, ID or ID@VERSION, filled in by the console that keeps it."""
    public_id, _at, version = arguments.template.partition("@")
    if not public_id or (version and not (version.isascii() and version.isdigit())):
        raise Trouble(_("A template is named by its id, or by ID@VERSION."), 2)
    body = {"version": int(version) if version else None, "answers": describing.answers(arguments.set)}
    try:
        told = console.post(f"/templates/{quote(public_id, safe='')}/file", body)
    except Refused as refused:
        if refused.status_code != httpx.codes.NOT_FOUND:
            raise
        names = ", ".join(each["id"] for each in console.get("/templates")["templates"])
        raise Trouble(_("There is no such template. There are: %(names)s.") % {"names": names}, 2) from None
    return Base(told["dialect"], told["text"], told["template"])


def _send(console: Console, folder: Path, screen: Screen) -> str:
    if not folder.is_dir():
        raise Trouble(_("%(folder)s is no folder.") % {"folder": folder}, 2)
    for number in range(TRIES):
        try:
            found = scanning.scan(folder)
        except (BadTree, OSError) as error:
            raise Trouble(_("The folder can't be sent: %(why)s") % {"why": error}) from error
        if not number:
            _warn(found, screen)
        try:
            uri = sending.send(console, found, _Progress(screen))
        except sending.Changed:
            continue
        screen.now("")
        return uri
    raise Trouble(_("The files change faster than they can be sent."))


class _Progress:
    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def __call__(self, sent: int, total: int) -> None:
        if self._screen.tty and total:
            told = {"sent": f"{sent / MIB:.1f}", "total": f"{total / MIB:.1f}"}
            self._screen.now(_("Sending files: %(sent)s of %(total)s MiB") % told)


def _warn(found: Found, screen: Screen) -> None:
    """What one would rather not have sent, or thinks that was."""
    if found.secrets:
        screen.say(_("These look like secrets and are sent; name them in .jobignore if they should not be:"))
        _name(found.secrets, screen)
    if found.large:
        screen.say(_("These are large; name them in .jobignore if the job does not need them:"))
        _name([f"{path} ({size / MIB:.0f} MiB)" for path, size in found.large], screen)
    whys = {
        "link_out": _("a link that leads out of the folder"),
        "special": _("a pipe, a socket or a device"),
        "name": _("a name that can't be written as text"),
        "unreadable": _("you may not read it"),
    }
    if found.left_out:
        screen.say(_("These are left out:"))
        _name([f"{path!r} ({whys[code]})" for path, code in found.left_out], screen)


def _name(lines: list[str], screen: Screen) -> None:
    for line in lines[:NAMED]:
        screen.say(f"  {line}")
    if more := len(lines) - NAMED if len(lines) > NAMED else 0:
        screen.say("  " + ngettext("and %(count)s more", "and %(count)s more", more) % {"count": more})


def _submitted(console: Console, job: dict[str, Any], arguments: argparse.Namespace, screen: Screen) -> int:
    for note in job.get("notes") or ():
        screen.say(_("note: %(message)s") % {"message": note["message"]})
    page = f"{console.server}/jobs/{job['id']}"
    screen.say(_("%(name)s is job %(id)s: %(page)s") % {"name": job["name"], "id": job["id"], "page": page})
    if leaving.at_once(job, arguments):
        return 0
    return _follow(console, job["id"], _first_log(console, job["id"]), screen)


def _first_log(console: Console, job: str) -> str:
    """The first replica, by the job's own file: there may be no replicas yet."""
    return f"{console.get(f'/jobs/{job}/file')['roles'][0]}/0"


def _follow(console: Console, job: str, log: str, screen: Screen) -> int:
    watch = Watch(console, screen, job, log)
    while True:
        try:
            ended = watch.to_the_end()
        except KeyboardInterrupt:
            decided = leaving.ask(console, job, screen)
            if decided is not None:
                return decided
        else:
            _told_end(ended, screen)
            return exit_code(ended)


def _told_end(job: dict[str, Any], screen: Screen) -> None:
    told = {"name": job["name"], "state": job["state"], "why": job["reason"]["message"]}
    screen.say(_("%(name)s · %(state)s · %(why)s") % told)


def _submit(console: Console, arguments: argparse.Namespace, screen: Screen) -> int:
    """A job file as it is: its problems are said by the console, with their places."""
    from_stdin = arguments.file == STANDARD_INPUT
    data = sys.stdin.buffer.read() if from_stdin else Path(arguments.file).read_bytes()
    places = {name: getattr(arguments, name) for name in ("dialect", "cluster", "quota", "workspace")}
    body = {"file": _decoded(data, arguments.file), **places}
    return _sent(console, body, arguments, screen)


def _decoded(data: bytes, name: str) -> str:
    try:
        return decode(data)
    except BadFile as refused:
        raise Trouble("\n".join(f"{name}: {problem_message(each)}" for each in refused.problems), 2) from None


# --- the others ------------------------------------------------------------------------------------------


def _list(console: Console, arguments: argparse.Namespace, screen: Screen) -> int:
    owner = None if arguments.all else "me"
    jobs = console.get("/jobs", owner=owner, limit=max(1, arguments.limit))["jobs"]
    if arguments.json:
        print(json.dumps(jobs, ensure_ascii=False))  # noqa: T201
        return 0
    for job in jobs:
        columns = (job["id"], f"{job['state']:<10}", job["created_at"][:16].replace("T", " "), job["name"])
        print("  ".join([*columns, *([job["owner"]] if arguments.all else [])]))  # noqa: T201
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
    log = arguments.replica or _first_log(console, arguments.job)
    if arguments.follow:
        return _follow(console, arguments.job, log, screen)
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
    job = console.post(f"/jobs/{arguments.job}/stop", None)
    if arguments.json:
        print(json.dumps(job, ensure_ascii=False))  # noqa: T201
    else:
        _told_end(job, screen)
    return 0


def _again(console: Console, arguments: argparse.Namespace, screen: Screen) -> int:
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    job = console.post(f"/jobs/{arguments.job}/again", None, headers=headers)
    return _submitted(console, job, arguments, screen)


_COMMANDS: Final = {
    "run": _run,
    "submit": _submit,
    "list": _list,
    "status": _status,
    "logs": _logs,
    "stop": _stop,
    "again": _again,
}

"""The commands that talk to a console, and their options."""

from __future__ import annotations

import argparse
import importlib
from typing import Any, Final

from django.utils.translation import gettext as _

WORK: Final = "jobs.client.commands"


def add_to(commands: Any) -> None:
    """`login`, `run`, `list` and so on; what they do is loaded when they are called."""
    login = _command(commands, "login", _("remember a token for a console"))
    login.add_argument("url", metavar="URL", help=_("the console's address"))
    _run(commands)
    _submit(commands)
    listed = _command(commands, "list", _("my newest jobs"))
    listed.add_argument("--all", action="store_true", help=_("everybody's, as far as I may see them"))
    listed.add_argument("--limit", type=int, default=20, metavar="N", help=_("so many"))
    _json(listed)
    status = _command(commands, "status", _("how a job stands"))
    _job(status)
    _json(status)
    logs = _command(commands, "logs", _("what a job wrote"))
    _job(logs)
    logs.add_argument("-f", "--follow", action="store_true", help=_("go on until the job has ended"))
    logs.add_argument("--replica", metavar="ROLE/INDEX", help=_("whose; the first one's otherwise"))
    stop = _command(commands, "stop", _("end a job"))
    _job(stop)
    _json(stop)
    again = _command(commands, "again", _("run a job again as it was"))
    _job(again)
    again.add_argument("--detach", action="store_true", help=_("do not follow it"))
    _json(again)


def _run(commands: Any) -> None:
    run = _command(commands, "run", _("run a command with the files of this folder as a job"))
    run.usage = "job-console run [options] -- COMMAND [ARGUMENT …]"
    run.add_argument("command", nargs="*", metavar="COMMAND", help=_("what to run, after --"))
    run.add_argument("--gpus", type=int, metavar="N", help=_("GPUs"))
    run.add_argument("--gpu-type", default="", metavar="TYPE", help=_("of this type"))
    run.add_argument("--cpus", type=float, metavar="N", help=_("CPU cores"))
    run.add_argument("--memory", default="", metavar="8G", help=_("memory"))
    run.add_argument("--image", default="", help=_("the container image"))
    run.add_argument("--name", default="", help=_("what the job is called; like the folder otherwise"))
    run.add_argument("--like", metavar="JOB", help=_("everything else as in this job"))
    run.add_argument(
        "--template", metavar="TEMPLATE", help=_("everything else as in this template: ID, ID@VERSION")
    )
    run.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=_("an answer to one of the template's questions"),
    )
    run.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help=_("a variable"))
    run.add_argument(
        "--after", action="append", default=[], metavar="JOB", help=_("begin once this job has succeeded")
    )
    run.add_argument("--folder", default=".", help=_("the folder to send; this one otherwise"))
    run.add_argument("--no-code", action="store_true", help=_("send no files"))
    _where(run)


def _submit(commands: Any) -> None:
    submit = _command(commands, "submit", _("submit a job file as it is"))
    submit.add_argument("file", metavar="FILE", help=_("the job file; - is standard input"))
    submit.add_argument(
        "--dialect", metavar="DIALECT", help=_("what kind of job file it is; found otherwise")
    )
    _where(submit)


def _where(command: argparse.ArgumentParser) -> None:
    for name in ("cluster", "quota", "workspace"):
        command.add_argument(f"--{name}", metavar=name.upper(), help=_("where it runs; chosen otherwise"))
    command.add_argument("--detach", action="store_true", help=_("submit, and do not follow it"))
    _json(command)


def _command(commands: Any, name: str, about: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(name, help=about, description=about)
    made.add_argument("--server", metavar="URL", help=_("another console than the last one logged in to"))
    made.set_defaults(run=lambda arguments: importlib.import_module(WORK).run(name, arguments), file="")
    return made


def _job(command: argparse.ArgumentParser) -> None:
    command.add_argument("job", metavar="JOB", help=_("its id"))


def _json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help=_("print JSON, as the API has it"))

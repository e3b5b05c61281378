"""The commands that talk to a console, and those for job files, with their options.

What a command does is loaded when it is called: help, version and completion take no time.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from typing import Any, Final

from jobs.dialect_names import NAMES
from jobs.language import gettext as _

COMMANDS: Final = "jobs.client.commands"
JOB_FILES: Final = "jobs.client.job_files"
COMPLETION: Final = "jobs.client.completion"
SHELLS: Final = ("bash", "zsh", "fish")
DISTRIBUTIONS: Final = ("job-console-client", "job-console")
"""The one that is installed alone, and the whole console."""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    whole = argparse.ArgumentParser(
        "job-console", description=_("Check and convert job files, and run jobs from a terminal.")
    )
    whole.add_argument("--version", action=_Version, nargs=0, help=_("print the version"))
    commands = whole.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    _check(commands)
    _convert(commands)
    login = _command(
        commands, "login", _("remember a token for a console"), "login https://console.example.org"
    )
    login.add_argument("url", metavar="URL", help=_("the console's address"))
    _run(commands)
    _submit(commands)
    _list(commands)
    status = _command(
        commands, "status", _("show the status of a job"), "status fast", "status --json 4f2kq8z1m0ab"
    )
    _job(status)
    _json(status)
    _logs(commands)
    stop = _command(commands, "stop", _("stop a job"), "stop fast")
    _job(stop)
    _json(stop)
    _hold(commands)
    again = _command(commands, "again", _("run a job again as it was"), "again fast")
    _job(again)
    again.add_argument(
        "--second-copy", action="store_true", help=_("start a second copy of a job that has not ended")
    )
    again.add_argument("--detach", action="store_true", help=_("do not follow it"))
    _json(again)
    completion = _command(
        commands,
        "completion",
        _("print a completion script for a shell"),
        "completion bash > ~/.local/share/bash-completion/completions/job-console",
        'completion zsh > "${fpath[1]}/_job-console"',
        "completion fish > ~/.config/fish/completions/job-console.fish",
        module=COMPLETION,
    )
    completion.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))
    return whole


class _Parser(argparse.ArgumentParser):
    """A command's parser, which shows its examples as they are written."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, formatter_class=argparse.RawDescriptionHelpFormatter)


class _Version(argparse.Action):
    """Print the version, and end."""

    def __call__(self, whole: argparse.ArgumentParser, *_rest: object) -> None:
        from importlib import metadata  # noqa: PLC0415 it takes as long as everything else here

        for name in DISTRIBUTIONS:
            try:
                print(f"job-console {metadata.version(name)}")  # noqa: T201
                break
            except metadata.PackageNotFoundError:
                continue
        whole.exit()


def _check(commands: Any) -> None:
    check = _command(
        commands,
        "check",
        _("validate a job file"),
        "check job.json",
        "check --fix job.json",
        module=JOB_FILES,
    )
    _json(check)
    check.add_argument("--fix", action="store_true", help=_("apply the suggested fixes to the file"))
    _file(check)


def _convert(commands: Any) -> None:
    convert = _command(
        commands,
        "convert",
        _("write a job file in another format"),
        "convert job.json --to sbatch > job.sh",
        module=JOB_FILES,
    )
    convert.add_argument("--to", required=True, choices=NAMES, metavar="FORMAT", help=_describe_formats())
    _file(convert)


def _run(commands: Any) -> None:
    run = _command(
        commands,
        "run",
        _("run a command with the files of this folder as a job"),
        "run -- python train.py",
        "run --gpus 1 --memory 16G --name fast -- python train.py --epochs 3",
        "run --like fast --env LR=0.1",
    )
    run.usage = "job-console run [options] -- COMMAND [ARGUMENT …]"
    run.add_argument("command", nargs="*", metavar="COMMAND", help=_("what to run, after --"))
    run.add_argument("--gpus", type=int, metavar="N", help=_("GPUs"))
    run.add_argument("--gpu-type", default="", metavar="TYPE", help=_("of this type"))
    run.add_argument("--cpus", type=float, metavar="N", help=_("CPU cores"))
    run.add_argument("--memory", default="", metavar="8G", help=_("memory"))
    run.add_argument("--image", default="", help=_("the container image"))
    run.add_argument("--name", default="", help=_("name of the job (default: the folder's)"))
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
    run.add_argument("--folder", default=".", help=_("the folder to send (default: this one)"))
    run.add_argument("--no-code", action="store_true", help=_("send no files"))
    _add_place(run)


def _submit(commands: Any) -> None:
    submit = _command(
        commands, "submit", _("submit a job file as it is"), "submit job.json", "submit --detach job.sh"
    )
    _file(submit)
    _add_place(submit)


def _list(commands: Any) -> None:
    listed = _command(commands, "list", _("list jobs"), "list", "list --all --limit 50")
    listed.add_argument("--all", action="store_true", help=_("everybody's, as far as I may see them"))
    listed.add_argument("--limit", type=int, default=20, metavar="N", help=_("maximum number"))
    _json(listed)


def _logs(commands: Any) -> None:
    logs = _command(
        commands, "logs", _("print logs"), "logs fast", "logs -f fast", "logs --replica Worker/1 4f2kq8z1m0ab"
    )
    _job(logs)
    logs.add_argument("-f", "--follow", action="store_true", help=_("go on until the job has ended"))
    logs.add_argument("--replica", metavar="ROLE/INDEX", help=_("replica (default: first)"))


def _hold(commands: Any) -> None:
    hold = _command(
        commands, "hold", _("keep a waiting job from starting"), 'hold fast --reason "the data are moving"'
    )
    _job(hold)
    hold.add_argument(
        "--reason", default="", metavar="TEXT", help=_("why; required for the job of another person")
    )
    _json(hold)
    release = _command(commands, "release", _("let a held job start"), "release fast")
    _job(release)
    _json(release)


def _add_place(command: argparse.ArgumentParser) -> None:
    for name in ("cluster", "quota", "workspace"):
        command.add_argument(
            f"--{name}", metavar=name.upper(), help=_("where it runs (default: selected for you)")
        )
    command.add_argument("--detach", action="store_true", help=_("submit, and do not follow it"))
    _json(command)


def _command(
    commands: Any, name: str, about: str, *examples: str, module: str = COMMANDS
) -> argparse.ArgumentParser:
    """Add a command, which the module's `run` runs, with examples of how it is called."""
    made: argparse.ArgumentParser = commands.add_parser(
        name, help=about, description=about, epilog=_examples(examples)
    )
    if module == COMMANDS:
        made.add_argument("--server", metavar="URL", help=_("another console than the last one logged in to"))
    made.set_defaults(run=lambda arguments: importlib.import_module(module).run(name, arguments))
    return made


def _examples(lines: Sequence[str]) -> str:
    return "\n".join([_("examples:"), *(f"  job-console {line}".replace("%", "%%") for line in lines)])


def _job(command: argparse.ArgumentParser) -> None:
    command.add_argument("job", metavar="JOB", help=_("job ID or name"))


def _file(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", metavar="FILE", help=_("the job file; - is standard input"))
    command.add_argument("--dialect", choices=NAMES, metavar="FORMAT", help=_describe_formats())


def _describe_formats() -> str:
    return _("one of %(names)s") % {"names": ", ".join(NAMES)}


def _json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help=_("print JSON, as the API has it"))

"""The commands that talk to a console, and those for job files, with their options.

The module of a command is imported when the command is called, so that help, version and completion are fast.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from jobs.dialect_names import NAMES
from jobs.language import gettext as _
from jobs.states import State

COMMANDS: Final = "jobs.client.commands"
JOB_FILES: Final = "jobs.client.job_files"
COMPLETION: Final = "jobs.client.completion"
STATES: Final = tuple(state.value for state in State)
SHELLS: Final = ("bash", "zsh", "fish")
DISTRIBUTIONS: Final = ("job-console-client", "job-console")
"""The command line installed alone, and the whole console."""


class Option:
    """An argument of a command: what `argparse` takes."""

    def __init__(self, *flags: str, **settings: Any) -> None:
        self.flags, self.settings = flags, settings


@dataclass(frozen=True, slots=True)
class Command:
    """A command, which the module's `run` runs, with examples of its use."""

    name: str
    about: str
    examples: Sequence[str]
    options: Sequence[Option]
    module: str = COMMANDS


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    whole = argparse.ArgumentParser(
        "job-console", description=_("Check and convert job files, and run jobs from a terminal.")
    )
    whole.add_argument("--version", action=_Version, nargs=0, help=_("print the version"))
    added = whole.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    for command in (*_job_file_commands(), *_submit_commands(), *_job_commands(), _completion_command()):
        _add(added, command)
    added.choices["run"].usage = "job-console run [options] -- COMMAND [ARGUMENT …]"
    added.choices["exec"].usage = "job-console exec [options] JOB [-- COMMAND [ARGUMENT …]]"
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


def _add(added: Any, command: Command) -> None:
    examples = (f"  job-console {line}".replace("%", "%%") for line in command.examples)
    epilog = "\n".join([_("examples:"), *examples])
    made = added.add_parser(command.name, help=command.about, description=command.about, epilog=epilog)
    if command.module == COMMANDS:
        made.add_argument(
            "--server", metavar="URL", help=_("console to use (default: the last one logged in to)")
        )
    for option in command.options:
        made.add_argument(*option.flags, **option.settings)
    made.set_defaults(
        run=lambda arguments: importlib.import_module(command.module).run(command.name, arguments)
    )


def _job_file_commands() -> Sequence[Command]:
    to = Option("--to", required=True, choices=NAMES, metavar="FORMAT", help=_describe_formats())
    fix = Option("--fix", action="store_true", help=_("apply the suggested fixes to the file"))
    return (
        Command(
            "check",
            _("validate a job file"),
            ("check job.json", "check --fix job.json"),
            (_json_option(), fix, *_file_options()),
            JOB_FILES,
        ),
        Command(
            "convert",
            _("convert a job file to another format"),
            ("convert job.json --to sbatch > job.sh",),
            (to, *_file_options()),
            JOB_FILES,
        ),
    )


def _submit_commands() -> Sequence[Command]:
    return (
        Command(
            "login",
            _("log in to a console (saves a token)"),
            ("login https://console.example.org",),
            (Option("url", metavar="URL", help=_("console address")),),
        ),
        Command(
            "run",
            _("run a command as a job, with the files of this folder"),
            (
                "run -- python train.py",
                "run --gpus 1 --memory 16G --name fast -- python train.py --epochs 3",
                "run --nodes 2 --time 2h --tag team=nlp -- torchrun train.py",
                "run --like fast --env LR=0.1",
            ),
            (*_run_options(), *_location_options()),
        ),
        Command(
            "submit",
            _("submit a job file"),
            (
                "submit job.json",
                "submit --detach job.sh",
                'submit job.json --param "env.LR = 0.1, 0.01" --at-once 2',
                'submit job.json --param "env.LR = uniform(0, 1)" --trials 20 --objective "min loss"',
            ),
            (*_file_options(), *_sweep_options(), *_location_options()),
        ),
    )


def _run_options() -> Sequence[Option]:
    repeated: dict[str, Any] = {"action": "append", "default": []}
    template = _("template for all other settings: ID or ID@VERSION")
    answer = _("template parameter")
    return (
        Option("command", nargs="*", metavar="COMMAND", help=_("command to run, after --")),
        Option("--gpus", type=int, metavar="N", help=_("GPUs")),
        Option("--gpu-type", default="", metavar="TYPE", help=_("GPU type")),
        Option("--cpus", type=float, metavar="N", help=_("CPU cores")),
        Option("--memory", default="", metavar="8G", help=_("memory")),
        Option("--image", default="", help=_("container image")),
        Option("--name", default="", help=_("job name (default: the folder's name)")),
        Option("--like", metavar="JOB", help=_("job to copy all other settings from")),
        Option("--template", metavar="TEMPLATE", help=template),
        Option("--set", metavar="NAME=VALUE", help=answer, **repeated),
        Option("--env", metavar="NAME=VALUE", help=_("environment variable"), **repeated),
        Option("--nodes", type=int, metavar="N", help=_("replicas, each with these resources")),
        Option("--time", default="", metavar="2h", help=_("maximum running time")),
        Option("--port", metavar="[NAME=]PORT", help=_("port that the job serves"), **repeated),
        Option("--tag", metavar="NAME=VALUE", help=_("tag"), **repeated),
        Option("--after", metavar="JOB", help=_("start after this job has succeeded"), **repeated),
        Option("--folder", default=".", help=_("folder to send (default: current folder)")),
        Option("--no-code", action="store_true", help=_("send no files")),
    )


def _job_commands() -> Sequence[Command]:
    job = Option("job", metavar="JOB", help=_("job ID or name"))
    jobs = Option("jobs", nargs="+", metavar="JOB", help=_("job ID or name"))
    reason = _("reason; required for another user's job")
    second_copy = _("start a second copy of a job that has not ended")
    more_memory = _("with twice the memory, after the job ran out of it")
    follow = _("follow until the job has ended")
    return (
        Command(
            "list",
            _("list jobs"),
            ("list", "list --all --limit 50", "list state:failed tag:nlp loss"),
            (
                Option("query", nargs="*", metavar="FILTER", help=_("words and filters, as in the web list")),
                Option("--state", choices=STATES, metavar="STATE", help=", ".join(STATES)),
                Option("--all", action="store_true", help=_("all jobs that you can see, not only your own")),
                Option("--limit", type=int, default=20, metavar="N", help=_("maximum number")),
                _json_option(),
            ),
        ),
        Command(
            "status",
            _("show the status of a job"),
            ("status fast", "status --json 4f2kq8z1m0ab"),
            (job, _json_option()),
        ),
        Command(
            "logs",
            _("print logs"),
            ("logs fast", "logs -f fast", "logs -f --all fast", "logs --replica Worker/1 4f2kq8z1m0ab"),
            (
                job,
                Option("-f", "--follow", action="store_true", help=follow),
                Option("--all", action="store_true", help=_("all replicas, merged by time")),
                Option("--timestamps", action="store_true", help=_("the time before each line")),
                Option("--replica", metavar="ROLE/INDEX", help=_("replica (default: first)")),
            ),
        ),
        Command(
            "exec",
            _("run a command inside a running job, or open a shell there"),
            ("exec fast", "exec fast -- nvidia-smi", "exec --replica Worker/1 fast -- py-spy dump --pid 1"),
            (
                job,
                Option("command", nargs="*", metavar="COMMAND", help=_("command to run, after --")),
                Option("--replica", metavar="ROLE/INDEX", help=_("replica (default: first that runs)")),
            ),
        ),
        Command(
            "cp",
            _("copy files and folders to and from a job's folder"),
            ("cp fast:out/model.pt .", "cp config.yaml fast:config.yaml"),
            (
                Option("source", metavar="SOURCE", help=_("path, or JOB:PATH")),
                Option("target", metavar="TARGET", help=_("path, or JOB:PATH")),
                Option("--replica", metavar="ROLE/INDEX", help=_("replica (default: first that runs)")),
            ),
        ),
        Command(
            "wait",
            _("wait until jobs have ended"),
            ("wait fast", "wait --timeout 1h fast 4f2kq8z1m0ab && echo succeeded"),
            (
                jobs,
                Option("--timeout", metavar="2h", help=_("longest wait; then the exit status is 124")),
                _json_option(),
            ),
        ),
        Command("stop", _("stop a job"), ("stop fast",), (job, _json_option())),
        Command(
            "delete",
            _("delete ended jobs"),
            ("delete fast", "delete --yes 4f2kq8z1m0ab"),
            (
                jobs,
                Option("-y", "--yes", action="store_true", help=_("don't ask")),
                _json_option(),
            ),
        ),
        Command(
            "hold",
            _("hold a waiting job"),
            ('hold fast --reason "the data are moving"',),
            (job, Option("--reason", default="", metavar="TEXT", help=reason), _json_option()),
        ),
        Command(
            "keep",
            _("keep the files of an ended job for 30 days"),
            ("keep fast", "keep fast --as-dataset checkpoints --path out"),
            (
                job,
                Option(
                    "--as-dataset",
                    default="",
                    metavar="NAME",
                    help=_("copy a folder of the job into a new dataset of its workspace instead"),
                ),
                Option(
                    "--path",
                    default="",
                    metavar="PATH",
                    help=_("folder to copy; default: the working folder"),
                ),
                _json_option(),
            ),
        ),
        Command("release", _("release a held job"), ("release fast",), (job, _json_option())),
        Command(
            "again",
            _("rerun a job"),
            ("again fast",),
            (
                job,
                Option("--second-copy", action="store_true", help=second_copy),
                Option("--more-memory", action="store_true", help=more_memory),
                Option("--detach", action="store_true", help=_("don't follow the job")),
                _json_option(),
            ),
        ),
    )


def _completion_command() -> Command:
    return Command(
        "completion",
        _("print a completion script for a shell"),
        (
            "completion bash > ~/.local/share/bash-completion/completions/job-console",
            'completion zsh > "${fpath[1]}/_job-console"',
            "completion fish > ~/.config/fish/completions/job-console.fish",
        ),
        (Option("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS)),),
        COMPLETION,
    )


def _location_options() -> Sequence[Option]:
    where = _("where the job runs (default: selected automatically)")
    return (
        *(
            Option(f"--{name}", metavar=name.upper(), help=where)
            for name in ("cluster", "quota", "workspace")
        ),
        Option("--detach", action="store_true", help=_("submit without following the job")),
        _json_option(),
    )


def _sweep_options() -> Sequence[Option]:
    """Return the options of a sweep, which are the lines of New job's sweep."""
    return (
        Option(
            "--param",
            metavar="NAME=VALUES",
            action="append",
            default=[],
            help=_("sweep parameter with its values, or with a range for a random search"),
        ),
        Option("--trials", metavar="N", help=_("random search: number of jobs")),
        Option("--seed", metavar="N", help=_("random search: the same seed draws the same values")),
        Option("--objective", metavar='"min METRIC"', help=_("metric that decides which job is best")),
        Option(
            "--early-stop",
            metavar='"STEP JOBS"',
            help=_(
                "stop a job from that step on if it is worse than the median of at least this many others"
            ),
        ),
        Option("--at-once", type=int, metavar="N", help=_("maximum number of jobs at a time")),
    )


def _file_options() -> Sequence[Option]:
    return (
        Option("file", metavar="FILE", help=_("job file; - for standard input")),
        Option("--dialect", choices=NAMES, metavar="FORMAT", help=_describe_formats()),
    )


def _describe_formats() -> str:
    return _("one of %(names)s") % {"names": ", ".join(NAMES)}


def _json_option() -> Option:
    return Option("--json", action="store_true", help=_("print JSON, as returned by the API"))

"""The commands of `dlc` and their flags.

`submit` has a flag for each key of a parameter file; its table is part of the dialect, which takes a while to
import, so that the other commands do without it.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from jobs.client.dlc.configuration import PROTOCOLS

COMMANDS: Final = "jobs.client.dlc.commands"
SUBMISSION: Final = "jobs.client.dlc.submission"
FORMATS: Final = ("table", "json")

_FILTERS: Final = (
    (("--workspace_id", "-w"), "WorkspaceId", "ID of the workspace"),
    (("--display_name", "-n"), "DisplayName", "part of the job's name"),
    (("--job_type",), "JobType", "such as TFJob or PyTorchJob"),
    (("--status",), "Status", "such as Running or Queuing"),
    (("--resource_id",), "ResourceId", "ID of the resource quota"),
    (("--start_time",), "StartTime", "created since, such as 2026-01-31T08:00:00Z"),
    (("--end_time",), "EndTime", "created until"),
    (("--sort_by",), "SortBy", "DisplayName, JobType, Status, GmtCreateTime or GmtFinishTime"),
    (("--order",), "Order", "asc or desc"),
    (("--page_num",), "PageNumber", "number of the page, from 1"),
    (("--page_size",), "PageSize", "jobs on a page"),
)
"""Flags of the list of jobs: the parameter of ListJobs, and what it is."""

_PAGES: Final = _FILTERS[-2:]
_QUOTAS: Final = (
    (("--workspace_id", "-w"), "WorkspaceId", "ID of the workspace"),
    *_PAGES,
)
_SPECS: Final = (
    (("--instance_types",), "InstanceTypes", "names of instance types, comma-separated"),
    (("--accelerator_type",), "AcceleratorType", "CPU or GPU"),
    (("--resource_type",), "ResourceType", "ECS or Lingjun"),
    (("--sort_by",), "SortBy", "CPU, GPU, Memory or GmtCreateTime"),
    (("--order",), "Order", "asc or desc"),
    *_PAGES,
)
"""Flags of the lists of quotas (ListResources) and of instance types (ListEcsSpecs)."""


class Parser(argparse.ArgumentParser):
    """A parser that takes no abbreviated flags: a script must not change its meaning with a new flag."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)


def parser(words: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return the parser for a command line of these words."""
    whole = Parser(prog="dlc", description="Submit and manage jobs over the API of PAI-DLC.")
    commands = whole.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)
    _command(commands, "config", "store an access key and an endpoint", _runner("configure"))
    submit = commands.add_parser("submit", help="submit a job")
    if "submit" in words:
        importlib.import_module(SUBMISSION).add_job_types(submit, _add_connection)
    _add_get(commands)
    _add_stop_and_delete(commands)
    _add_logs(commands)
    return whole


def _runner(name: str) -> Callable[[argparse.Namespace], int]:
    """Return the function of that name, which is imported when it is called."""
    return lambda arguments: int(getattr(importlib.import_module(COMMANDS), name)(arguments))


def _command(
    commands: Any, name: str, about: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(name, help=about, description=about)
    _add_connection(made)
    made.set_defaults(run=run)
    return made


def _add_connection(made: argparse.ArgumentParser) -> None:
    """Add the flags of every command: the key and where requests go, for this once."""
    group = made.add_argument_group("connection (default: as stored by dlc config)")
    group.add_argument("-a", "--access_id", default="", metavar="ID", help="ID of the access key")
    group.add_argument("-k", "--access_key", default="", metavar="SECRET", help="secret of the access key")
    group.add_argument(
        "-e", "--endpoint", default="", metavar="HOST", help="host of the console or of PAI-DLC"
    )
    group.add_argument("-r", "--region", default="", metavar="REGION", help="such as cn-beijing")
    group.add_argument("--protocol", default="", choices=PROTOCOLS, help="default: https")
    group.add_argument("-c", "--config", metavar="FILE", help="default: ~/.dlc/config")
    made.add_argument("-o", "--output", default="", choices=FORMATS, help="format of what is printed")


def _add_get(commands: Any) -> None:
    get = commands.add_parser("get", help="show jobs, a pod's events, quotas or instance types")
    kinds = get.add_subparsers(required=True, metavar="KIND", parser_class=Parser)
    job = _command(kinds, "job", "show a job, or list jobs", _runner("get_job"))
    job.add_argument("job", nargs="?", metavar="JOB", help="ID of a job; all jobs without it")
    job.add_argument("--show_detail", action="store_true", help="accepted; details are always shown")
    job.add_argument("--events", action="store_true", help="show the job's events too")
    job.add_argument("--max_events_num", metavar="N", help="maximum number of events")
    _add_query(job, _FILTERS)
    quota = _command(kinds, "quota", "list resource quotas, or show one", _runner("get_quota"))
    quota.add_argument("quota", nargs="?", metavar="QUOTA", help="ID of a quota (resource_id of a job)")
    _add_query(quota, _QUOTAS)
    specs = _command(kinds, "specs", "list instance types (ECS specs)", _runner("get_specs"))
    _add_query(specs, _SPECS)
    pod = _command(kinds, "pod", "show the events of a pod", _runner("get_pod"))
    _add_pod(pod)


def _add_query(made: argparse.ArgumentParser, rows: Iterable[tuple[tuple[str, ...], str, str]]) -> None:
    """Add the flags of the parameters of an operation that lists."""
    for flags, parameter, about in rows:
        made.add_argument(*flags, dest=parameter, metavar=parameter, help=about)


def _add_stop_and_delete(commands: Any) -> None:
    for verb, run in (("stop", "stop_job"), ("delete", "delete_job")):
        kinds = commands.add_parser(verb, help=f"{verb} a job").add_subparsers(
            required=True, metavar="KIND", parser_class=Parser
        )
        made = _command(kinds, "job", f"{verb} a job", _runner(run))
        made.add_argument("job", metavar="JOB", help="ID of the job")
        made.add_argument("-f", "--force", action="store_true", help="don't ask")
        made.add_argument("-w", "--workspace_id", metavar="ID", help="accepted; the job's ID is enough")
        if verb == "stop":
            made.add_argument("-q", "--quiet", action="store_true", help="don't wait until it has stopped")


def _add_logs(commands: Any) -> None:
    logs = _command(commands, "logs", "print the log of a pod", _runner("print_logs"))
    _add_pod(logs)
    logs.add_argument("-f", "--follow", action="store_true", help="follow until the job has ended")


def _add_pod(made: argparse.ArgumentParser) -> None:
    made.add_argument("job", metavar="JOB", help="ID of the job")
    made.add_argument("pod", nargs="?", metavar="POD", help="ID of the pod; default: the job's first")
    made.add_argument("--max_events_num", metavar="N", help="maximum number of lines (default: 2000)")
    made.add_argument("--start_time", metavar="TIME", help="such as 2026-01-31T08:00:00Z")
    made.add_argument("--end_time", metavar="TIME", help="such as 2026-01-31T09:00:00Z")

"""`dlc submit TYPE`: a job of flags and of a parameter file, as a CreateJob request."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from jobs.client.dlc.api import Api, path_of
from jobs.client.dlc.commands import connect, report
from jobs.client.dlc.failure import REFUSED, USAGE
from jobs.client.dlc.parser import Parser
from jobs.client.dlc.progress import ENDS, PodLog, wait_for_end
from jobs.client.failure import CommandFailure
from jobs.dialects.base import MAX_BYTES, Refused
from jobs.dialects.dlc.job_types import BY_NAME
from jobs.dialects.dlc_params.job_type import NAMES
from jobs.dialects.dlc_params.keys import COMMON, KNOWN, PARAMS, ROLES, Param
from jobs.dialects.dlc_params.lines import read
from jobs.dialects.dlc_params.parser import TranslatedRequest
from jobs.dialects.document import Document
from jobs.dialects.objects import as_object
from jobs.dialects.source import decode
from jobs.messages.findings import of_problem

SWITCHES: Final = frozenset({"interactive", "chief"})
"""Flags that need no value to be on."""


def add_job_types(
    submit: argparse.ArgumentParser, add_connection: Callable[[argparse.ArgumentParser], None]
) -> None:
    """Add a command for each job type, with a flag for each key that it may have in a parameter file."""
    types = submit.add_subparsers(required=True, metavar="TYPE", parser_class=Parser)
    for word, job_type in NAMES.items():
        about = f"submit a {job_type}"
        made = types.add_parser(word, help=about, description=about)
        add_connection(made)
        made.add_argument("--job_file", metavar="FILE", help="file of key=value lines, which win over flags")
        for param in params_of(job_type):
            _add_flag(made, param)
        made.set_defaults(run=partial(submit_job, job_type))


def params_of(job_type: str) -> tuple[Param, ...]:
    """Return the keys of a job type: the common ones, and those of its roles."""
    roles = BY_NAME[job_type].roles
    absent = tuple(f"/JobSpecs/{kind}/" for kind, _count in ROLES.values() if roles and kind not in roles)
    return (*COMMON, *(param for param in PARAMS if param not in COMMON and not param.to.startswith(absent)))


def _add_flag(made: argparse.ArgumentParser, param: Param) -> None:
    about = str(getattr(param.rule, "help", "")).replace("%", "%%")
    options: dict[str, Any] = {"nargs": "?", "const": "true"} if param.key in SWITCHES else {}
    made.add_argument(f"--{param.key}", dest=f"param_{param.key}", metavar="VALUE", help=about, **options)


def submit_job(job_type: str, arguments: argparse.Namespace) -> int:
    """Submit the job; with `interactive` follow it to its end."""
    values = {**_flags(arguments), **_file(arguments.job_file)}
    with connect(arguments) as api:
        answer = api.call("CreateJob", "POST", path_of("jobs"), body=create_request(job_type, values))
        report(answer, arguments.output)
        if values.get("interactive", "").lower() in {"", "0", "false"}:
            return 0
        return _follow(api, str(answer["JobId"]), values)


def create_request(job_type: str, values: Mapping[str, str]) -> dict[str, Any]:
    """Return the body of CreateJob for keys of a parameter file.

    Keys that the command line alone knows are left out, but for the driver, which the request has too.
    """
    body = dict(TranslatedRequest(values, job_type).value)
    if values.get("driver"):
        body["Settings"] = {**as_object(body.get("Settings")), "Driver": values["driver"]}
    return body


def _flags(arguments: argparse.Namespace) -> dict[str, str]:
    prefix = "param_"
    given = vars(arguments).items()
    return {
        name.removeprefix(prefix): value
        for name, value in given
        if name.startswith(prefix) and value is not None
    }


def _file(name: str | None) -> dict[str, str]:
    """Return the values of a parameter file.  Raises CommandFailure with each line that is none, OSError."""
    if name is None:
        return {}
    with Path(name).open("rb") as opened:
        data = opened.read(MAX_BYTES + 1)
    try:
        values = read(Document(decode(data), "dlc-params"), KNOWN).values
    except Refused as refused:
        lines = [f"{name}:{each.line}:{each.column}: {of_problem(each).message}" for each in refused.problems]
        raise CommandFailure("\n".join(lines), USAGE) from refused
    for key in values.keys() - KNOWN:
        sys.stderr.write(f"{name}: {key} is no parameter; ignored.\n")
    return values


def _follow(api: Api, job: str, values: Mapping[str, str]) -> int:
    """Report the job's status and its first pod's log; return the exit status that its end has."""
    seconds = values.get("running_timeout", "")
    deadline = time.monotonic() + int(seconds) if seconds.isdecimal() else None
    log: list[PodLog] = []

    def look() -> None:
        if not log:
            pods = api.get("GetJob", path_of("jobs", job)).get("Pods") or ()
            log.extend(PodLog(api, job, str(pod["PodId"])) for pod in pods[:1])
        for each in log:
            each.print_new()

    status = wait_for_end(api, job, report=sys.stdout, deadline=deadline, look=look)
    if status not in ENDS:
        raise CommandFailure(f"Job {job} has not ended after {seconds} s; it goes on.", REFUSED)
    if status == "Stopped" and values.get("exit_code_on_stopped", "").isdecimal():
        return int(values["exit_code_on_stopped"])
    return 0 if status == "Succeeded" else REFUSED

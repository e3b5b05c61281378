"""The commands of `dlc` for jobs that exist, and `dlc config`."""

from __future__ import annotations

import argparse
import getpass
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from jobs.client.dlc import configuration, output
from jobs.client.dlc.api import DLC, WORKSPACES, Answer, Api, Service, path_of
from jobs.client.dlc.configuration import NAMES, Configuration
from jobs.client.dlc.failure import REFUSED, USAGE
from jobs.client.dlc.progress import follow_log, wait_for_end
from jobs.client.failure import CommandFailure

_COLUMNS: Final = (
    ("DisplayName", "JobId", "JobType", "WorkspaceId", "ResourceId", "UserId", "Priority", "Status"),
    ("Duration", "GmtCreateTime", "GmtFinishTime"),
)
_HEADER: Final = (*_COLUMNS[0], *_COLUMNS[1])
"""Columns of a list of jobs; scripts take the name from the first, the ID from the second, the status from
the eighth."""

_SPEC_HEADER: Final = ("InstanceType", "AcceleratorType", "Cpu", "Memory", "Gpu", "GpuType", "IsAvailable")
_QUOTA_HEADER: Final = ("QuotaId", "QuotaName", "WorkspaceId", "ResourceType", "Mode", "CPU", "Memory", "GPU")
"""Columns of the lists of instance types and of quotas; memory is in GiB."""

_SECRET: Final = "access_key"  # noqa: S105 the name of a flag
_ASKED: Final = ("access_id", _SECRET, "endpoint")
"""Values that `dlc config` asks for at a terminal, where there are none."""


def configure(arguments: argparse.Namespace) -> int:
    """Store what the flags say beside what is stored."""
    path = _path(arguments)
    stored = configuration.read(path)
    values = {name: _flag(arguments, name) or getattr(stored, name) for name in NAMES}
    if sys.stdin.isatty():
        for name in _ASKED:
            values[name] = values[name] or _ask(name)
    new = Configuration(**values)
    _ = new.url  # an endpoint that leads nowhere is not stored
    configuration.write(path, new)
    output.write(f"Configuration saved to {path}")
    return 0


def _ask(name: str) -> str:
    prompt = f"{name}: "
    return (getpass.getpass(prompt) if name == _SECRET else input(prompt)).strip()


def connect(arguments: argparse.Namespace, service: Service = DLC) -> Api:
    """Return a connection as the flags and the stored configuration say.  Raises CommandFailure."""
    flags = {name: _flag(arguments, name) for name in NAMES}
    return Api(configuration.merge(configuration.read(_path(arguments)), flags), service)


def _flag(arguments: argparse.Namespace, name: str) -> str:
    return str(getattr(arguments, name) or "")


def _path(arguments: argparse.Namespace) -> Path:
    return Path(arguments.config) if arguments.config else configuration.default_path()


def get_job(arguments: argparse.Namespace) -> int:
    """Print a job as the API describes it, or a page of the list of jobs."""
    with connect(arguments) as api:
        if not arguments.job:
            return _list(api, arguments)
        job = api.get("GetJob", path_of("jobs", arguments.job))
        events = _events(api, arguments) if arguments.events else None
    if arguments.output == "table":
        output.write_columns(_HEADER, [_row(job)])
    else:
        output.write_json(job if events is None else {**job, "Events": events})
    return 0


def _events(api: Api, arguments: argparse.Namespace) -> Any:
    answer = api.get(
        "GetJobEvents", path_of("jobs", arguments.job, "events"), **_limits(arguments, "MaxEventsNum")
    )
    return answer.get("Events") or []


def _list(api: Api, arguments: argparse.Namespace) -> int:
    answer = api.get("ListJobs", path_of("jobs"), **_query(arguments))
    _print_rows(answer, _HEADER, [_row(job) for job in answer.get("Jobs") or ()], arguments)
    return 0


def _query(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the parameters that the flags give; they alone begin with a capital letter."""
    return {name: value for name, value in vars(arguments).items() if name[:1].isupper() and value}


def _print_rows(
    answer: Answer, header: Sequence[str], rows: Iterable[Sequence[object]], arguments: argparse.Namespace
) -> None:
    if arguments.output == "json":
        output.write_json(answer)
    else:
        output.write_columns(header, rows)


def _row(each: Mapping[str, Any], header: Sequence[str] = _HEADER) -> list[Any]:
    return [each.get(name) for name in header]


def get_specs(arguments: argparse.Namespace) -> int:
    """Print the instance types that a job may name as its spec."""
    with connect(arguments) as api:
        answer = api.get("ListEcsSpecs", path_of("ecsspecs"), **_query(arguments))
    rows = [_row(each, _SPEC_HEADER) for each in answer.get("EcsSpecs") or ()]
    _print_rows(answer, _SPEC_HEADER, rows, arguments)
    return 0


def get_quota(arguments: argparse.Namespace) -> int:
    """Print quotas with their limits.  Raises CommandFailure if there is none of the ID that is given."""
    query = {"ProductTypes": "DLC", "Verbose": "true", **_query(arguments)}
    if arguments.quota:
        query["QuotaIds"] = arguments.quota
    with connect(arguments, WORKSPACES) as api:
        answer = api.get("ListResources", path_of("resources"), **query)
    rows = [_quota_row(each, quota) for each in answer.get("Resources") or () for quota in each["Quotas"]]
    if arguments.quota and not rows:
        raise CommandFailure(f"Quota {arguments.quota} not found, or no permission.", REFUSED)
    _print_rows(answer, _QUOTA_HEADER, rows, arguments)
    return 0


def _quota_row(resource: Mapping[str, Any], quota: Mapping[str, Any]) -> list[Any]:
    """Return the cells of a quota; a limit that it lacks is empty."""
    limits = {each["Name"]: each["Value"] for each in quota.get("Specs") or ()}
    name = quota.get("DisplayName") or quota.get("Name")
    place = (resource.get("WorkspaceId"), resource.get("ResourceType"), quota.get("Mode"))
    return [quota.get("Id"), name, *place, *(limits.get(each) for each in ("cpu", "memory", "gpu"))]


def get_pod(arguments: argparse.Namespace) -> int:
    """Print the events of a pod."""
    with connect(arguments) as api:
        pod = arguments.pod or _first_pod(api, arguments.job)
        path = path_of("jobs", arguments.job, "pods", pod, "events")
        _print_lines(api.get("GetPodEvents", path, **_limits(arguments, "MaxEventsNum")), "Events", arguments)
    return 0


def print_logs(arguments: argparse.Namespace) -> int:
    """Print the log of a pod, and follow it if that is wanted."""
    with connect(arguments) as api:
        pod = arguments.pod or _first_pod(api, arguments.job)
        if arguments.follow:
            return follow_log(api, arguments.job, pod)
        path = path_of("jobs", arguments.job, "pods", pod, "logs")
        _print_lines(api.get("GetPodLogs", path, **_limits(arguments, "MaxLines")), "Logs", arguments)
    return 0


def _first_pod(api: Api, job: str) -> str:
    pods = api.get("GetJob", path_of("jobs", job)).get("Pods") or ()
    if not pods:
        raise CommandFailure(f"Job {job} has no pods yet.", REFUSED)
    return str(pods[0]["PodId"])


def _limits(arguments: argparse.Namespace, most: str) -> dict[str, str]:
    found = {
        most: arguments.max_events_num,
        "StartTime": getattr(arguments, "start_time", None),
        "EndTime": getattr(arguments, "end_time", None),
    }
    return {name: value for name, value in found.items() if value}


def _print_lines(answer: Answer, key: str, arguments: argparse.Namespace) -> None:
    if arguments.output == "json":
        output.write_json(answer)
        return
    for line in answer.get(key) or ():
        output.write(str(line).rstrip("\n"))


def stop_job(arguments: argparse.Namespace) -> int:
    """Stop a job, and wait until it has stopped."""
    _confirm("Stop", arguments)
    with connect(arguments) as api:
        answer = api.call("StopJob", "POST", path_of("jobs", arguments.job, "stop"))
        _report(answer, arguments)
        if not arguments.quiet:
            wait_for_end(api, arguments.job, report=sys.stderr)
    return 0


def delete_job(arguments: argparse.Namespace) -> int:
    """Delete a job that has ended."""
    _confirm("Delete", arguments)
    with connect(arguments) as api:
        _report(api.call("DeleteJob", "DELETE", path_of("jobs", arguments.job)), arguments)
    return 0


def _confirm(verb: str, arguments: argparse.Namespace) -> None:
    """Ask at a terminal; a script has said what it wants.  Raises CommandFailure."""
    if arguments.force or not sys.stdin.isatty():
        return
    if input(f"{verb} job {arguments.job}? [y/N] ").strip().lower() not in {"y", "yes"}:
        raise CommandFailure("Cancelled.", USAGE)


def _report(answer: Answer, arguments: argparse.Namespace) -> None:
    report(answer, arguments.output)


def report(answer: Answer, output_format: str) -> None:
    """Print the id of a job and of the request about it."""
    if output_format == "json":
        output.write_json(answer)
    else:
        names = ("JobId", "RequestId")
        output.write_box(names, [[answer.get(name) for name in names]])

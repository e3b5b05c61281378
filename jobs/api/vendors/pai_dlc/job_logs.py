"""GetPodLogs: the last lines of a pod's log."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from jobs.api.vendors.operations import Call, JsonObject, Kind, Operation, Parameter, Support
from jobs.api.vendors.pai_dlc.identifiers import find_job, find_replica, pod_uid
from jobs.api.vendors.pai_dlc.job_events import JOB_ID, POD_ID, POD_UID
from jobs.backends import registry
from jobs.backends.support import Fate, find_support
from jobs.live.followed_logs import LogName, find
from jobs.logs.tail import read_lines
from jobs.models import Job, JobFile, Replica
from jobs.node.wrapper.named_output import prefix
from jobs.spec import name_containers
from quotas.access import Verb

MAIN_CONTAINER: Final = "main"
DEFAULT_LINES: Final = 2000
MOST_LINES: Final = 100_000
"""Of a download; there are fewer where they are longer than `jobs.logs.tail.MOST_REACH`."""


def get_pod_logs(call: Call) -> JsonObject:
    """Answer the last lines of a pod's log, without the secrets that the console masks everywhere."""
    values = call.values
    job = find_job(call, values["JobId"], Verb.READ)
    replica = find_replica(call, job, values["PodId"])
    wanted = MOST_LINES if values["DownloadToFile"] else values["MaxLines"]
    containers = _list_containers(job, replica)
    chosen = {name.strip() for name in (values["Containers"] or "").split(",")} - {""}
    has_lines = _ran_between(replica, values["StartTime"], values["EndTime"])
    return {
        "JobId": values["JobId"],
        "PodId": values["PodId"],
        "PodUid": pod_uid(job, replica),
        "Logs": _choose(_read(job, replica, wanted), containers.all, chosen) if has_lines else [],
        "Containers": [MAIN_CONTAINER, *containers.all],
        "ContainerInfo": {"MainContainer": MAIN_CONTAINER, "SidecarContainers": list(containers.sidecars)},
    }


class _Containers(NamedTuple):
    """Names of a pod's containers besides its main one."""

    all: Sequence[str]
    sidecars: Sequence[str]


def _list_containers(job: Job, replica: Replica) -> _Containers:
    """Return the containers of a pod, where the job's cluster runs them."""
    support = find_support(registry.support_of(job.cluster.backend), "roles[].sidecars")
    role = JobFile.objects.get(job=job).spec.role(replica.role)
    if support is None or support.fate is Fate.KEPT:
        return _Containers((), ())
    names = [name for name, _container in name_containers(role)]
    return _Containers(names, names[len(role.init_containers) :])


def _choose(lines: Sequence[str], others: Sequence[str], chosen: Collection[str]) -> list[str]:
    """Return the lines of the chosen containers, or of all where none is chosen.

    In a pod's log those of the `others` stand behind their names.
    """
    begins = {prefix(name): name for name in others}
    if not chosen:
        return list(lines)
    found = []
    for line in lines:
        begin = next((begin for begin in begins if line.startswith(begin)), "")
        if begins.get(begin, MAIN_CONTAINER) in chosen:
            found.append(line.removeprefix(begin))
    return found


def _read(job: Job, replica: Replica, count: int) -> list[str]:
    name = LogName(job.pk, replica.role, replica.index, replica.attempt.number, replica.run)
    row = find(name).row
    return read_lines(row, count) if row is not None else []


def _ran_between(replica: Replica, start: datetime | None, end: datetime | None) -> bool:
    """Tell whether the pod ran at some time between both."""
    if end is not None and (replica.started_at is None or replica.started_at > end):
        return False
    return start is None or replica.ended_at is None or replica.ended_at >= start


OPERATION: Final = Operation(
    "GetPodLogs",
    "GET",
    "api/v1/jobs/<str:JobId>/pods/<str:PodId>/logs",
    get_pod_logs,
    parameters=(
        JOB_ID,
        POD_ID,
        POD_UID,
        Parameter(
            "StartTime",
            Kind.TIME,
            support=Support.PARTIAL,
            note="Lines have no times: a pod that ended before it has no lines, any other all of them.",
        ),
        Parameter(
            "EndTime",
            Kind.TIME,
            support=Support.PARTIAL,
            note="Lines have no times: a pod that started after it has no lines, any other all of them.",
        ),
        Parameter("MaxLines", Kind.INTEGER, default=DEFAULT_LINES, least=1, most=MOST_LINES),
        Parameter(
            "DownloadToFile",
            Kind.BOOLEAN,
            default=False,
            support=Support.PARTIAL,
            note="The lines of the last 4 MiB, in the same answer: clients read no files.",
        ),
        Parameter(
            "Containers",
            note="Names, separated by commas. Of the last MaxLines lines of all containers those of these.",
            support=Support.PARTIAL,
            since="1.11.6",
        ),
    ),
)
"""The operation."""

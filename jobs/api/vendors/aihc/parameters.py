"""Parameters that several operations of AIHC have."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from jobs.api.vendors.aihc.logs import DEFAULT_LINES, MOST_LINES
from jobs.api.vendors.aihc.metrics import MEASURED, TYPES
from jobs.api.vendors.aihc.names import PRIORITIES
from jobs.api.vendors.operations import Kind, Location, Parameter, Support

MOST_ON_A_PAGE: Final = 1000
MOST_PAGES: Final = 10**9
MOST_SECONDS: Final = 31 * 86_400


def in_body(*parameters: Parameter) -> tuple[Parameter, ...]:
    """Return the parameters as fields of the body."""
    return tuple(replace(each, location=Location.BODY) for each in parameters)


def in_path(*parameters: Parameter) -> tuple[Parameter, ...]:
    """Return the parameters as parts of the path."""
    return tuple(replace(each, location=Location.PATH, required=True) for each in parameters)


POOL: Final = Parameter(
    "resourcePoolId", required=True, note="Short name of a cluster; aihc-serverless stands for any cluster."
)
QUEUE_ID: Final = Parameter("queueID", support=Support.IGNORED, note="The job's id alone names the job.")
JOB_ID: Final = Parameter("jobId", required=True)
POD_NAME: Final = Parameter("podName", required=True)
POOL_TYPE: Final = Parameter(
    "resourcePoolType",
    choices=("common", "dedicatedV2", "bhcmp"),
    default="common",
    note="Clusters are of the type common; there are none of the others.",
)
KEYWORD: Final = Parameter("keyword")
ORDER: Final = Parameter("order", default="desc", note="asc or desc.")
ORDER_BY: Final = Parameter("orderBy", choices=("createdAt", "finishedAt"), default="createdAt")
PAGE_NUMBER: Final = Parameter("pageNumber", Kind.INTEGER, default=1, least=1, most=MOST_PAGES)
PAGE_NO: Final = replace(PAGE_NUMBER, name="pageNo")
PAGE_SIZE: Final = Parameter("pageSize", Kind.INTEGER, default=10, least=1, most=MOST_ON_A_PAGE)
START_TIME: Final = Parameter("startTime", Kind.ANY, note="Seconds since the epoch or ISO 8601.")
END_TIME: Final = replace(START_TIME, name="endTime")
TIMES: Final = (START_TIME, END_TIME)
LOG_TIMES: Final = tuple(
    replace(
        each,
        support=Support.PARTIAL,
        note="Lines have no times: a pod's log is inside of the range as a whole, or outside.",
    )
    for each in TIMES
)
MAX_LINES: Final = Parameter("maxLines", Kind.INTEGER, default=DEFAULT_LINES, least=1, most=MOST_LINES)
CHUNK_SIZE: Final = Parameter(
    "chunkSize", Kind.INTEGER, default=1, least=1, most=MOST_LINES, note="Lines in one text."
)
PRIORITY: Final = Parameter("priority", required=True, choices=tuple(PRIORITIES))
METRIC_TYPE: Final = Parameter(
    "metricType",
    required=True,
    choices=TYPES,
    support=Support.PARTIAL,
    note=f"Measured are {', '.join(MEASURED)}; the others have no values.",
)
TIME_STEP: Final = Parameter(
    "timeStep", Kind.INTEGER, default=300, least=1, most=MOST_SECONDS, note="Seconds."
)
RATE_INTERVAL: Final = Parameter(
    "rateInterval", Kind.ANY, support=Support.IGNORED, note="No measured metric is a rate."
)
METRICS: Final = (METRIC_TYPE, *TIMES, TIME_STEP, RATE_INTERVAL)
TERMINAL_TIMES: Final = tuple(
    Parameter(
        name,
        Kind.INTEGER,
        default=seconds,
        least=1,
        most=3600,
        support=Support.IGNORED,
        note="The console's own limits apply.",
    )
    for name, seconds in (("handshakeTimeoutSecond", 30), ("pingTimeoutSecond", 900))
)

PRIORITY_NOTE: Final = "Only the console's admins change priorities, and only of jobs that wait."
DELETE_NOTE: Final = "A job has to end before it can be deleted."
METRICS_NOTE: Final = "GpuUsage and CpuUsage of the last hour, and the present MemoryAllocation."
TERMINAL_NOTE: Final = (
    "The address works once within 30 seconds; its frames are those of the web terminals of PAI-DLC. The "
    "terminal ends with the access key that requested it."
)
PODS_NOTE: Final = "Addresses of pods and their variables are left out; at most 1,000 pods."
TIMES_NOTE: Final = "The console does not record when a cluster or a quota was made: times are 1970-01-01."
CREATE_NOTE: Final = (
    "Keys of the body without an effect here are kept in the job file; a queue that is called default and "
    "does not exist is chosen by the console."
)

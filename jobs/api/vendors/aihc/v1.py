"""The operations of version 1, by paths below `/api/v1`, as the command line calls them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from django.http import HttpResponseBase, JsonResponse

from jobs.api.vendors.aihc import events, jobs, logs, metrics, parameters, pools, terminals
from jobs.api.vendors.aihc.parameters import in_body, in_path
from jobs.api.vendors.operations import Call, JsonObject, Operation, Parameter, Support

_JOBS: Final = "api/v1/aijobs"
_JOB: Final = f"{_JOBS}/<str:jobId>"
_POD: Final = f"{_JOB}/pods/<str:podName>"
_POOLS: Final = "api/v1/resourcepools"
_POOL: Final = f"{_POOLS}/<str:poolId>"
_OF_JOB: Final = (*in_path(parameters.JOB_ID), parameters.POOL)
_OF_POD: Final = (*_OF_JOB, *in_path(parameters.POD_NAME))
_POOL_ID: Final = in_path(Parameter("poolId", note="Short name of a cluster."))
_IN_QUERY: Final = Parameter("resourcePoolId", support=Support.IGNORED, note="The path names the pool.")
_FRAMEWORK: Final = Parameter(
    "jobFramework", support=Support.IGNORED, note="The job's id alone names the job."
)
_PAGE: Final = (parameters.PAGE_NO, parameters.PAGE_SIZE)
_LIST: Final = (
    Parameter("orderBy", default="name", support=Support.IGNORED, note="Always by name."),
    replace(parameters.ORDER, default="asc"),
    parameters.KEYWORD,
)


def _events(view: Callable[[Call], JsonObject]) -> Callable[[Call], HttpResponseBase]:
    """Return a view that answers events both ways that clients read them: as `result`, and without."""

    def answer(call: Call) -> HttpResponseBase:
        found = view(call)
        return JsonResponse({"requestId": call.request_id, "result": found, **found})

    return answer


JOBS: Final = (
    Operation(
        "CreateJob",
        "POST",
        _JOBS,
        jobs.create_job,
        "submit",
        (parameters.POOL,),
        format="aihc",
        note=parameters.CREATE_NOTE,
    ),
    Operation(
        "ListJobs",
        "GET",
        _JOBS,
        jobs.describe_jobs_v1,
        parameters=(
            parameters.POOL,
            Parameter("queue", note="Short name of a quota, or WORKSPACE/CLUSTER/QUOTA."),
            Parameter("Queue", note="The same, as the command line spells it."),
            parameters.ORDER_BY,
            parameters.ORDER,
            *_PAGE,
        ),
    ),
    Operation(
        "GetJob",
        "GET",
        _JOB,
        jobs.describe_job_v1,
        parameters=_OF_JOB,
        support=Support.PARTIAL,
        note=parameters.PODS_NOTE,
    ),
    Operation(
        "UpdateJob",
        "PUT",
        _JOB,
        jobs.modify_job,
        "admin",
        (*_OF_JOB, *in_body(parameters.PRIORITY)),
        support=Support.PARTIAL,
        note=parameters.PRIORITY_NOTE,
    ),
    Operation(
        "DeleteJob",
        "DELETE",
        _JOB,
        jobs.delete_job,
        "stop",
        _OF_JOB,
        support=Support.PARTIAL,
        note=parameters.DELETE_NOTE,
    ),
    Operation("StopJob", "POST", f"{_JOB}/stop", jobs.stop_job, "stop", _OF_JOB),
    Operation(
        "GetJobEvents",
        "GET",
        f"{_JOB}/events",
        _events(events.describe_job_events),
        parameters=(*_OF_JOB, _FRAMEWORK, *parameters.TIMES),
    ),
    Operation(
        "GetJobMetrics",
        "GET",
        f"{_JOB}/metrics",
        metrics.describe_job_metrics_v1,
        parameters=(*_OF_JOB, *parameters.METRICS),
        support=Support.PARTIAL,
        note=parameters.METRICS_NOTE,
    ),
    Operation("GetJobNodes", "GET", f"{_JOB}/nodes", jobs.describe_job_nodes_v1, parameters=_OF_JOB),
    Operation(
        "GetPodEvents",
        "GET",
        f"{_POD}/events",
        _events(events.describe_pod_events),
        parameters=(*_OF_POD, _FRAMEWORK, *parameters.TIMES),
    ),
    Operation(
        "GetPodLogs",
        "GET",
        f"{_POD}/logs",
        logs.describe_pod_logs,
        parameters=(
            *_OF_POD,
            *parameters.LOG_TIMES,
            parameters.MAX_LINES,
            replace(parameters.CHUNK_SIZE, name="chunk"),
        ),
    ),
    Operation(
        "GetWebTerminal",
        "GET",
        f"{_POD}/webterminal",
        terminals.describe_job_webterminal_v1,
        "exec",
        (*_OF_POD, *parameters.TERMINAL_TIMES),
        support=Support.PARTIAL,
        note=parameters.TERMINAL_NOTE,
    ),
)

POOLS: Final = (
    Operation(
        "ListResourcePools",
        "GET",
        _POOLS,
        pools.describe_pools_v1,
        parameters=(
            Parameter("keywordType", choices=("name", "id"), default="name"),
            *_LIST,
            *_PAGE,
        ),
        support=Support.PARTIAL,
        note=parameters.TIMES_NOTE,
    ),
    Operation(
        "GetResourcePool",
        "GET",
        _POOL,
        pools.describe_pool_v1,
        parameters=(*_POOL_ID, _IN_QUERY),
        support=Support.PARTIAL,
        note=parameters.TIMES_NOTE,
    ),
    Operation(
        "ListQueues",
        "GET",
        f"{_POOL}/queue",
        pools.describe_queues_v1,
        parameters=(
            *_POOL_ID,
            Parameter("keywordType", support=Support.IGNORED, note="Ids and names are searched."),
            *_LIST,
            *_PAGE,
        ),
        support=Support.PARTIAL,
        note=parameters.TIMES_NOTE,
    ),
    Operation(
        "GetQueue",
        "GET",
        f"{_POOL}/queue/<str:queue>",
        pools.describe_queue_v1,
        parameters=(
            *_POOL_ID,
            *in_path(Parameter("queue")),
            _IN_QUERY,
            Parameter("queueName", support=Support.IGNORED, note="The path names the queue."),
        ),
        support=Support.PARTIAL,
        note=parameters.TIMES_NOTE,
    ),
)

OPERATIONS: Final = (*JOBS, *POOLS)

"""The operations of version 2: `/?action=NAME`, as Baidu's SDK calls them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from jobs.api.vendors.aihc import events, jobs, logs, metrics, parameters, pools, terminals
from jobs.api.vendors.aihc.parameters import in_body
from jobs.api.vendors.operations import Call, JsonObject, Kind, Operation, Parameter, Support

_POST: Final = "POST"
_GET: Final = "GET"
_IN_POOL: Final = (parameters.POOL, parameters.QUEUE_ID)
_OF_JOB: Final = (*_IN_POOL, *in_body(parameters.JOB_ID))
_PAGE: Final = (parameters.PAGE_NUMBER, parameters.PAGE_SIZE)


def _on_job(
    name: str,
    view: Callable[[Call], JsonObject],
    *more: Parameter,
    scope: str = "read",
    support: Support = Support.FULL,
    note: str = "",
) -> Operation:
    """Return an operation on one job, which the body names."""
    return Operation(name, _POST, "", view, scope, (*_OF_JOB, *in_body(*more)), "", support, note)


JOBS: Final = (
    Operation(
        "CreateJob",
        _POST,
        "",
        jobs.create_job,
        "submit",
        (parameters.POOL, Parameter("queueID", note="Short name of a quota, or WORKSPACE/CLUSTER/QUOTA.")),
        format="aihc",
        note=parameters.CREATE_NOTE,
    ),
    Operation(
        "DescribeJobs",
        _POST,
        "",
        jobs.describe_jobs,
        parameters=(
            parameters.POOL,
            Parameter("queueID", note="Short name of a quota, or WORKSPACE/CLUSTER/QUOTA."),
            *in_body(
                Parameter("queue"),
                Parameter("status"),
                Parameter("keywordType", choices=("name", "queueName"), default="name"),
                parameters.KEYWORD,
                parameters.ORDER_BY,
                parameters.ORDER,
                *_PAGE,
            ),
        ),
    ),
    _on_job(
        "DescribeJob",
        jobs.describe_job,
        Parameter("needDetail", Kind.BOOLEAN, default=False, note="With the pods."),
        support=Support.PARTIAL,
        note=parameters.PODS_NOTE,
    ),
    _on_job("StopJob", jobs.stop_job, scope="stop"),
    _on_job("DeleteJob", jobs.delete_job, scope="stop", support=Support.PARTIAL, note=parameters.DELETE_NOTE),
    _on_job(
        "ModifyJob",
        jobs.modify_job,
        parameters.PRIORITY,
        scope="admin",
        support=Support.PARTIAL,
        note=parameters.PRIORITY_NOTE,
    ),
    _on_job("DescribeJobNodes", jobs.describe_job_nodes),
    _on_job("DescribeJobEvents", events.describe_job_events, *parameters.TIMES),
    _on_job("DescribePodEvents", events.describe_pod_events, parameters.POD_NAME, *parameters.TIMES),
    _on_job(
        "DescribeJobLogs",
        logs.describe_job_logs,
        parameters.POD_NAME,
        Parameter("keywords", note="Lines that contain this text, without regard to case."),
        *parameters.LOG_TIMES,
        parameters.MAX_LINES,
        parameters.CHUNK_SIZE,
        Parameter("marker", note="The nextMarker of an earlier answer."),
    ),
    _on_job(
        "DescribeJobMetrics",
        metrics.describe_job_metrics,
        *parameters.METRICS,
        support=Support.PARTIAL,
        note=parameters.METRICS_NOTE,
    ),
    _on_job(
        "DescribeJobWebterminal",
        terminals.describe_job_webterminal,
        parameters.POD_NAME,
        *parameters.TERMINAL_TIMES,
        scope="exec",
        support=Support.PARTIAL,
        note=parameters.TERMINAL_NOTE,
    ),
)
"""Operations on jobs: POST with a JSON body."""

POOLS: Final = (
    Operation(
        "DescribeResourcePools",
        _GET,
        "",
        pools.describe_pools,
        parameters=(
            parameters.POOL_TYPE,
            Parameter(
                "keywordType", choices=("resourcePoolName", "resourcePoolId"), default="resourcePoolName"
            ),
            parameters.KEYWORD,
            Parameter("orderBy", default="resourcePoolName", note="createdAt orders by name too."),
            replace(parameters.ORDER, default="ASC"),
            *_PAGE,
        ),
        support=Support.PARTIAL,
        note=parameters.TIMES_NOTE,
    ),
    Operation(
        "DescribeResourcePool",
        _GET,
        "",
        pools.describe_pool,
        parameters=(parameters.POOL,),
        support=Support.PARTIAL,
        note=parameters.TIMES_NOTE,
    ),
    Operation("DescribeResourcePoolOverview", _GET, "", pools.describe_overview),
    Operation(
        "DescribeResourcePoolConfiguration",
        _GET,
        "",
        pools.describe_configuration,
        parameters=(parameters.POOL,),
        support=Support.PARTIAL,
        note="The same for every cluster.",
    ),
    Operation(
        "DescribeQueues",
        _GET,
        "",
        pools.describe_queues,
        parameters=(
            parameters.POOL,
            Parameter("keywordType", support=Support.IGNORED, note="Ids and names are searched."),
            parameters.KEYWORD,
            *_PAGE,
        ),
        support=Support.PARTIAL,
        note=parameters.TIMES_NOTE,
    ),
    Operation(
        "DescribeQueue",
        _GET,
        "",
        pools.describe_queue,
        parameters=(Parameter("queueId", required=True, note="Id of a queue, or WORKSPACE/CLUSTER/QUOTA."),),
        support=Support.PARTIAL,
        note=parameters.TIMES_NOTE,
    ),
)
"""Operations on resource pools and queues: GET with everything in the query."""

OPERATIONS: Final = (*JOBS, *POOLS)

"""Jobs: create, list, describe, stop, delete and change, of both versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.db.models import F, Q, QuerySet

from jobs import submission
from jobs.access.sessions import current_replicas
from jobs.api.vendors.aihc import creation, names, shapes
from jobs.api.vendors.operations import Call, InvalidParameters, JsonObject, WrongValue
from jobs.models import Job
from quotas.access import Verb

_ORDERS: Final = ("asc", "desc")


def create_job(call: Call) -> JsonObject:
    """Create a job, once for each signature."""
    return _render_name(creation.create(call))


def describe_jobs(call: Call) -> JsonObject:
    """Return a page of a pool's jobs, as version 2 does."""
    values = call.values
    rows = _filter(call, values.get("queue") or values.get("queueID") or "")
    if values["status"]:
        rows = rows.filter(names.filter_status(values["status"]))
    if keyword := values["keyword"]:
        column = "quota__slug" if values["keywordType"] == "queueName" else "name"
        rows = rows.filter(**{f"{column}__icontains": keyword})
    page = _page(rows, values, values["pageNumber"])
    return {
        "totalCount": rows.count(),
        "pageNumber": values["pageNumber"],
        "pageSize": values["pageSize"],
        "jobs": [shapes.render_v2(each) for each in shapes.load(call, page)],
    }


def describe_jobs_v1(call: Call) -> JsonObject:
    """Return a page of a pool's jobs, as version 1 does."""
    values = call.values
    rows = _filter(call, values["queue"] or values["Queue"] or "")
    page = _page(rows, values, values["pageNo"])
    return {
        "total": rows.count(),
        "jobs": [shapes.render_v1(each) for each in shapes.load(call, page)],
        **{name: values[name] for name in ("orderBy", "order", "pageNo", "pageSize")},
    }


def describe_job(call: Call) -> JsonObject:
    """Return one job, as version 2 does: flat as in its example, and as `job` as in its table."""
    found = _load(call)
    whole = shapes.render_v2(found) | {"jobTimeLine": shapes.render_timeline(found)}
    if call.values["needDetail"]:
        whole |= {"pods": shapes.render_pods(found), "historyPods": []}
    return {**whole, "job": whole}


def describe_job_v1(call: Call) -> JsonObject:
    """Return one job with its pods, as version 1 does."""
    found = _load(call)
    pods = shapes.render_pods(found)
    items = max(len(pods), found.spec.replicas)
    return {**shapes.render_v1(found), "podList": {"listMeta": {"totalItems": items}, "pods": pods}}


def stop_job(call: Call) -> JsonObject:
    """Ask for the end of a job; one that has ended stays as it is."""
    job = names.find_job(call, Verb.CONTROL)
    submission.stop(call.person, job)
    return _render_name(job)


def delete_job(call: Call) -> JsonObject:
    """Delete an ended job."""
    job = names.find_job(call, Verb.CONTROL)
    submission.delete(call.person, job)
    return _render_name(job)


def modify_job(call: Call) -> JsonObject:
    """Change the priority of a job that waits."""
    job = names.find_job(call, Verb.CONTROL)
    submission.prioritise(call.person, job, names.PRIORITIES[call.values["priority"]])
    return _render_name(job)


def describe_job_nodes(call: Call) -> JsonObject:
    """Return the names of the nodes on which a job runs, as version 2 does."""
    job, nodes = _nodes(call)
    return {"jobId": names.job_id(job), "nodes": nodes}


def describe_job_nodes_v1(call: Call) -> JsonObject:
    """Return the names of the nodes on which a job runs, as version 1 does."""
    job, nodes = _nodes(call)
    return {"jobId": names.job_id(job), "nodeName": nodes}


def _nodes(call: Call) -> tuple[Job, list[str]]:
    job = names.find_job(call, Verb.READ)
    rows = current_replicas(job).order_by("ordinal").values_list("node", flat=True)
    return job, shapes.distinct(rows[: shapes.MOST_PODS])


def _render_name(job: Job) -> JsonObject:
    return {"jobId": names.job_id(job), "jobName": job.name}


def _load(call: Call) -> shapes.RenderedJob:
    return shapes.load(call, [names.find_job(call, Verb.LIST)])[0]


def _filter(call: Call, queue: str) -> QuerySet[Job]:
    rows: QuerySet[Job] = Job.objects.visible_to(call.person)
    pool = call.values["resourcePoolId"]
    if pool != names.MANAGED_POOL:
        rows = rows.filter(cluster__slug=pool)
    return rows.filter(_in_queue(queue)) if queue else rows


def _in_queue(queue: str) -> Q:
    """Return the condition of jobs in a queue, by its short name or its address."""
    target = submission.parse_target(queue)
    if target == submission.ANYWHERE:
        return Q(quota__slug=queue)
    return Q(workspace__slug=target.workspace, cluster__slug=target.cluster, quota__slug=target.quota)


def _page(rows: QuerySet[Job], values: Mapping[str, Any], number: int) -> list[Job]:
    """Return a page of jobs in the requested order.  Raises InvalidParameters."""
    order = (values["order"] or "desc").lower()
    if order not in _ORDERS:
        raise InvalidParameters([WrongValue("order", " | ".join(_ORDERS))])
    is_descending = order == "desc"
    if values["orderBy"] == "finishedAt":
        ended = F("ended_at")
        column: Any = ended.desc(nulls_last=True) if is_descending else ended.asc(nulls_last=True)
        rows = rows.order_by(column, "-pk" if is_descending else "pk")
    else:
        rows = rows.order_by("-pk" if is_descending else "pk")
    start, size = (number - 1) * values["pageSize"], values["pageSize"]
    return list(rows.select_related("owner", "workspace", "cluster", "quota")[start : start + size])

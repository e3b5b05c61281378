"""Jobs: create, list, describe, stop, delete and change, of both versions."""

from __future__ import annotations

from typing import Any, Final

from django.db.models import F, Q, QuerySet

from jobs import submission
from jobs.access.sessions import current_replicas
from jobs.api.vendors.aihc import creation, names, shapes
from jobs.api.vendors.operations import Call, InvalidParameters, JsonObject, WrongValue
from jobs.models import Job
from jobs.search.job_counts import count_jobs
from jobs.search.job_pages import JobListing, first_keys, load_jobs
from quotas.access import Verb

_ORDERS: Final = ("asc", "desc")


def create_job(call: Call) -> JsonObject:
    """Create a job, once for each signature."""
    return _render_name(creation.create(call))


def describe_jobs(call: Call) -> JsonObject:
    """Return a page of a pool's jobs, as version 2 does."""
    values = call.values
    wanted = _find_place(call, values.get("queue") or values.get("queueID") or "")
    if values["status"]:
        wanted &= names.filter_status(values["status"])
    if keyword := values["keyword"]:
        column = "quota__slug" if values["keywordType"] == "queueName" else "name"
        wanted &= Q(**{f"{column}__icontains": keyword})
    page = _page(call, wanted, values["pageNumber"])
    return {
        "totalCount": count_jobs(_visible(call, wanted)),
        "pageNumber": values["pageNumber"],
        "pageSize": values["pageSize"],
        "jobs": [shapes.render_v2(each) for each in shapes.load(call, page)],
    }


def describe_jobs_v1(call: Call) -> JsonObject:
    """Return a page of a pool's jobs, as version 1 does."""
    values = call.values
    wanted = _find_place(call, values["queue"] or values["Queue"] or "")
    page = _page(call, wanted, values["pageNo"])
    return {
        "total": count_jobs(_visible(call, wanted)),
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


def _visible(call: Call, wanted: Q) -> QuerySet[Job]:
    return Job.objects.visible_to(call.person).filter(wanted)


def _find_place(call: Call, queue: str) -> Q:
    """Return the condition of jobs in the pool, and in a queue if one is named."""
    pool = call.values["resourcePoolId"]
    place = Q() if pool == names.MANAGED_POOL else Q(cluster__slug=pool)
    return place & _in_queue(queue) if queue else place


def _in_queue(queue: str) -> Q:
    """Return the condition of jobs in a queue, by its short name or its address."""
    target = submission.parse_target(queue)
    if target == submission.ANYWHERE:
        return Q(quota__slug=queue)
    return Q(workspace__slug=target.workspace, cluster__slug=target.cluster, quota__slug=target.quota)


def _page(call: Call, wanted: Q, number: int) -> list[Job]:
    """Return a page of jobs in the requested order.  Raises InvalidParameters."""
    values = call.values
    order = (values["order"] or "desc").lower()
    if order not in _ORDERS:
        raise InvalidParameters([WrongValue("order", " | ".join(_ORDERS))])
    is_descending = order == "desc"
    start, size = (number - 1) * values["pageSize"], values["pageSize"]
    if values["orderBy"] == "finishedAt":
        ended = F("ended_at")
        column: Any = ended.desc(nulls_last=True) if is_descending else ended.asc(nulls_last=True)
        rows = _visible(call, wanted).order_by(column, "-pk" if is_descending else "pk")
        return list(rows.select_related("owner", "workspace", "cluster", "quota")[start : start + size])
    found = first_keys(
        call.person, JobListing(), start + size, descending=is_descending, extra=wanted, is_limited=False
    )
    return load_jobs(found.keys[start:])

"""Parts of one job over the native API: replicas, endpoints, events, logs."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django.db.models import QuerySet
from django.http import HttpResponseBase
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, PolymorphicProxySerializer, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.access import sessions
from jobs.api.native import shapes
from jobs.api.native.base import ABSENT, AFTER, LIMIT, REFUSED, NativeView
from jobs.live import log_responses, merged_responses
from jobs.models import Event, Job, Replica
from quotas.access import Verb, can

EVENTS: Final = 100

WHICH_LOG = (
    OpenApiParameter("attempt", int, description="the newest when left out"),
    OpenApiParameter("run", int, description="the newest when left out"),
    OpenApiParameter("stream", str, enum=["output"]),
    OpenApiParameter("offset", int, description="negative: from the end, moved to the beginning of a line"),
)


def replicas_of(job: Job) -> QuerySet[Replica]:
    """Return the replicas of the job's current run, in their order."""
    return sessions.current_replicas(job).order_by("ordinal").prefetch_related("endpoints")


def first_replicas(view: NativeView, job: Job, *, enter: bool) -> tuple[list[dict[str, Any]], str | None]:
    """Return the replicas that a job's own answer lists, and the address of the others."""
    rows = list(replicas_of(job)[: shapes.MOST_REPLICAS + 1])
    page = rows[: shapes.MOST_REPLICAS]
    more = None
    if len(rows) > len(page):
        path = reverse("api_job_tasks", kwargs={"public_id": job.public_id})
        more = view.request.build_absolute_uri(f"{path}?after={page[-1].ordinal}")
    return render_replicas(view, job, page, enter=enter), more


def render_replicas(view: NativeView, job: Job, rows: list[Replica], *, enter: bool) -> list[dict[str, Any]]:
    """Return ReplicaShapes; with links to the endpoints for a person who may `enter` and has the scope."""
    opened = enter and view.allows("exec")
    return [
        shapes.render_replica(
            row, job.attempt_number, lambda slug: opening_url(view, slug) if opened else None
        )
        for row in rows
    ]


def opening_url(view: NativeView, slug: str) -> str:
    """The link that opens an endpoint in the browser of somebody who is signed in."""
    return view.request.build_absolute_uri(reverse("endpoint_open", kwargs={"slug": slug}))


class Replicas(NativeView):
    """The replicas of a job's current run."""

    key: ClassVar = "replicas"

    @extend_schema(
        operation_id="jobs_replicas", parameters=[AFTER, LIMIT], responses={200: shapes.ReplicaPage, **ABSENT}
    )
    def get(self, request: Request, public_id: str) -> Response:
        """List them in their order, by keys."""
        job = self.job(public_id, Verb.READ)
        rows = replicas_of(job)
        if "after" in request.query_params:
            rows = rows.filter(ordinal__gt=self.number("after", 0))
        page, following = self.page(rows, shapes.MOST_REPLICAS, "ordinal")
        replicas = render_replicas(self, job, page, enter=can(self.person, Verb.ENTER, job))
        return Response({self.key: replicas, "next": following})


class Tasks(Replicas):
    """The same under the name and in the shape of releases before 0.2."""

    key = "tasks"

    @extend_schema(
        operation_id="jobs_tasks",
        deprecated=True,
        parameters=[AFTER, LIMIT],
        responses={200: shapes.TaskPage, **ABSENT},
    )
    def get(self, request: Request, public_id: str) -> Response:
        """List them as `tasks`; use `replicas` instead."""
        return super().get(request, public_id)


class Endpoints(NativeView):
    """Endpoints of a job's replicas."""

    scopes = {"GET": "exec"}

    @extend_schema(
        operation_id="jobs_endpoints",
        responses={200: shapes.ServedShape(many=True), **ABSENT},
    )
    def get(self, request: Request, public_id: str) -> Response:
        """Every endpoint of the current run, with the link that opens it."""
        job = self.job(public_id, Verb.ENTER)
        served = []
        for row in replicas_of(job).filter(endpoints__isnull=False).distinct():
            shown = shapes.render_replica(row, job.attempt_number, lambda slug: opening_url(self, slug))
            served += [{"role": row.role, "index": row.index, **each} for each in shown["endpoints"]]
        return Response(served)


class Events(NativeView):
    """Events of a job."""

    @extend_schema(
        operation_id="jobs_events", parameters=[AFTER, LIMIT], responses={200: shapes.EventPage, **ABSENT}
    )
    def get(self, request: Request, public_id: str) -> Response:
        """In order, by keys."""
        job = self.job(public_id, Verb.READ)
        rows = Event.objects.filter(job=job, pk__gt=self.number("after", 0)).select_related("actor")
        page, following = self.page(rows.order_by("pk"), EVENTS)
        events = [shapes.EventShape.render(row, actor=row.actor and row.actor.get_username()) for row in page]
        return Response({"events": events, "next": following})


class Logs(NativeView):
    """The bytes of a replica's log."""

    @extend_schema(
        operation_id="jobs_logs",
        parameters=[
            OpenApiParameter("role", str, required=True),
            OpenApiParameter("index", int),
            *WHICH_LOG,
            OpenApiParameter("limit", int, description="bytes, or matches with `q`"),
            OpenApiParameter("q", str, description="answer the lines that contain it, as JSON"),
            OpenApiParameter("regex", bool, description="`q` is an extended regular expression"),
            OpenApiParameter(
                "level",
                str,
                enum=["error", "warning"],
                description="answer the lines of this level or worse, as `q` does",
            ),
            OpenApiParameter(
                "line", int, description="answer `line` and its `offset`, as JSON; null: ask once more"
            ),
            OpenApiParameter(
                "line_at", int, description="answer the number of the `line` at this `offset`, likewise"
            ),
            OpenApiParameter(
                "timestamps",
                bool,
                description="put the time (RFC 3339, UTC) before each line, where it is known",
            ),
            OpenApiParameter(
                "times",
                bool,
                description="answer `times`, as JSON: pairs of an offset and the Unix time (ms) at which the "
                "bytes from there on came",
            ),
            OpenApiParameter("download", bool, description="the whole log, as an attachment"),
            *(
                OpenApiParameter(name, kind, OpenApiParameter.HEADER, response=[200], description=about)
                for name, kind, about in (
                    ("X-Next-Offset", int, "where to go on"),
                    ("X-Size", int, "of the log so far"),
                    ("X-State", str, "open, complete, truncated or gone"),
                )
            ),
        ],
        responses={
            (200, "text/plain"): OpenApiResponse(OpenApiTypes.BINARY, description="the bytes as written"),
            (200, "application/json"): shapes.MatchesShape,
            **REFUSED,
            **ABSENT,
        },
    )
    def get(self, request: Request, public_id: str) -> HttpResponseBase:
        """A slice by offset; repeated from `X-Next-Offset` on until `X-State` is not open."""
        return log_responses.respond(self.job(public_id, Verb.READ), request.query_params.dict())


class MergedLogs(NativeView):
    """The logs of all replicas of a run, line by line in the order of time."""

    @extend_schema(
        operation_id="jobs_logs_merged",
        parameters=[
            OpenApiParameter("attempt", int),
            OpenApiParameter("run", int),
            OpenApiParameter("after", str, description="a cursor, or `start`; without it the last lines"),
            OpenApiParameter("before", str, description="a cursor"),
            OpenApiParameter("partial", bool, description="with `after`: unfinished lines too"),
            OpenApiParameter("replica", str, description="with `offset`: from that line of ROLE/INDEX on"),
            OpenApiParameter("offset", int),
            OpenApiParameter("limit", int, description="bytes; of a search, matches"),
            OpenApiParameter("q", str, description="find lines instead, from `after` on, by time"),
            OpenApiParameter("regex", bool, description="`q` is an extended regular expression"),
            OpenApiParameter("level", str, description="find lines of this level: error or warning"),
            OpenApiParameter(
                "download", bool, description="all lines as text, each behind its time and replica"
            ),
        ],
        responses={
            (200, "application/json"): PolymorphicProxySerializer(
                "MergedLogAnswer",
                [shapes.MergedLogShape, shapes.MergedMatchesShape],
                resource_type_field_name=None,
            ),
            (200, "text/plain"): OpenApiResponse(OpenApiTypes.BINARY, description="all lines"),
            **REFUSED,
            **ABSENT,
        },
    )
    def get(self, request: Request, public_id: str) -> HttpResponseBase:
        """Repeated with `after` until `state` is complete and there are no lines."""
        return merged_responses.respond(self.job(public_id, Verb.READ), request.query_params.dict())

"""Server-Sent Events over the native API: what a job is, and what it writes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from django.http import HttpRequest, HttpResponseBase
from django.utils import translation
from django.views.decorators.http import require_GET
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.native import problems, shapes
from jobs.api.native.auth import Caller, MissingScope, caller
from jobs.api.native.base import ABSENT, REFUSED, NativeView
from jobs.api.native.parts import WHICH_LOG
from jobs.live import bus, sse
from jobs.live.connection import EventSource, StreamViewer, open_stream, workspace_of_job
from jobs.live.inbox import Inbox
from jobs.live.log_reader import LogReader, parse_log_request
from jobs.live.merged_reader import MergedReader, parse_merged_request
from jobs.live.thread_pool import run_in_thread
from jobs.models import Job
from jobs.submission.access import find_job
from quotas.access import Verb


class StateSource:
    """`state` events: the job as `GET jobs/{id}` tells it, at first and whenever that changes."""

    def __init__(self, job: Job, inbox: Inbox, language: str) -> None:
        self._job = job
        self._inbox = inbox
        self._language = language
        self._told = b""
        self.over = False

    async def take(self) -> bytes:
        """The state, when it is another than was told last."""
        if self._inbox.look() is None and self._told:
            return b""
        now = await run_in_thread(self._state)
        if now == self._told:
            return b""
        self._told = now
        return now

    def _state(self) -> bytes:
        rows = Job.objects.select_related("owner", "workspace", "cluster", "quota")
        row = rows.get(pk=self._job.pk)
        self.over = row.is_ended
        with translation.override(self._language):
            return sse.encode_event("state", JSONRenderer().render(shapes.JobShape.render(row)))

    async def close(self) -> None:
        """Holds nothing."""


@require_GET
def stream(request: HttpRequest, public_id: str) -> HttpResponseBase:
    """`state`, and with `log=ROLE/INDEX` or `merged=1` what is written; ends when the job and the log do."""
    try:
        last = request.headers.get("Last-Event-ID", "")
        log = parse_log_request(request.GET.dict(), last)
        merged = parse_merged_request(request.GET.dict(), last)
        verb = Verb.READ if log or merged is not None else Verb.LIST
        visit, job = _visit(request, public_id, verb)
        language = translation.get_language()
        followed: list[StateSource | LogReader | MergedReader] = []

        def sources(inbox: Inbox, wake: asyncio.Event) -> Sequence[EventSource]:
            followed.append(StateSource(job, inbox, language))
            if log:
                followed.append(LogReader(job, *log, wake))
            if merged is not None:
                followed.append(MergedReader(job, merged, wake))
            return followed

        only = frozenset({bus.job_name(job.public_id)})
        return open_stream(visit, sources, only=only, over=lambda: all(source.over for source in followed))
    except Exception as error:  # noqa: BLE001  # whatever it is, it is told as a problem
        return problems.answer(error)


def _visit(request: HttpRequest, public_id: str, verb: Verb) -> tuple[StreamViewer, Job]:
    who = caller(request)
    job = find_job(who.user, public_id, verb)
    mine = job.owner_id == who.user.pk or job.is_public
    if verb is Verb.READ and not mine and who.scopes is not None and "admin" not in who.scopes:
        raise MissingScope("admin")
    return StreamViewer(who.user.pk, frozenset({job.workspace_id}), partial(_look, who, job.pk, verb)), job


def _look(who: Caller, job_pk: int, verb: Verb) -> frozenset[int] | None:
    return workspace_of_job(who.still(), job_pk, verb)


class StreamSchema(NativeView):
    """The stream as the schema shows it: Django REST framework itself has no streams of events."""

    @extend_schema(
        operation_id="jobs_stream",
        parameters=[
            OpenApiParameter("log", str, description="ROLE/INDEX: follow this log too"),
            OpenApiParameter("merged", bool, description="follow the logs of all replicas, by time"),
            OpenApiParameter("after", str, description="with `merged`: a cursor, or `start`"),
            *WHICH_LOG,
            OpenApiParameter("Last-Event-ID", str, OpenApiParameter.HEADER),
        ],
        responses={
            (200, "text/event-stream"): OpenApiResponse(
                OpenApiTypes.STR,
                description="`state`: a job; `log`: a JSON string, id `<attempt>.<run>.<offset after it>`; "
                "`attempt`: what follows is of another attempt or run; `end`: the log is whole; `merged`: "
                "lines as `GET jobs/{id}/logs/merged` answers them, id the cursor after them; `ping`.",
            ),
            429: shapes.ProblemDetails,
            **REFUSED,
            **ABSENT,
        },
    )
    def get(self, request: Request, public_id: str) -> Response:
        """Server-Sent Events until the job, and the log that was asked for, have ended."""
        raise NotImplementedError


# Where the schema looks for what it should say of a view.
stream.cls, stream.initkwargs = StreamSchema, {}  # type: ignore[attr-defined]

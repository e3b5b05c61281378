"""The streams of events that the pages listen to, as static/console/live.js expects them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.views.decorators.http import require_GET

from jobs.live import bus, cursor
from jobs.live.connection import EventSource, StreamViewer, open_stream, visible_workspaces, workspace_of_job
from jobs.live.cursor import Cursor
from jobs.live.inbox import Inbox
from jobs.live.limits import RETRY_AFTER_S, LimitReached
from jobs.live.log_reader import LogReader, parse_log_request
from jobs.live.log_responses import BadNumber
from jobs.live.merged_reader import MergedReader, parse_merged_request
from jobs.models import Job
from jobs.submission.access import find_job
from quotas.access import Verb
from quotas.accounts import sessions
from quotas.models import User


class SignedOut(Exception):
    """The request is anonymous."""


def _everywhere(request: HttpRequest) -> StreamViewer:
    user, session = _person(request)
    look = partial(_look_everywhere, session)
    return StreamViewer(user.pk, visible_workspaces(user) or frozenset(), look)


def _at_job(request: HttpRequest, public_id: str, verb: Verb) -> tuple[StreamViewer, Job]:
    user, session = _person(request)
    job = find_job(user, public_id, verb)
    return StreamViewer(
        user.pk, frozenset({job.workspace_id}), partial(_look_at_job, session, job.pk, verb)
    ), job


def _person(request: HttpRequest) -> tuple[User, str]:
    if not isinstance(request.user, User) and not request.user.is_authenticated:
        raise SignedOut
    return request.user, sessions.reference(request)


def _look_everywhere(session: str) -> frozenset[int] | None:
    return visible_workspaces(sessions.person_of(session))


def _look_at_job(session: str, job_pk: int, verb: Verb) -> frozenset[int] | None:
    return workspace_of_job(sessions.person_of(session), job_pk, verb)


def _since(request: HttpRequest) -> Cursor | None:
    """Return the cursor of the page, or that of the browser's reconnection."""
    return cursor.parse(request.GET.get("since")) or cursor.parse(request.headers.get("Last-Event-ID"))


def _full() -> HttpResponse:
    return HttpResponse(status=429, headers={"Retry-After": str(RETRY_AFTER_S)})


@require_GET
def live(request: HttpRequest) -> HttpResponseBase:
    """Stream changes in the person's workspaces: `changed` by name, `reset` after a gap."""
    try:
        return open_stream(_everywhere(request), since=_since(request))
    except SignedOut:
        return HttpResponse(status=401)
    except LimitReached:
        return _full()


@require_GET
def job_stream(request: HttpRequest, public_id: str) -> HttpResponseBase:
    """Stream changes of one job and, with `log=ROLE/INDEX`, its log from `offset=` on.

    With `merged=1` the logs of all replicas from the cursor `after=` on.
    """
    try:
        last = request.headers.get("Last-Event-ID", "")
        log = parse_log_request(request.GET.dict(), last)
        merged = parse_merged_request(request.GET.dict(), last)
        verb = Verb.READ if log or merged is not None else Verb.LIST
        visit, job = _at_job(request, public_id, verb)

        def sources(inbox: Inbox, wake: asyncio.Event) -> Sequence[EventSource]:
            if merged is not None:
                return [inbox, MergedReader(job, merged, wake)]
            return [inbox, LogReader(job, *log, wake)] if log else [inbox]

        only = frozenset({bus.job_name(job.public_id), "jobs"})
        return open_stream(visit, sources, only=only, since=_since(request))
    except BadNumber:
        return HttpResponse(status=400)
    except SignedOut:
        return HttpResponse(status=401)
    except LimitReached:
        return _full()

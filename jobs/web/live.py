"""The streams of events that the pages listen to, as static/console/live.js expects them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.views.decorators.http import require_GET

from jobs.live import bus, cursor, seats, sight
from jobs.live.connection import Source, Visit, open_stream
from jobs.live.cursor import Cursor
from jobs.live.inbox import Inbox
from jobs.live.raw import BadNumber
from jobs.live.reader import LogReader, asked
from jobs.models import Job
from jobs.submission.access import find_job
from quotas.access import Verb
from quotas.accounts import sessions
from quotas.models import User


class SignedOut(Exception):
    """Nobody is signed in."""


def _everywhere(request: HttpRequest) -> Visit:
    user, session = _person(request)
    look = partial(_look_everywhere, session)
    return Visit(user.pk, sight.everything(user) or frozenset(), look)


def _at_job(request: HttpRequest, public_id: str, verb: Verb) -> tuple[Visit, Job]:
    user, session = _person(request)
    job = find_job(user, public_id, verb)
    return Visit(user.pk, frozenset({job.workspace_id}), partial(_look_at_job, session, job.pk, verb)), job


def _person(request: HttpRequest) -> tuple[User, str]:
    if not isinstance(request.user, User) and not request.user.is_authenticated:
        raise SignedOut
    return request.user, sessions.reference(request)


def _look_everywhere(session: str) -> frozenset[int] | None:
    return sight.everything(sessions.person_of(session))


def _look_at_job(session: str, job_pk: int, verb: Verb) -> frozenset[int] | None:
    return sight.one_job(sessions.person_of(session), job_pk, verb)


def _since(request: HttpRequest) -> Cursor | None:
    """Where the page was, or where the browser's own reconnection was."""
    return cursor.parse(request.GET.get("since")) or cursor.parse(request.headers.get("Last-Event-ID"))


def _full() -> HttpResponse:
    return HttpResponse(status=429, headers={"Retry-After": str(seats.RETRY_AFTER_S)})


@require_GET
async def live(request: HttpRequest) -> HttpResponseBase:
    """Changes in all workspaces of the person, by name: `changed`, and `reset` when they can't be told."""
    try:
        return open_stream(await sync_to_async(_everywhere)(request), since=_since(request))
    except SignedOut:
        return HttpResponse(status=401)
    except seats.Full:
        return _full()


@require_GET
async def job_stream(request: HttpRequest, public_id: str) -> HttpResponseBase:
    """Changes of one job, and what is written to the log that `log=ROLE/INDEX` names, from `offset=` on."""
    try:
        log = asked(request.GET.dict(), request.headers.get("Last-Event-ID", ""))
        visit, job = await sync_to_async(_at_job)(request, public_id, Verb.READ if log else Verb.LIST)

        def sources(inbox: Inbox, wake: asyncio.Event) -> Sequence[Source]:
            return [inbox, LogReader(job, *log, wake)] if log else [inbox]

        only = frozenset({bus.job_name(job.public_id), "jobs"})
        return open_stream(visit, sources, only=only, since=_since(request))
    except BadNumber:
        return HttpResponse(status=400)
    except SignedOut:
        return HttpResponse(status=401)
    except seats.Full:
        return _full()

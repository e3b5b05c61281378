"""Home: what is mine and goes on, what just ended, and what to do next."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_safe

from jobs.api.vendors.aihc.api import AihcV2
from jobs.lifecycle import failure_lines, pending_reasons
from jobs.live import bus
from jobs.models import Draft, Job
from jobs.states import LIVE, State
from jobs.web.http import SignedIn, live, page, signed_in
from quotas.ledger import reports
from quotas.models import User
from quotas.models.expressions import Unindexed

FRAGMENTS: Final = {"home-jobs": "console/home/jobs.html"}
GOING: Final = tuple(state.value for state in (*LIVE, State.QUEUED))
MOST_GOING: Final = 20
MOST_ENDED: Final = 8
MOST_DRAFTS: Final = 5


_AIHC: Final = AihcV2()


@csrf_exempt
def root(request: HttpRequest) -> HttpResponseBase:
    """Answer AIHC's clients, which sign requests to this address; everybody else gets the home page."""
    return _AIHC.answer(request) if _AIHC.owns(request) else home(request)


@csrf_protect
@require_safe
@signed_in
def home(request: SignedIn) -> HttpResponseBase:
    """The first page; somebody who never submitted anything is shown how to."""
    context = {**live(request), **_jobs(request.user)}
    if not request.htmx:
        context["quotas"] = reports.quotas_of(request.user)
        context["drafts"] = Draft.objects.filter(owner=request.user).order_by("-updated_at")[:MOST_DRAFTS]
    return page(request, "console/home.html", context, fragments=FRAGMENTS)


def _jobs(user: User) -> dict[str, Any]:
    mine = Job.objects.visible_to(user).filter(owner=user).select_related("cluster", "workspace")
    # Few are not ended: they are found by their states and sorted; the others are read as they come.
    going = list(mine.filter(state__in=GOING).order_by(Unindexed("pk").desc())[: MOST_GOING + 1])
    pending_reasons.load_reasons(going)
    ended = list(mine.exclude(state__in=GOING).order_by("-pk")[:MOST_ENDED])
    failure_lines.load_failures(user, ended)
    return {
        "going": going[:MOST_GOING],
        "more_going": len(going) > MOST_GOING,
        "ended": ended,
        "fresh": not going and not ended,
        "live_names": " ".join(["jobs", *(bus.job_name(job.public_id) for job in (*going, *ended))]),
    }

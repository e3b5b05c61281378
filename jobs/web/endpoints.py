"""The way from the console to what a job serves."""

from __future__ import annotations

import re

from django.core.exceptions import BadRequest, PermissionDenied
from django.http import Http404, HttpResponseBase, HttpResponseRedirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from jobs.access.gateway import addresses, visits
from jobs.models import Endpoint, Job
from jobs.submission.access import refusal
from jobs.web.http import SignedIn, signed_in
from quotas import audit
from quotas.access import Verb, can
from quotas.accounts import sessions
from quotas.models import Action

DIGEST = re.compile(r"[0-9a-f]{64}")


class SeeOther(HttpResponseRedirect):
    """303: the next address is to be asked for with GET."""

    status_code = 303


@require_GET
@never_cache
@signed_in
def endpoint_open(request: SignedIn, slug: str) -> HttpResponseBase:
    """Lead whoever may enter to the endpoint's own host.

    First without `browser`: the endpoint's host marks the browser and sends it back here with the mark's
    digest; then with it: the ticket that this answer carries is of use to that browser only.  `next` is the
    path to arrive at, where it is not the one at which the job says to begin.  GET changes nothing that
    matters, and nothing at all in another person's favour: a ticket that some other page made this browser
    fetch is of no use to that page.
    """
    endpoint = _find(request, slug)
    origin = addresses.endpoint_origin(request, slug)
    then = addresses.safe_path(request.GET.get("next") or endpoint.path)
    browser = request.GET.get("browser")
    if browser is None:
        return SeeOther(origin + addresses.own("start", next=then, console=request.get_host()))
    if not DIGEST.fullmatch(browser):
        raise BadRequest("browser is not a digest")
    ticket = visits.give_ticket(request.user, sessions.reference(request), endpoint, browser)
    return SeeOther(origin + addresses.own("enter", ticket=ticket, next=then))


def _find(request: SignedIn, slug: str) -> Endpoint:
    """Http404 for what the person may not know of, PermissionDenied for what they may not enter."""
    seen = Job.objects.visible_to(request.user)
    endpoint = (
        Endpoint.objects.filter(slug=slug, task__attempt__job__in=seen)
        .select_related("task__attempt__job__owner", "task__attempt__job__workspace")
        .first()
    )
    if endpoint is None:
        audit.denied(slug, action=Action.ENTER)  # whether or not there is such an endpoint
        raise Http404
    job = endpoint.task.attempt.job
    if not can(request.user, Verb.ENTER, job):
        audit.denied(slug, action=Action.ENTER, thing=job)
        raise PermissionDenied(refusal(Verb.ENTER, job))
    return endpoint

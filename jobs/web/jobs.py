"""The list of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from jobs import messages
from jobs.lifecycle import waiting
from jobs.live import bus
from jobs.models import Job, OtherJob
from jobs.states import LIVE, State
from jobs.web import listing
from jobs.web.http import SignedIn, live, page, signed_in
from quotas.access import Verb, those, workspaces_of
from quotas.models import User

FRAGMENTS = {"jobs-list": "jobs/list/rows.html"}
STOPPABLE = LIVE | {State.QUEUED}


@require_safe
@signed_in
def jobs(request: SignedIn) -> HttpResponseBase:
    """Everything the person may see, one row a job."""
    around = live(request)
    filters = listing.filters_of(request.GET)
    found = listing.listed(request.user, filters)
    waiting.tell(found.jobs)
    context = {
        **around,
        "filters": filters,
        "listed": found,
        "jobs": found.jobs,
        "stoppable": _stoppable(request.user, found.jobs),
        "chosen": set(request.GET.getlist("id")),
        "several_places": len({(job.workspace_id, job.cluster_id) for job in found.jobs}) > 1,
        "live_names": " ".join(["jobs", *(bus.job_name(job.public_id) for job in found.jobs)]),
        "list_url": reverse("jobs") + filters.query(after=filters.after, before=filters.before),
        "previous_url": found.previous_query and reverse("jobs") + found.previous_query,
        "next_url": found.next_query and reverse("jobs") + found.next_query,
    }
    if not request.htmx:
        context |= _controls(request.user, filters)
    return page(request, "jobs/list.html", context, fragments=FRAGMENTS)


def _stoppable(user: User, rows: Sequence[Job]) -> set[str]:
    """The public ids of those that run or wait and that the person may stop; one query at most."""
    going = (job for job in rows if State(job.state) in STOPPABLE)
    return {job.public_id for job in those(user, Verb.CONTROL, going)}


def _controls(user: User, filters: listing.Filters) -> dict[str, Any]:
    """The chips and fields above the list; fragments go without them."""
    there_are_others = OtherJob.objects.visible_to(user).exists()
    words = {word: _word(word) for word in (*listing.STATES, listing.REPLICAS_FAILED)}
    return {
        "state_chips": [
            _chip(label, word in filters.states, filters.toggled(word)) for word, label in words.items()
        ],
        "owner_chips": [
            _chip(_("Everybody's"), not filters.mine, filters.query(mine=False)),
            _chip(_("Mine"), filters.mine, filters.query(mine=True)),
            *([_chip(_("Not from here"), on=False, url=reverse("jobs_others"))] if there_are_others else []),
        ],
        "order_chips": [
            _chip(_("Newest first"), not filters.oldest_first, filters.query(oldest_first=False)),
            _chip(_("Oldest first"), filters.oldest_first, filters.query(oldest_first=True)),
        ],
        "sweep_chips": [_chip(_("Of one sweep"), on=True, url=filters.query(sweep=""))]
        if filters.sweep
        else [],
        "workspace_choices": list(workspaces_of(user).order_by("name")[:200]),
        "clear_url": reverse("jobs"),
    }


def _chip(label: str, on: bool, url: str) -> dict[str, Any]:
    return {"label": label, "on": on, "url": url}


def _word(word: str) -> str:
    if word == "waiting":
        return _("Waiting")
    if word == listing.REPLICAS_FAILED:
        return _("Replicas failed")
    return messages.state_label(State(word.upper()))

"""The page of jobs: the query line with chips that write it, saved views, columns, and rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.http import HttpResponseBase, QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe
from django_htmx.http import reswap

from jobs import messages
from jobs.lifecycle import failure_lines, pending_reasons
from jobs.live import bus
from jobs.messages.searches import filter_help, query_message
from jobs.models import ExternalJob, Job, JobStar, JobTag, SavedView
from jobs.models.jobs import PUBLIC_ID_LENGTH
from jobs.search.job_pages import (
    NEWEST,
    OLDEST,
    REPLICAS_FAILED,
    SORTS,
    STATES,
    JobListing,
    list_jobs,
)
from jobs.search.query import FILTERS, LONGEST, JobQuery, Term, parse
from jobs.states import State
from jobs.training_metrics import results
from jobs.web.http import SignedIn, live, number, page, signed_in
from jobs.web.job_list.changed_rows import list_version, parse_shown
from jobs.web.job_list.columns import (
    ONLY_FOR_READERS,
    Column,
    column_choices,
    columns_of,
    metric_values,
    metrics_of,
    name_column,
)
from quotas.access import Verb, those, workspaces_of
from quotas.models import User

MOST_WORKSPACE_CHIPS: Final = 8

LIST: Final = "jobs-list"
"""The id of the element with the rows."""


def listing_of(query: QueryDict) -> JobListing:
    """Return what an address asks for; unknown parts are ignored, as those of old bookmarks."""
    sort = query.get("sort", OLDEST if query.get("order") == "oldest" else NEWEST)
    return JobListing(
        query=_query_of(query),
        sort=sort if sort in {NEWEST, OLDEST} or sort.lstrip("-") in SORTS else NEWEST,
        after=number(query.get("after")),
        before=number(query.get("before")),
        number=max(1, number(query.get("page"), 4) or 1),
    )


def _query_of(address: QueryDict) -> JobQuery:
    """Return the query line, with the filters that links and bookmarks write as parameters of their own."""
    query = parse(address.get("q", ""))
    for word in (*STATES, REPLICAS_FAILED):
        term = Term("state", word)
        if word in address.getlist("state") and not query.has(term):
            query = query.toggle(term)
    for key, most in (("workspace", 63), ("sweep", PUBLIC_ID_LENGTH)):
        if value := address.get(key, "")[:most]:
            query = query.set_only(key, value)
    return query.set_only("owner", "me") if address.get("owner") == "me" else query


@require_safe
@signed_in
def jobs(request: SignedIn) -> HttpResponseBase:
    """Everything the person may see, one row a job."""
    around = live(request)
    listing = listing_of(request.GET)
    found = list_jobs(request.user, listing)
    pending_reasons.load_reasons(found.jobs)
    failure_lines.load_failures(request.user, found.jobs)
    several = len({(job.workspace_id, job.cluster_id) for job in found.jobs}) > 1
    columns = columns_of(request.user, listing, several_places=several)
    address = listing.address(after=listing.after, before=listing.before, number=listing.number)
    extras = _extras(request.user, found.jobs, columns)
    heading = name_column(listing)
    versions = list_version(
        found.jobs,
        extras,
        (address, heading, columns, found.previous_query, found.next_query, found.is_cut),
    )
    context = {
        **around,
        "listing": listing,
        "listed": found,
        "jobs": found.jobs,
        "columns": columns,
        "name_column": heading,
        **extras,
        "versions": versions,
        "chosen": set(request.GET.getlist("id")),
        "live_names": " ".join(["jobs", *(bus.job_name(job.public_id) for job in found.jobs)]),
        "list_url": reverse("jobs") + address,
        "previous_url": found.previous_query and reverse("jobs") + found.previous_query,
        "next_url": found.next_query and reverse("jobs") + found.next_query,
    }
    changed = versions.find_changed(parse_shown(request.GET)) if request.htmx else None
    if changed is not None:
        context["jobs"] = [job for job in found.jobs if job.public_id in changed]
        response = page(request, "jobs/list.html", context, fragments={LIST: "jobs/list/changed_rows.html"})
        return reswap(response, "none")  # the rows name what they replace
    if not request.htmx:
        context |= _controls(request.user, listing, request.GET.get("q", ""))
        context["column_choices"] = column_choices(columns, _offered_metrics(request.user, found.jobs))
    return page(request, "jobs/list.html", context, fragments={LIST: "jobs/list/rows.html"})


def _extras(user: User, jobs: Sequence[Job], columns: Sequence[Column]) -> dict[str, Any]:
    """Return the stars, and for columns that want them the tags and what may be read."""
    keys = [job.pk for job in jobs]
    stars = JobStar.objects.filter(user=user, job__in=keys).values_list("job_id", flat=True)
    names, metrics = {each.name for each in columns}, metrics_of(columns)
    if not names & ONLY_FOR_READERS and not metrics:
        return {"starred": set(stars)}
    readable = {job.pk for job in those(user, Verb.READ, jobs)}
    tags: dict[int, list[str]] = {}
    if "tags" in names:
        for job, name in JobTag.objects.filter(job__in=readable).values_list("job_id", "name"):
            tags.setdefault(job, []).append(name)
    return {
        "starred": set(stars),
        "readable": readable,
        "tags": tags,
        "metric_values": metric_values(columns, results.load_results(readable, metrics)),
    }


def _offered_metrics(user: User, jobs: Sequence[Job]) -> list[str]:
    """Return the metrics of those jobs of the page that the person may read."""
    return results.list_names([job.pk for job in those(user, Verb.READ, jobs)])


def _controls(user: User, listing: JobListing, text: str) -> dict[str, Any]:
    """Return what stands above the list; fragments go without it."""
    query = listing.query
    there_are_others = ExternalJob.objects.visible_to(user).exists()
    external = [_chip(_("External"), on=False, url=reverse("jobs_others"))] if there_are_others else []
    mine = query.values("owner") == ["me"]
    return {
        "query_text": text[:LONGEST] if query.problems else str(query),
        "query_problems": list(map(query_message, query.problems)),
        "state_chips": [
            _toggle_chip(listing, _state_word(word), Term("state", word))
            for word in (*STATES, REPLICAS_FAILED)
        ],
        "owner_chips": [
            _chip(_("All"), not mine, listing.address(query=query.set_only("owner", ""))),
            _chip(_("Mine"), mine, listing.address(query=query.set_only("owner", "me"))),
            _toggle_chip(listing, _("Starred"), Term("is", "starred")),
            *external,
        ],
        "workspace_chips": _workspace_chips(user, listing),
        "sweep_chips": [
            _toggle_chip(listing, _("This sweep only"), Term("sweep", each)) for each in query.values("sweep")
        ],
        "filter_help": [(each.example, filter_help(each.key)) for each in FILTERS],
        "views": _views(user, listing),
        "narrowed": bool(query.terms) or listing.sort != NEWEST,
        "clear_url": reverse("jobs"),
    }


def _views(user: User, listing: JobListing) -> list[dict[str, Any]]:
    rows = SavedView.objects.filter(user=user)
    shown = (str(listing.query), listing.sort)
    return [
        {
            "pk": row.pk,
            **_chip(
                row.name,
                on=(row.query, row.sort or NEWEST) == shown,
                url=JobListing(parse(row.query), row.sort or NEWEST).address(),
            ),
        }
        for row in rows
    ]


def _workspace_chips(user: User, listing: JobListing) -> list[dict[str, Any]]:
    """Return a chip for each workspace, where there are several but few."""
    spaces = list(workspaces_of(user).order_by("name")[: MOST_WORKSPACE_CHIPS + 1])
    if not 1 < len(spaces) <= MOST_WORKSPACE_CHIPS:
        return []
    return [_toggle_chip(listing, each.title, Term("workspace", each.slug)) for each in spaces]


def _toggle_chip(listing: JobListing, label: str, term: Term) -> dict[str, Any]:
    return _chip(label, listing.query.has(term), listing.address(query=listing.query.toggle(term)))


def _chip(label: str, on: bool, url: str) -> dict[str, Any]:
    return {"label": label, "on": on, "url": url}


def _state_word(word: str) -> str:
    if word == "waiting":
        return _("Waiting")
    if word == REPLICAS_FAILED:
        return _("With failed replicas")
    return messages.state_label(State(word.upper()))

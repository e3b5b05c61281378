"""The list of jobs: its filters, and pages by key.

Counting or skipping rows would make the hundredth page of a million jobs slow, so neither happens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from operator import or_
from typing import Any, Final
from urllib.parse import urlencode

from django.db import connection
from django.db.models import F, Q, QuerySet
from django.http import HttpResponseBase, QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from jobs import messages
from jobs.lifecycle import pending_reasons
from jobs.live import bus
from jobs.models import ExternalJob, Job
from jobs.models.jobs import PUBLIC_ID_LENGTH
from jobs.states import LIVE, State
from jobs.web.http import SignedIn, live, number, page, signed_in
from quotas.access import Verb, those, workspaces_of
from quotas.models import User

PAGE: Final = 50

SHOWN: Final = ("owner", "workspace", "cluster")

MOST_RANGES: Final = 400
"""Of so many parts at most one query is made; SQLite takes 500."""

STATES: Final[Mapping[str, frozenset[State]]] = {
    "waiting": frozenset({State.QUEUED, State.SUBMITTING, State.PENDING}),
    "running": frozenset({State.RUNNING}),
    "succeeded": frozenset({State.SUCCEEDED}),
    "failed": frozenset({State.FAILED}),
    "stopped": frozenset({State.STOPPED}),
    "lost": frozenset({State.LOST}),
}
"""The words of the state filter, in the order of the chips."""

REPLICAS_FAILED: Final = "replicas-failed"
"""Another word of that filter: replicas failed, whatever became of the job."""

_ID: Final = re.compile(rf"(?:dlc|job-|[a-z0-9]{{6}}-)?(?P<id>[a-z0-9]{{{PUBLIC_ID_LENGTH}}})(?:-\d+)?")
"""A job's id: alone, as the vendors' APIs show it, or inside the name it has at an engine."""


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of the list.  `after` and `before` are keys of the row at the page's edge."""

    states: tuple[str, ...] = ()
    mine: bool = False
    workspace: str = ""
    q: str = ""
    sweep: str = ""
    oldest_first: bool = False
    after: int | None = None
    before: int | None = None

    @property
    def narrowed(self) -> bool:
        """Tell whether anything but the order is chosen."""
        return bool(self.states or self.mine or self.workspace or self.q or self.sweep)

    def query(self, **changes: object) -> str:
        """The address's query for these filters with `changes`, from the first page on."""
        changed = replace(self, **{"after": None, "before": None, **changes})  # type: ignore[arg-type]
        pairs: list[tuple[str, str]] = [("state", word) for word in changed.states]
        if changed.mine:
            pairs.append(("owner", "me"))
        pairs += [(name, value) for name in ("workspace", "q", "sweep") if (value := getattr(changed, name))]
        if changed.oldest_first:
            pairs.append(("order", "oldest"))
        pairs += [(name, str(key)) for name in ("after", "before") if (key := getattr(changed, name))]
        return "?" + urlencode(pairs)

    def toggle_query(self, word: str) -> str:
        """The query with one state switched on or off."""
        chosen = set(self.states) ^ {word}
        return self.query(states=tuple(each for each in (*STATES, REPLICAS_FAILED) if each in chosen))


def filters_of(query: QueryDict) -> Filters:
    """Return the filters of a query; unknown ones are ignored, as those of old bookmarks."""
    chosen = set(query.getlist("state"))
    return Filters(
        states=tuple(word for word in (*STATES, REPLICAS_FAILED) if word in chosen),
        mine=query.get("owner") == "me",
        workspace=query.get("workspace", "")[:63],
        q=query.get("q", "").strip()[:256],
        sweep=query.get("sweep", "")[:PUBLIC_ID_LENGTH],
        oldest_first=query.get("order") == "oldest",
        after=number(query.get("after")),
        before=number(query.get("before")),
    )


@dataclass(frozen=True, slots=True)
class JobPage:
    """One page of jobs, and the queries of its neighbours (empty where there is none)."""

    jobs: Sequence[Job]
    previous_query: str
    next_query: str


def list_jobs(user: User, filters: Filters, size: int = PAGE) -> JobPage:
    """Return the page of jobs for the filters, with four queries at most."""
    backwards = filters.before is not None
    descending = filters.oldest_first == backwards
    if filters.q and (found := with_id(user, filters.q).select_related(*SHOWN).first()):
        return JobPage([found], "", "")
    keys = first_keys(_ranges(user, filters), filters, size + 1, descending=descending)
    more, keys = len(keys) > size, keys[:size]
    if backwards:
        keys.reverse()
    rows = Job.objects.select_related(*SHOWN).in_bulk(keys)
    jobs = [rows[key] for key in keys if key in rows]
    has_previous = more if backwards else filters.after is not None
    has_next = True if backwards else more
    return JobPage(
        jobs,
        filters.query(before=jobs[0].pk) if jobs and has_previous else "",
        filters.query(after=jobs[-1].pk) if jobs and has_next else "",
    )


def _ranges(user: User, filters: Filters) -> list[QuerySet[Job]]:
    """The jobs that `filters` mean, each set of them a range of one index that has them in order.

    An index by owner or workspace (and state) is in order within one owner or workspace and one state
    only; asked for several at once, a database sorts everything it finds.
    """
    places, conditions = _job_sets(user, filters), _conditions(filters.states)
    if len(places) * len(conditions) > MOST_RANGES:
        conditions = [reduce(or_, conditions)]
    return [place.filter(condition) for place in places for condition in conditions]


def _job_sets(user: User, filters: Filters) -> list[QuerySet[Job]]:
    """The person's own jobs, or those of each workspace."""
    spaces = workspaces_of(user)
    if filters.workspace:
        spaces = spaces.filter(slug=filters.workspace)
    if filters.mine:
        mine = Job.objects.filter(owner=user)
        # The sum keeps SQLite from taking the index by workspace after all.
        return [mine.alias(space=F("workspace_id") + 0).filter(space__in=spaces.values("pk"))]
    ids = list(spaces.values_list("pk", flat=True)[: MOST_RANGES + 1])
    if len(ids) > MOST_RANGES:
        return [Job.objects.filter(workspace__in=spaces)]
    return [Job.objects.filter(workspace_id=each) for each in ids]


def _conditions(words: Sequence[str]) -> list[Q]:
    conditions = [Q(state=state) for word in words for state in sorted(STATES.get(word, ()))]
    if REPLICAS_FAILED in words:
        conditions.append(Q(replicas_failed__gt=0))
    return conditions or [Q()]


def first_keys(
    ranges: Sequence[QuerySet[Job]], filters: Filters, size: int, *, descending: bool
) -> list[int]:
    """The first `size` keys of all `ranges` together, in order, from the page's edge on; one query.

    Each range gives its own first `size`, so that none is read further than the page needs.
    """
    if not ranges:
        return []
    order = "-pk" if descending else "pk"
    parts = [_narrow(each, filters, descending).order_by(order).values("pk")[:size] for each in ranges]
    compiled = [part.query.sql_with_params() for part in parts]
    # Only what Django compiled stands in it; the union of cut ranges is what it can't say itself.
    union = " UNION ".join(f"SELECT * FROM ({sql}) AS part{at}" for at, (sql, _) in enumerate(compiled))  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(
            f"{union} ORDER BY 1 {'DESC' if descending else 'ASC'} LIMIT %s",
            [*chain.from_iterable(params for _, params in compiled), size],
        )
        return [key for (key,) in cursor.fetchall()]


def _narrow(rows: QuerySet[Job], filters: Filters, descending: bool) -> QuerySet[Job]:
    """Return the rows of a range from the page's edge on, without deleted ones, that match the search."""
    rows = rows.filter(deleted_at=None)
    key = filters.after if filters.before is None else filters.before
    if key is not None:
        rows = rows.filter(pk__lt=key) if descending else rows.filter(pk__gt=key)
    if filters.sweep:
        rows = rows.filter(sweep_run__sweep__public_id=filters.sweep)
    return rows.filter(name__startswith=filters.q) if filters.q else rows


def with_id(user: User, text: str) -> QuerySet[Job]:
    """Return the job with this id: plain, as in a vendor's API, or within its name at an engine."""
    found = _ID.fullmatch(text)
    return Job.objects.visible_to(user).filter(public_id=found["id"]) if found else Job.objects.none()


STOPPABLE = LIVE | {State.QUEUED}


@require_safe
@signed_in
def jobs(request: SignedIn) -> HttpResponseBase:
    """Everything the person may see, one row a job."""
    around = live(request)
    filters = filters_of(request.GET)
    found = list_jobs(request.user, filters)
    pending_reasons.load_reasons(found.jobs)
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
    return page(request, "jobs/list.html", context, fragments={"jobs-list": "jobs/list/rows.html"})


def _stoppable(user: User, rows: Sequence[Job]) -> set[str]:
    """The public ids of those that run or wait and that the person may stop; one query at most."""
    going = (job for job in rows if State(job.state) in STOPPABLE)
    return {job.public_id for job in those(user, Verb.CONTROL, going)}


def _controls(user: User, filters: Filters) -> dict[str, Any]:
    """The chips and fields above the list; fragments go without them."""
    there_are_others = ExternalJob.objects.visible_to(user).exists()
    words = {word: _word(word) for word in (*STATES, REPLICAS_FAILED)}
    return {
        "state_chips": [
            _chip(label, word in filters.states, filters.toggle_query(word)) for word, label in words.items()
        ],
        "owner_chips": [
            _chip(_("All"), not filters.mine, filters.query(mine=False)),
            _chip(_("Mine"), filters.mine, filters.query(mine=True)),
            *([_chip(_("External"), on=False, url=reverse("jobs_others"))] if there_are_others else []),
        ],
        "order_chips": [
            _chip(_("Newest first"), not filters.oldest_first, filters.query(oldest_first=False)),
            _chip(_("Oldest first"), filters.oldest_first, filters.query(oldest_first=True)),
        ],
        "sweep_chips": [_chip(_("This sweep only"), on=True, url=filters.query(sweep=""))]
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
    if word == REPLICAS_FAILED:
        return _("With failed replicas")
    return messages.state_label(State(word.upper()))

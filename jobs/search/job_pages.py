"""Pages of jobs that a query finds, by key.

Counting or skipping rows would make the hundredth page of a million jobs slow, so neither happens.  By a
column other than the time of submission only the newest of the jobs that were found are sorted.  What no
index answers is searched within a time: `jobs.search.windows`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from functools import reduce
from itertools import chain
from operator import or_
from typing import Any, Final
from urllib.parse import urlencode

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from jobs.models import Job, JobStar, JobTag
from jobs.models.jobs import PUBLIC_ID_LENGTH, Visibility
from jobs.search.query import COMPARISONS, EVERYTHING, WORD, JobQuery, Term
from jobs.search.windows import FoundKeys, search_keys
from jobs.states import State
from quotas.access import managed_by, match_workspace, workspaces_of
from quotas.models import User

PAGE: Final = 50

EVERY: Final = Q()

SHOWN: Final = ("owner", "workspace", "cluster", "quota")

MOST_RANGES: Final = 400
"""Of so many parts at most one query is made; SQLite takes 500."""

MOST_SORTED: Final = 1000
"""The newest so many of the jobs found are sorted by another column than that of submission."""

STATES: Final[Mapping[str, frozenset[State]]] = {
    "waiting": frozenset({State.QUEUED, State.SUBMITTING, State.PENDING}),
    "running": frozenset({State.RUNNING}),
    "succeeded": frozenset({State.SUCCEEDED}),
    "failed": frozenset({State.FAILED}),
    "stopped": frozenset({State.STOPPED}),
    "lost": frozenset({State.LOST}),
}
"""The words of the state filter that have chips, in their order; each state's own name is one too."""

REPLICAS_FAILED: Final = "replicas-failed"
"""Another word of that filter: replicas failed, whatever became of the job."""

_ID: Final = re.compile(rf"(?:dlc|job-|[a-z0-9]{{6}}-)?(?P<id>[a-z0-9]{{{PUBLIC_ID_LENGTH}}})(?:-\d+)?")
"""A job's id: alone, as the vendors' APIs show it, or inside the name it has at an engine."""

NEWEST: Final = "-submitted"
OLDEST: Final = "submitted"

SORTS: Final[Mapping[str, str]] = {
    "name": "name",
    "owner": "owner__username",
    "cluster": "cluster__slug",
    "quota": "quota__slug",
    "gpus": "gpus",
    "replicas": "replicas_total",
    "priority": "priority",
    "started": "started_at",
    "ended": "ended_at",
}
"""Columns by which the newest jobs are sorted."""


@dataclass(frozen=True, slots=True)
class JobListing:
    """What a list shows: its query, its order, and the page.

    `after` and `before` are keys of the row at the page's edge; `number` counts the pages of sorted columns.
    """

    query: JobQuery = EVERYTHING
    sort: str = NEWEST
    after: int | None = None
    before: int | None = None
    number: int = 1

    @property
    def is_by_time(self) -> bool:
        """Tell whether jobs are in the order of their submission."""
        return self.sort in {NEWEST, OLDEST}

    def address(self, **changes: Any) -> str:
        """Return the address's query of this list with `changes`, from the first page on."""
        changed = replace(self, **{"after": None, "before": None, "number": 1, **changes})
        pairs = [("q", str(changed.query))] if changed.query.terms else []
        if changed.sort != NEWEST:
            pairs.append(("sort", changed.sort))
        pairs += [(name, str(key)) for name in ("after", "before") if (key := getattr(changed, name))]
        if changed.number > 1:
            pairs.append(("page", str(changed.number)))
        return "?" + urlencode(pairs)


@dataclass(frozen=True, slots=True)
class JobPage:
    """One page of jobs, and the queries of its neighbours (empty where there is none).

    `is_cut` where more were found than are sorted.  `searched_to` is the time of submission of the last job
    that was searched, where the search ended before all were; None where all were, or the page is full.
    """

    jobs: Sequence[Job]
    previous_query: str
    next_query: str
    is_cut: bool = False
    searched_to: datetime | None = None


def list_jobs(user: User, listing: JobListing, size: int = PAGE) -> JobPage:
    """Return the page of jobs for the query, with a few queries however many there are."""
    if one := _find_by_id(user, listing.query):
        return JobPage([one], "", "")
    if not listing.is_by_time:
        return _sorted_page(user, listing, size)
    backwards = listing.before is not None
    descending = (listing.sort == OLDEST) == backwards
    found = first_keys(user, listing, size + 1, descending=descending)
    keys = found.keys[:size]
    far = keys[-1] if len(found.keys) > size else found.searched_to
    if backwards:
        keys.reverse()
    jobs = load_jobs(keys)
    if backwards:
        before, after = far, jobs[-1].pk if jobs else None
    else:
        before, after = jobs[0].pk if jobs and listing.after is not None else None, far
    return JobPage(
        jobs,
        listing.address(before=before) if before is not None else "",
        listing.address(after=after) if after is not None else "",
        searched_to=None if backwards else _submission_time(found.searched_to),
    )


def _submission_time(key: int | None) -> datetime | None:
    """Return when the first job from a key on was submitted."""
    if key is None:
        return None
    return Job.objects.filter(pk__gte=key).order_by("pk").values_list("created_at", flat=True).first()


def find_jobs(user: User, query: JobQuery, most: int, *, is_limited: bool = True) -> list[Job]:
    """Return the newest jobs that the query finds, as many as `most`; see `first_keys`."""
    if found := _find_by_id(user, query):
        return [found]
    return load_jobs(first_keys(user, JobListing(query), most, descending=True, is_limited=is_limited).keys)


def load_jobs(keys: Sequence[int]) -> list[Job]:
    """Return the jobs of these keys in this order, without those that are gone; one query."""
    rows = Job.objects.select_related(*SHOWN).in_bulk(keys)
    return [rows[key] for key in keys if key in rows]


def _sorted_page(user: User, listing: JobListing, size: int) -> JobPage:
    found = first_keys(user, replace(listing, after=None, before=None), MOST_SORTED + 1, descending=True)
    is_cut, keys = len(found.keys) > MOST_SORTED, found.keys[:MOST_SORTED]
    column = SORTS[listing.sort.lstrip("-")]
    values = dict(Job.objects.filter(pk__in=keys).values_list("pk", column))
    known = [key for key in keys if values.get(key) is not None]
    known.sort(key=lambda key: values[key], reverse=listing.sort.startswith("-"))
    ordered = [*known, *(key for key in keys if values.get(key) is None)]
    begin = (listing.number - 1) * size
    following = listing.address(number=listing.number + 1) if begin + size < len(ordered) else ""
    if not keys and found.searched_to is not None:
        following = listing.address(sort=NEWEST, after=found.searched_to)
    return JobPage(
        load_jobs(ordered[begin : begin + size]),
        listing.address(number=listing.number - 1) if listing.number > 1 else "",
        following,
        is_cut,
        _submission_time(found.searched_to),
    )


def first_keys(
    user: User,
    listing: JobListing,
    size: int,
    *,
    descending: bool,
    extra: Q = EVERY,
    is_limited: bool = True,
) -> FoundKeys:
    """Return the keys of the first `size` jobs, in order, from the page's edge on.

    `extra` holds too.  One query where indexes have all that is asked; else a limited search ends after a
    time.
    """
    ranges = _ranges(user, listing.query)
    if not ranges:
        return FoundKeys([])
    narrowing = _narrow(user, listing, descending) & extra

    def read(inside: Q, most: int) -> list[int]:
        return _read_ranges(ranges, narrowing & inside, most, descending=descending)

    if not is_limited or not (_is_search(listing.query) or extra):
        return FoundKeys(read(EVERY, size))
    edge = listing.after if listing.before is None else listing.before
    return search_keys(read, size, edge, descending=descending)


def _is_search(query: JobQuery) -> bool:
    """Tell whether rows have to be compared one by one: something is asked that is in no index by range."""
    states = query.values("state")
    if REPLICAS_FAILED in states or len(query.values("owner")) > 1:
        return True
    return any(each.is_negated or each.key not in _IN_RANGES for each in query.terms)


def _read_ranges(ranges: Sequence[QuerySet[Job]], narrowing: Q, size: int, *, descending: bool) -> list[int]:
    """Return the first keys of all ranges together; one query.

    Each range gives its own first `size`, so that none is read further than the page needs.
    """
    order = "-pk" if descending else "pk"
    parts = [each.filter(narrowing).order_by(order).values("pk")[:size] for each in ranges]
    compiled = [part.query.sql_with_params() for part in parts]
    # Only what Django compiled stands in it; the union of cut ranges is what it can't say itself.
    union = " UNION ".join(f"SELECT * FROM ({sql}) AS part{at}" for at, (sql, _) in enumerate(compiled))  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(
            f"{union} ORDER BY 1 {'DESC' if descending else 'ASC'} LIMIT %s",
            [*chain.from_iterable(params for _, params in compiled), size],
        )
        return [key for (key,) in cursor.fetchall()]


def _ranges(user: User, query: JobQuery) -> list[QuerySet[Job]]:
    """The jobs that the query's states, owner and workspaces mean, each set a range of one index in order.

    An index by owner or workspace (and state) is in order within one owner or workspace and one state
    only; asked for several at once, a database sorts everything it finds.
    """
    places, conditions = _job_sets(user, query), _state_conditions(query.values("state"))
    if len(places) * len(conditions) > MOST_RANGES:
        conditions = [reduce(or_, conditions)]
    return [place.filter(condition) for place in places for condition in conditions]


def _job_sets(user: User, query: JobQuery) -> list[QuerySet[Job]]:
    """The jobs of one owner, or those of each workspace."""
    spaces = workspaces_of(user)
    if names := query.values("workspace"):
        spaces = spaces.filter(reduce(or_, map(match_workspace, names)))
    owners = query.values("owner")
    if len(owners) == 1:
        theirs = Job.objects.filter(_owner(user, owners[0]))
        # Asked so, SQLite takes no index by workspace, and PostgreSQL knows how many jobs are in them.
        return [theirs.filter(Exists(spaces.filter(pk=OuterRef("workspace_id"))))]
    ids = list(spaces.values_list("pk", flat=True)[: MOST_RANGES + 1])
    owned = reduce(or_, [_owner(user, name) for name in owners], Q())
    if len(ids) > MOST_RANGES:
        return [Job.objects.filter(owned, workspace__in=spaces)]
    return [Job.objects.filter(owned, workspace_id=each) for each in ids]


def _owner(user: User, name: str) -> Q:
    if name == "me":
        return Q(owner_id=user.pk)
    owner = User.objects.filter(username__iexact=name).values_list("pk", flat=True).first()
    return Q(owner_id=owner or 0)


def _state_conditions(words: Sequence[str]) -> list[Q]:
    states = {state for word in words for state in STATES.get(word) or _named(word)}
    conditions = [Q(state=state) for state in sorted(states)]
    if REPLICAS_FAILED in words:
        conditions.append(Q(replicas_failed__gt=0))
    return conditions or [Q()]


def _named(word: str) -> frozenset[State]:
    return frozenset(state for state in State if state.lower() == word)


def _narrow(user: User, listing: JobListing, descending: bool) -> Q:
    """Return the condition for rows from the page's edge on that the query finds; never deleted ones."""
    found = Q(deleted_at=None)
    key = listing.after if listing.before is None else listing.before
    if key is not None:
        found &= Q(pk__lt=key) if descending else Q(pk__gt=key)
    for term in listing.query.terms:
        if term.key in _IN_RANGES and not term.is_negated:
            continue
        condition = _CONDITIONS[term.key](user, term)
        found &= ~condition if term.is_negated else condition
    return found


_IN_RANGES: Final = frozenset({"state", "owner", "workspace"})


def _state(_user: User, term: Term) -> Q:
    return reduce(or_, _state_conditions([term.value]))


def _compare(column: str) -> Callable[[User, Term], Q]:
    """Return the condition of a number."""

    def condition(_user: User, term: Term) -> Q:
        lookup = COMPARISONS.get(term.operator, "exact")
        return Q(**{f"{column}__{lookup}": int(term.value)})

    return condition


def _gpu(user: User, term: Term) -> Q:
    """Return the condition of a count of GPUs, or of their type."""
    if term.value.isdigit():
        return _compare("gpus")(user, term)
    return Q(gpu_type__icontains=term.value)


def _tag(user: User, term: Term) -> Q:
    names = Q(name__iexact=term.value) | Q(name__istartswith=f"{term.value}=")
    return _readable(user) & Q(Exists(JobTag.objects.filter(names, job=OuterRef("pk"))))


def _readable(user: User) -> Q:
    """Return the condition for jobs whose file and description the person may read."""
    return Q(owner=user) | Q(visibility=Visibility.PUBLIC) | Q(workspace__in=managed_by(user))


def _time(lookup: str) -> Callable[[User, Term], Q]:
    """Return the condition of the time of submission: a day in the person's time zone, or so long ago."""

    def condition(_user: User, term: Term) -> Q:
        if term.value[-1] in _HOURS:
            at = timezone.now() - timedelta(hours=int(term.value[:-1]) * _HOURS[term.value[-1]])
        else:
            day = date.fromisoformat(term.value) + timedelta(days=lookup == "lt")
            at = datetime.combine(day, time(), timezone.get_current_timezone())
        return Q(**{f"created_at__{lookup}": at})

    return condition


_HOURS: Final = {"h": 1, "d": 24, "w": 168}


def _is(user: User, term: Term) -> Q:
    if term.value == "starred":
        return Q(Exists(JobStar.objects.filter(user=user, job=OuterRef("pk"))))
    return Q(state=State.RUNNING, idle_since__isnull=False)


_CONDITIONS: Final[Mapping[str, Callable[[User, Term], Q]]] = {
    WORD: lambda _user, term: Q(name__icontains=term.value),
    "state": _state,
    "owner": lambda user, term: _owner(user, term.value),
    "workspace": lambda _user, term: match_workspace(term.value, "workspace__"),
    "cluster": lambda _user, term: Q(cluster__slug__iexact=term.value),
    "quota": lambda _user, term: Q(quota__slug__iexact=term.value),
    "tag": _tag,
    "gpu": _gpu,
    "replicas": _compare("replicas_total"),
    "priority": _compare("priority"),
    "since": _time("gte"),
    "until": _time("lt"),
    "command": lambda user, term: _readable(user) & Q(file__text__icontains=term.value),
    "description": lambda user, term: _readable(user) & Q(description__icontains=term.value),
    "sweep": lambda _user, term: Q(sweep_run__sweep__public_id=term.value),
    "is": _is,
}


def with_id(user: User, text: str) -> QuerySet[Job]:
    """Return the job with this id: plain, as in a vendor's API, or within its name at an engine."""
    found = _ID.fullmatch(text)
    return Job.objects.visible_to(user).filter(public_id=found["id"]) if found else Job.objects.none()


def _find_by_id(user: User, query: JobQuery) -> Job | None:
    """Return the job whose id is all that the query says."""
    if len(query.terms) != 1 or query.terms[0].key != WORD:
        return None
    return with_id(user, query.terms[0].value).select_related(*SHOWN).first()

"""Preview of a job file: its price, its share of the quota, and whether it would start now.

Admission decides with the job as one more request (`quotas.admission.whatif`); nothing is stored.  The
amounts are those that the ledger would reserve (`submission.parts_of`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from django.db.models import Q

from jobs import submission
from jobs.dialects.base import Problem, Refused
from jobs.dialects.document import Document
from jobs.lifecycle import pending_reasons
from jobs.messages import problem_message
from jobs.models import Job
from jobs.spec import JobSpec
from jobs.submission import builder
from jobs.submission.checks import feasibility
from jobs.submission.sweeps import arrays
from jobs.submission.sweeps.expansion import CannotSweepError, Values, combinations, expand, kinds
from quotas import ledger
from quotas.admission import Bid, Price, ResourceShape, Waiting, estimates, snapshot, whatif
from quotas.admission.estimates import Estimate
from quotas.admission.whatif import Level, Trial
from quotas.amounts import Amounts, total
from quotas.limits.job_limits import JobLimits
from quotas.models import Quota, Spec, User

AIMASTER: Final = Amounts(1000, 1024)
"""Extra resources of automatic fault tolerance on PAI-DLC, in a quota (DLC page, fault tolerance)."""

AIMASTER_SPEC: Final = "ecs.c6.large"
"""On public resources it is an instance of this size there."""


class Unreadable(Exception):
    """The text can't be previewed; `problems` say why."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__()
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a sweep, as a grid or as listed combinations; `at_once` None means all."""

    grid: Mapping[str, Sequence[Any]]
    listed: Sequence[Values] = ()
    at_once: int | None = None


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs of a sweep, grouped by equal resource requests; the first job's group is first."""

    kinds: tuple[tuple[JobSpec, int], ...]
    at_once: int

    @property
    def count(self) -> int:
        """Return how many jobs there are."""
        return sum(count for _spec, count in self.kinds)

    def beginning_with(self, spec: JobSpec) -> Jobs:
        """Return the same jobs with `spec`, the resolved first job, as the first."""
        (_spec, count), *others = self.kinds
        return Jobs(((spec, count), *others), self.at_once)


@dataclass(frozen=True, slots=True)
class Preview:
    """The preview of a job in `quota`; `refused` says why it would not be accepted there.

    Of a `sweep` it is the first job, and `levels` are those of as many jobs as may run at a time.  An hour
    costs `hour_of_all_micro` while as many run as may, and all of them `limit_of_all_micro` if each runs as
    long as it may.
    """

    dialect: str
    spec: JobSpec
    quota: Quota
    amounts: Amounts
    estimate: Estimate
    levels: tuple[Level, ...]
    outcome: Trial
    refused: tuple[str, ...] = ()
    aimaster_micro: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    sweep: Jobs | None = None
    hour_of_all_micro: int | None = None
    limit_of_all_micro: int | None = None
    limits: JobLimits | None = None

    @property
    def jobs(self) -> int:
        """Return how many jobs would be submitted."""
        return self.sweep.count if self.sweep else 1

    @property
    def at_once(self) -> int:
        """Return how many of them may run at a time."""
        return self.sweep.at_once if self.sweep else 1

    @property
    def network(self) -> str:
        """Return where it could connect to; "" on a cluster that does not enforce it."""
        return feasibility.describe_network(self.quota, self.spec)

    @property
    def sentence(self) -> str:
        """Tell in one sentence whether it would start now and, if not, why."""
        return (
            self.refused[0]
            if self.refused
            else pending_reasons.outlook(self.quota.cluster.name, self.outcome)
        )

    @property
    def starts(self) -> bool:
        """Tell whether it would start, or be handed over, now."""
        return not self.refused and self.outcome.starts

    @property
    def by_engine(self) -> bool:
        """Tell whether its cluster's own scheduler decides when it starts."""
        return self.quota.cluster.admission == "engine"

    @property
    def limit_s(self) -> int | None:
        """Return its time limit in seconds; None when it has none."""
        return self.spec.time_limit_s

    @property
    def limit_micro(self) -> int | None:
        """Return its price if it runs as long as it may."""
        return self.estimate.over(self.limit_s) if self.limit_s else None

    @property
    def reason_code(self) -> str:
        """Return the code of why it would wait; `starts` or `refused` where it would not."""
        if self.refused or self.outcome.verdict is None:
            return "refused" if self.refused else "starts"
        return pending_reasons.current_reason(self.quota.cluster.name, self.outcome.verdict).code


def of_document(
    user: User,
    document: Document,
    place: submission.JobTarget,
    origin: Job | None = None,
    *,
    keep_original: bool = False,
    parameters: Parameters | None = None,
) -> Preview:
    """Preview a job file, read, fixed and placed as `submission.submit` does it; with `parameters` a sweep.

    Raises Unreadable.
    """
    try:
        if not keep_original:
            document = submission.apply_fixes(document)
        document, sweep = _first(document, parameters)
        made = submission.resolve_job(user, document, place, origin)
    except (Refused, CannotSweepError) as refused:
        raise Unreadable(refused.problems) from refused
    dialect, parsed = made.document.dialect, made.document.parsed
    found = preview(user, dialect, parsed.spec, made.limits, sweep)
    return replace(found, options=builder.options_of(dialect, parsed.extras))


def _first(document: Document, parameters: Parameters | None) -> tuple[Document, Jobs | None]:
    """Return the job file of the first job, and all jobs of a sweep.

    Raises CannotSweepError, Refused.
    """
    array = document.parsed.array
    if array is not None:
        if parameters is not None:
            raise CannotSweepError(Problem("sweep_of_array", "/parameters"))
        first = arrays.first(document, array)
        return first, Jobs(((first.parsed.spec, len(array.indexes)),), array.most_at_once)
    if parameters is None:
        return document, None
    found = combinations(parameters.grid, parameters.listed)
    different = kinds(found)
    specs = expand(document.parsed.spec, [values for values, _count in different])
    counted = tuple((spec, count) for spec, (_values, count) in zip(specs, different, strict=True))
    return document.rewrite(specs[0]), Jobs(counted, min(parameters.at_once or len(found), len(found)))


def preview(user: User, dialect: str, spec: JobSpec, limits: JobLimits, sweep: Jobs | None = None) -> Preview:
    """Preview the job in the quota of the limits; jobs of a sweep with equal requests add no queries."""
    quota = limits.quota
    jobs = sweep.beginning_with(spec) if sweep else Jobs(((spec, 1),), 1)
    terms = submission.terms_of(spec)
    now = snapshot.take(quota.cluster, asking=user)
    priced = [_price(quota, each, count, dict(now.prices)) for each, count in jobs.kinds]
    first = priced[0]
    request = Waiting(
        whatif.ASKING,
        quota.pk,
        ResourceShape(first.parts),
        submission.level_of(spec, quota),
        now.now,
        user.pk,
        spec.time_limit_s,
        terms.idle,
        tuple(Bid(**bid) for bid in terms.bids),
    )
    return Preview(
        dialect=dialect,
        spec=spec,
        quota=quota,
        amounts=total(part.each.times(part.count) for part in first.parts),
        estimate=first.estimate,
        levels=whatif.levels(now, replace(request, shape=ResourceShape(_together(priced, jobs.at_once)))),
        outcome=whatif.preview_request(
            now, request, held=terms.held, others=terms.others, not_before=terms.not_before
        ),
        refused=tuple(
            dict.fromkeys(
                said for each, _count in jobs.kinds for said in _find_refusals(limits, each, jobs.count)
            )
        ),
        aimaster_micro=_aimaster(quota) if spec.fault_tolerance.enabled else None,
        sweep=sweep,
        limits=limits,
        hour_of_all_micro=_hour_of_all(priced, jobs.at_once),
        limit_of_all_micro=_limit_of_all(priced),
    )


@dataclass(frozen=True, slots=True)
class _Priced:
    """A number of equal jobs, and the price of one of them."""

    spec: JobSpec
    count: int
    parts: tuple[ledger.Part, ...]
    estimate: Estimate


def _price(quota: Quota, spec: JobSpec, count: int, spot: dict[str, Price]) -> _Priced:
    parts = tuple(submission.parts_of(spec))
    bids = tuple(Bid(**bid) for bid in submission.terms_of(spec).bids)
    return _Priced(spec, count, parts, estimates.estimate(quota, parts, bids, spot))


def _hour_of_all(priced: Sequence[_Priced], at_once: int) -> int | None:
    """Return the price of an hour while the most expensive jobs run, as many as may; None without a price."""
    hours: list[int] = []
    for each in priced:
        if each.estimate.hour_micro is None:
            return None
        hours += [each.estimate.hour_micro] * each.count
    return sum(sorted(hours, reverse=True)[:at_once])


def _limit_of_all(priced: Sequence[_Priced]) -> int | None:
    """Return the price of all if each runs as long as it may; None where one has no price or no limit."""
    limits = [
        each.estimate.over(each.spec.time_limit_s) if each.spec.time_limit_s else None for each in priced
    ]
    known = [limit * each.count for limit, each in zip(limits, priced, strict=True) if limit is not None]
    return sum(known) if len(known) == len(priced) else None


def _together(priced: Sequence[_Priced], at_once: int) -> tuple[ledger.Part, ...]:
    """Return the resource requests of the first jobs, as many as may run at a time."""
    parts: list[ledger.Part] = []
    for each in priced:
        running = min(each.count, at_once)
        at_once -= running
        if running:
            parts += [replace(part, count=part.count * running) for part in each.parts]
    return tuple(parts)


def _find_refusals(limits: JobLimits, spec: JobSpec, jobs: int) -> tuple[str, ...]:
    return tuple(problem_message(problem) for problem in submission.find_excess_of(limits, spec, jobs=jobs))


def _aimaster(quota: Quota) -> int | None:
    """Return the hourly price of PAI-DLC's extra instance on public resources; None without a price."""
    if quota.source != "public":
        return None
    mine = Q(cluster=None) | Q(cluster=quota.cluster_id)
    ours = Q(workspace=None) | Q(workspace=quota.workspace_id)
    found = Spec.objects.filter(mine, ours, name=AIMASTER_SPEC).values_list("price_micro", flat=True)
    return found.order_by("price_micro").first()

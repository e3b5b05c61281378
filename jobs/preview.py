"""What would become of a job file if it were submitted now: its price, its share, and whether it would start.

Admission itself is asked, with the job as one more request (`quotas.whatif`); nothing is kept.  The amounts
are those that the ledger would reserve (`services.parts_of`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from django.db.models import Q

from jobs import dialects, sending, services, waiting
from jobs.dialects.base import Array, Problem, Refused
from jobs.messages import problem_message
from jobs.models import Job
from jobs.spec import JobSpec
from jobs.sweeps import arrays
from jobs.sweeps.expanding import CannotSweepError
from quotas import estimates, ledger, snapshot, whatif
from quotas.admission import Bid, Shape, Waiting
from quotas.amounts import Amounts, total
from quotas.estimates import Estimate
from quotas.models import Quota, Spec, User
from quotas.whatif import Level, Trial

AIMASTER: Final = Amounts(1000, 1024)
"""What automatic fault tolerance takes beside the job on PAI-DLC, in a quota (DLC page, fault tolerance)."""

AIMASTER_SPEC: Final = "ecs.c6.large"
"""On public resources it is an instance of this size there."""


class Unreadable(Exception):
    """The text says no job that could be looked at; `problems` say why."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__()
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Preview:
    """What would become of it in `quota`; `refused` says why it would not be accepted there.

    Of an `array` it is the first job, and `levels` are those of as many jobs as may run at a time.
    """

    dialect: str
    spec: JobSpec
    quota: Quota
    amounts: Amounts
    estimate: Estimate
    levels: tuple[Level, ...]
    trial: Trial
    refused: tuple[str, ...] = ()
    aimaster_micro: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    array: Array | None = None

    @property
    def jobs(self) -> int:
        """How many jobs the file is for."""
        return len(self.array.indexes) if self.array else 1

    @property
    def at_once(self) -> int:
        """How many of them may run at a time."""
        return self.array.most_at_once if self.array else 1

    @property
    def hour_of_all_micro(self) -> int | None:
        """What an hour costs while as many run as may."""
        return _times(self.estimate.hour_micro, self.at_once)

    @property
    def limit_of_all_micro(self) -> int | None:
        """What all of them cost if each runs as long as it may."""
        return _times(self.limit_micro, self.jobs)

    @property
    def sentence(self) -> str:
        """Whether it would start now and, if not, why, in one sentence."""
        return self.refused[0] if self.refused else waiting.outlook(self.quota.cluster.name, self.trial)

    @property
    def starts(self) -> bool:
        """Whether it would start, or be handed over, now."""
        return not self.refused and self.trial.starts

    @property
    def by_engine(self) -> bool:
        """Whether its cluster's own scheduler decides when it starts."""
        return self.quota.cluster.admission == "engine"

    @property
    def limit_s(self) -> int | None:
        """Its longest running time; None when it has none."""
        return self.spec.time_limit_s

    @property
    def kept_s(self) -> int:
        """How long it would go on holding everything after its end."""
        return self.spec.reserve_after.seconds if self.spec.reserve_after else 0

    @property
    def limit_micro(self) -> int | None:
        """What it costs if it runs as long as it may."""
        return self.estimate.over(self.limit_s) if self.limit_s else None

    @property
    def kept_micro(self) -> int | None:
        """What holding on after the end costs."""
        return self.estimate.over(self.kept_s) if self.kept_s else None

    def to_json(self) -> dict[str, Any]:
        """As the API answers."""
        return {
            "place": services.address_of(self.quota),
            "quota": {"name": self.quota.name, "source": self.quota.source},
            "amounts": self.amounts.to_json(),
            "starts": self.starts,
            "reason": self._reason(),
            "nodes": [node for node, _amounts in self.trial.decision.placement] if self.starts else [],
            "by_engine": self.by_engine,
            "jobs": self.jobs,
            "at_once": self.at_once,
            "price": {
                "billing": self.estimate.billing.value,
                "hour_micro": self.estimate.hour_micro,
                "most_hour_micro": self.estimate.most_hour_micro,
                "limit_seconds": self.limit_s,
                "limit_micro": self.limit_micro,
                "kept_seconds": self.kept_s,
                "kept_micro": self.kept_micro,
                "roles": [
                    {"count": line.count, "spec": line.spec or None, "hour_micro": line.micro}
                    for line in self.estimate.lines
                ],
            },
            "levels": [
                {
                    "name": level.name,
                    "of": "person" if level.of_person else "quota",
                    "resources": [
                        {
                            "kind": share.kind,
                            "used": share.used,
                            "wanted": share.wanted,
                            "limit": share.limit,
                            "free": share.free,
                        }
                        for share in level.shares
                    ],
                }
                for level in self.levels
            ],
        }

    def _reason(self) -> dict[str, Any]:
        if self.refused or self.trial.verdict is None:
            return {"code": "refused" if self.refused else "starts", "message": self.sentence}
        code = waiting.of_now(self.quota.cluster.name, self.trial.verdict).code
        return {"code": code, "message": self.sentence}


def of_text(
    user: User,
    text: str,
    dialect: str | None,
    place: services.Place,
    origin: Job | None = None,
    *,
    keep_original: bool = False,
) -> Preview:
    """What would become of the text: it is read, mended and placed as `services.submit` does it.

    Raises Unreadable when it would not get so far.
    """
    try:
        name, parsed = dialects.parse(text, dialect)
        if not keep_original:
            text, parsed = services.mended(text, parsed, name)
        array = parsed.array
        if array is not None:
            text, parsed = arrays.first(text, parsed, array)
        made = services.ready(user, text, name, parsed, place, origin)
    except (Refused, CannotSweepError) as refused:
        raise Unreadable(refused.problems) from refused
    found = preview(user, name, made.parsed.spec, made.quota, array)
    return replace(found, options=sending.options_of(name, made.parsed.extras))


def preview(user: User, dialect: str, spec: JobSpec, quota: Quota, array: Array | None = None) -> Preview:
    """What would become of the job in that quota; a fixed number of queries."""
    parts = tuple(services.parts_of(spec))
    at_once = array.most_at_once if array else 1
    terms = services.terms_of(spec)
    now = snapshot.take(quota.cluster)
    bids = tuple(Bid(**bid) for bid in terms.bids)
    request = Waiting(
        whatif.ASKING,
        quota.pk,
        Shape(parts),
        spec.priority or 1,
        now.now,
        user.pk,
        spec.time_limit_s,
        terms.idle,
        bids,
    )
    return Preview(
        dialect=dialect,
        spec=spec,
        quota=quota,
        amounts=total(part.each.times(part.count) for part in parts),
        estimate=estimates.estimate(quota, parts, bids, dict(now.prices)),
        levels=whatif.levels(now, replace(request, shape=Shape(_together(parts, at_once)))),
        trial=whatif.would(now, request, held=terms.held, others=terms.others, not_before=terms.not_before),
        refused=_refused(quota, spec),
        aimaster_micro=_aimaster(quota) if spec.fault_tolerance.enabled else None,
        array=array,
    )


def _together(parts: Sequence[ledger.Part], jobs: int) -> tuple[ledger.Part, ...]:
    """What so many jobs ask for."""
    return tuple(replace(part, count=part.count * jobs) for part in parts)


def _times(micro: int | None, count: int) -> int | None:
    return None if micro is None else micro * count


def _refused(quota: Quota, spec: JobSpec) -> tuple[str, ...]:
    try:
        services.refuse_beyond_public(quota, spec)
    except Refused as refused:
        return tuple(problem_message(problem) for problem in refused.problems)
    return ()


def _aimaster(quota: Quota) -> int | None:
    """An hour of the instance that PAI-DLC runs beside the job on public resources; None without a price."""
    if quota.source != "public":
        return None
    mine = Q(cluster=None) | Q(cluster=quota.cluster_id)
    ours = Q(workspace=None) | Q(workspace=quota.workspace_id)
    found = Spec.objects.filter(mine, ours, name=AIMASTER_SPEC).values_list("price_micro", flat=True)
    return found.order_by("price_micro").first()

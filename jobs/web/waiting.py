"""What a waiting job's page says beside the reason: who is ahead, when it starts, what would start it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils import timezone
from django.utils.translation import gettext as _

from jobs.lifecycle import waiting
from jobs.lifecycle.transitions import key_of
from jobs.messages import amounts
from jobs.models import Attempt, Job
from jobs.states import State
from jobs.submission import remedies
from jobs.submission.remedies import Remedy
from quotas.admission import Why, forecast, standings
from quotas.models import Request, User

MOST_AHEAD: Final = 5


@dataclass(frozen=True, slots=True)
class Offered:
    """A remedy, and what its button says."""

    remedy: Remedy
    label: str


def context(user: User, job: Job, *, controllable: bool) -> dict[str, Any]:
    """Empty for a job that does not wait; a fixed number of queries else."""
    if job.state != State.QUEUED:
        return {}
    waiting.tell([job])
    queue = standings.queue_of(job.cluster_id)
    ahead = queue.ahead_of(key_of(job.public_id, job.attempt_number))
    known = _known(user, [each.holder for each in ahead[:MOST_AHEAD]])
    verdict = waiting.verdict_in({job.cluster_id: queue}, job)
    why = verdict.why if verdict else None
    return {
        "waits": True,
        "held": why is Why.HELD,
        "ahead": known,
        "ahead_others": len(ahead) - len(known),
        "expected": expected(job, why),
        "offered": [offered(each) for each in remedies.remedies(user, job)] if controllable else [],
    }


def _known(user: User, holders: Sequence[str]) -> list[Job]:
    """The jobs of these holders that the person may know of, the next first."""
    ids = dict(Attempt.objects.filter(key__in=holders).values_list("key", "job_id"))
    jobs = Job.objects.visible_to(user).select_related("owner").in_bulk(list(ids.values()))
    return [jobs[ids[holder]] for holder in holders if ids.get(holder) in jobs]


def offered(remedy: Remedy) -> Offered:
    """A remedy with the words for it."""
    words = {
        "replicas": _("Start it now with %(replicas)s"),
        "gpus": _("Start it now with %(gpus)s"),
        "gpu_type": _("Start it now on %(type)s GPUs"),
        "quota": _("Start it now in %(quota)s"),
    }
    return Offered(remedy, words[remedy.kind] % values_of(remedy))


def values_of(remedy: Remedy) -> dict[str, str]:
    """What fills a sentence about it."""
    number = int(remedy.value) if remedy.value.isdecimal() else 0
    return {
        "replicas": amounts.replicas(number),
        "gpus": amounts.quantity("gpu", number),
        "type": remedy.value,
        "quota": remedy.value,
    }


def expected(job: Job, why: Why | None) -> str:
    """When it may start, as a range; or that nobody can say, and why not."""
    if why is Why.HELD:
        return _("When it starts can't be said, because it waits for a person to release it.")
    if why in standings.APART:
        return _("When it starts can't be said, because it does not depend on the queue.")
    request = Request.objects.filter(holder=key_of(job.public_id, job.attempt_number)).first()
    if request is None:
        return ""
    found = forecast.forecast(
        forecast.earlier_waits(request), (timezone.now() - request.since).total_seconds()
    )
    if found.because == "few":
        text = _("When it starts can't be said, because only %(known)s of its size started here before.")
    elif found.because == "unsteady":
        text = _(
            "When it starts can't be said, because waits vary too much here: forecasts would have been right "
            "%(held)s%% of the time."
        )
    elif found.because == "longer":
        text = _("When it starts can't be said, because hardly any job of its size waited so long before.")
    else:
        text = _(
            "Expected to start in %(least)s to %(most)s; such forecasts were right %(held)s%% of the time."
        )
    values = {
        "known": amounts.quantity("jobs", found.known),
        "held": round(100 * found.held),
        "least": amounts.duration(found.least_s or 0),
        "most": amounts.duration(found.most_s or 0),
    }
    return text % values

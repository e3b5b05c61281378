"""The part of a job's page about its wait: jobs ahead, estimated start, suggested actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils import timezone
from django.utils.translation import gettext as _

from jobs.lifecycle import pending_reasons
from jobs.lifecycle.transitions import key_of
from jobs.messages import amounts
from jobs.models import Attempt, Job
from jobs.states import State
from jobs.submission.checks import suggested_actions
from jobs.submission.checks.suggested_actions import SuggestedAction as Remedy
from quotas.admission import Why, forecast, queue_snapshot
from quotas.models import Request, User

MOST_AHEAD: Final = 5


@dataclass(frozen=True, slots=True)
class SuggestedAction:
    """A suggested action with its label; `field` is the id of the form's field to change, if any."""

    remedy: Remedy
    label: str
    field: str = ""


def pending_context(user: User, job: Job, *, controllable: bool) -> dict[str, Any]:
    """Return the context about a job's wait; {} if it does not wait.  The number of queries is fixed."""
    if job.state != State.QUEUED:
        return {}
    pending_reasons.load_reasons([job])
    queue = queue_snapshot.queue_of(job.cluster_id)
    ahead = queue.ahead_of(key_of(job.public_id, job.attempt_number))
    known = _visible_jobs(user, [each.holder for each in ahead[:MOST_AHEAD]])
    verdict = pending_reasons.verdict_in({job.cluster_id: queue}, job)
    why = verdict.why if verdict else None
    return {
        "waits": True,
        "held": why is Why.HELD,
        "ahead": known,
        "ahead_others": len(ahead) - len(known),
        "expected": _describe_start(job, why),
        "offered": [suggest(each, _words()) for each in suggested_actions.suggest(user, job)]
        if controllable
        else [],
    }


def _visible_jobs(user: User, holders: Sequence[str]) -> list[Job]:
    """Return the jobs of these holders that the person may see, the next first."""
    ids = dict(Attempt.objects.filter(key__in=holders).values_list("key", "job_id"))
    jobs = Job.objects.visible_to(user).select_related("owner").in_bulk(list(ids.values()))
    return [jobs[ids[holder]] for holder in holders if ids.get(holder) in jobs]


def _words() -> dict[str, str]:
    return {
        "replicas": _("Start now with %(replicas)s"),
        "gpus": _("Start now with %(gpus)s"),
        "gpu_type": _("Start now on %(type)s GPUs"),
        "quota": _("Start now in %(quota)s"),
    }


def suggest(remedy: Remedy, words: Mapping[str, str], field: str = "") -> SuggestedAction:
    """Return a suggested action, labelled with the words for its kind."""
    number = int(remedy.value) if remedy.value.isdecimal() else 0
    params = {
        "replicas": amounts.replicas(number),
        "gpus": amounts.quantity("gpu", number),
        "type": remedy.value,
        "quota": remedy.value,
    }
    return SuggestedAction(remedy, words[remedy.kind] % params, field)


def _describe_start(job: Job, why: Why | None) -> str:
    """Return the estimated start as a range, or why there is none."""
    if why is Why.HELD:
        return _("No start estimate: the job is held until released.")
    if why in queue_snapshot.APART:
        return _("No start estimate: this does not depend on the queue.")
    request = Request.objects.filter(holder=key_of(job.public_id, job.attempt_number)).first()
    if request is None:
        return ""
    found = forecast.forecast(
        forecast.earlier_waits(request), (timezone.now() - request.since).total_seconds()
    )
    if found.because == "few":
        text = _("No start estimate: only %(known)s of this size started here before.")
    elif found.because == "unsteady":
        text = _(
            "No start estimate: waiting times vary too much here (estimates would be right "
            "%(held)s%% of the time)."
        )
    elif found.because == "longer":
        text = _("No start estimate: almost no job of this size has waited this long.")
    else:
        text = _(
            "Estimated start in %(least)s to %(most)s; such estimates were right %(held)s%% of the time."
        )
    values = {
        "known": amounts.quantity("jobs", found.known),
        "held": round(100 * found.held),
        "least": amounts.duration(found.least_s or 0),
        "most": amounts.duration(found.most_s or 0),
    }
    return text % values

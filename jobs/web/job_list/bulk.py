"""Actions on several jobs of the list: stop, delete, rerun, tag, star, compare, export."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages as notes
from django.core.exceptions import BadRequest
from django.http import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, ngettext_lazy
from django.views.decorators.http import require_POST

from jobs import submission
from jobs.dialects.base import Refused
from jobs.lifecycle.transitions import Overtaken
from jobs.models import Job, JobStar
from jobs.submission import tags
from jobs.web.http import SignedIn, signed_in
from jobs.web.job_list.export import as_csv
from jobs.web.job_list.settings import list_url
from quotas.models import User

MOST_AT_ONCE: Final = 200


@dataclass(frozen=True, slots=True)
class Act:
    """What is done with each job, what is said of those with which it was, and what keeps it from others.

    A False of `run` says that there was nothing to do.
    """

    run: Callable[[User, Job, str], object]
    done: Any
    refusals: tuple[type[Exception], ...]


def _stop(user: User, job: Job, _text: str) -> bool:
    if job.is_ended:
        return False
    submission.stop(user, job)
    return True


def _star(user: User, job: Job, _text: str) -> None:
    JobStar.objects.get_or_create(user=user, job=job)


_RIGHTS: Final = (submission.Forbidden,)
ACTS: Final[Mapping[str, Act]] = {
    "stop": Act(
        _stop,
        ngettext_lazy("Stopping %(count)d job.", "Stopping %(count)d jobs.", "count"),
        (*_RIGHTS, Overtaken),
    ),
    "delete": Act(
        lambda user, job, _text: submission.delete(user, job),
        ngettext_lazy("%(count)d job deleted.", "%(count)d jobs deleted.", "count"),
        (*_RIGHTS, submission.StillRunning),
    ),
    "again": Act(
        lambda user, job, _text: submission.retry(user, job),
        ngettext_lazy("Rerunning %(count)d job.", "Rerunning %(count)d jobs.", "count"),
        (*_RIGHTS, submission.NotEnded, submission.Conflict, Refused),
    ),
    "tag": Act(
        tags.add_tag,
        ngettext_lazy("%(count)d job tagged.", "%(count)d jobs tagged.", "count"),
        (*_RIGHTS, tags.TooManyTags),
    ),
    "untag": Act(
        tags.remove_tag,
        ngettext_lazy("Tag removed from %(count)d job.", "Tag removed from %(count)d jobs.", "count"),
        _RIGHTS,
    ),
    "star": Act(_star, ngettext_lazy("%(count)d job starred.", "%(count)d jobs starred.", "count"), ()),
}


EXPORT: Final = "export"
COMPARE: Final = "compare"


@require_POST
@signed_in
def change_many(request: SignedIn) -> HttpResponseBase:
    """Do one thing with the chosen jobs; tell with how many it could not be done."""
    name = request.POST.get("act", "")
    if name not in {*ACTS, EXPORT, COMPARE}:
        raise BadRequest("no such act")
    text = " ".join(request.POST.get("tag", "").split())[: tags.LONGEST]
    if name in {"tag", "untag"} and not text:
        notes.error(request, _("Enter a tag."))
        return redirect(list_url(request))
    ids = request.POST.getlist("id")[:MOST_AT_ONCE]
    if not ids:
        notes.error(request, _("Select jobs first."))
        return redirect(list_url(request))
    if name == COMPARE:
        return redirect(f"{reverse('jobs_compare')}?{urlencode({'id': ids}, doseq=True)}")
    jobs = Job.objects.visible_to(request.user).filter(public_id__in=ids).order_by("pk")
    jobs = jobs.select_related("owner", "workspace", "cluster", "quota")
    if name == EXPORT:
        return as_csv(jobs)
    act = ACTS[name]
    count = sum(_try(act, request.user, job, text) for job in jobs)
    if count:
        notes.success(request, act.done % {"count": count})
    if left := len(ids) - count:
        refused = ngettext(
            "Not done with %(count)d job: wrong state, or no permission.",
            "Not done with %(count)d jobs: wrong state, or no permission.",
            left,
        )
        notes.warning(request, refused % {"count": left})
    return redirect(list_url(request))


def _try(act: Act, user: User, job: Job, text: str) -> bool:
    try:
        return act.run(user, job, text) is not False
    except act.refusals:
        return False

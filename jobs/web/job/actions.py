"""The buttons of a job's page: stop, retry, share, delete."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.contrib import messages as notes
from django.http import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from jobs import submission
from jobs.dialects.base import Refused
from jobs.lifecycle.transitions import Overtaken
from jobs.models import Job, JobFile, Visibility
from jobs.submission import job_control, tags
from jobs.submission.access import find_job
from jobs.submission.checks.suggested_actions import NoSuchChange, SuggestedAction, apply_change
from jobs.web.http import SignedIn, signed_in
from quotas.access import Verb
from quotas.models import User


@require_POST
@signed_in
def stop(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Ask for the job's end."""
    changing = _("Job not stopped: its state was changing. Try again.")
    return _control(request, public_id, submission.stop, {Overtaken: changing})


def _control(
    request: SignedIn,
    public_id: str,
    command: Callable[[User, Job], object],
    refusals: Mapping[type[Exception], str],
    done: str = "",
) -> HttpResponseBase:
    """Apply a command to a job that the person controls, and return to its page.

    A refusal without a text of its own is told by its exception.
    """
    job = find_job(request.user, public_id, Verb.CONTROL)
    try:
        command(request.user, job)
    except tuple(refusals) as error:
        notes.error(request, refusals[type(error)] or str(error))
    else:
        if done:
            notes.success(request, done)
    return redirect("job", public_id)


@require_POST
@signed_in
def hold(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Keep a waiting job from starting."""
    why = request.POST.get("why", "")[: submission.LONGEST_REASON]
    refusals = {submission.ReasonMissing: "", submission.NotWaiting: _("Only waiting jobs can be held.")}
    return _control(request, public_id, lambda user, job: submission.hold(user, job, why=why), refusals)


@require_POST
@signed_in
def release(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Let a held job start when its turn comes."""
    return _control(
        request, public_id, submission.release, {submission.NotWaiting: _("The job is not held.")}
    )


@require_POST
@signed_in
def keep(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Record that an idle job is still needed."""
    refused = _(
        "Can't keep the job running: it is no longer idle, is already stopping, or has reached "
        "the maximum number of extensions."
    )
    done = _("The job keeps running; idle time was reset.")
    return _control(request, public_id, submission.keep, {submission.NotIdle: refused}, done)


@require_POST
@signed_in
def extend(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Extend the time limit of a running job by one hour."""
    job = find_job(request.user, public_id, Verb.CONTROL)
    try:
        job_control.extend(request.user, job)
    except job_control.NotExtended:
        mine = job.owner_id == request.user.pk
        why = _("Can't extend the job: not allowed by its template or quota.")
        notes.error(request, why if mine else _("Only the owner can extend a job."))
    else:
        notes.success(request, _("Extended by 1 hour."))
    return redirect("job", public_id)


@require_POST
@signed_in
def instead(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Stop a waiting job and submit it with the one change that starts it."""
    job = find_job(request.user, public_id, Verb.CONTROL)
    remedy = SuggestedAction(request.POST.get("kind", ""), request.POST.get("value", "")[:200])
    place = submission.parse_target(remedy.value) if remedy.kind == "quota" else None
    try:
        spec = apply_change(JobFile.objects.get(job=job).spec, remedy)
        again = submission.replace_queued(request.user, job, spec, place).job
    except submission.NotWaiting:
        notes.error(request, _("The job is no longer waiting."))
    except (Refused, NoSuchChange):
        notes.error(request, _("This change can't be applied to the job."))
    else:
        text = _("Submitted as %(name)s; the waiting job was stopped.")
        notes.success(request, text % {"name": again.name})
        public_id = again.public_id
    return redirect("job", public_id)


@require_POST
@signed_in
def retry(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Submit the job again as a new one, with `memory` with more of it.

    The form's key makes a double click one job.
    """
    job = find_job(request.user, public_id)
    key = request.POST.get("key", "")[:64]
    try:
        again = submission.retry(
            request.user,
            job,
            idempotency_key=key or None,
            second_copy="second_copy" in request.POST,
            memory="memory" in request.POST,
        ).job
    except submission.NotEnded:
        notes.warning(request, _("The job has not ended. To start a second copy, select Rerun again."))
        return redirect("job", public_id)
    except submission.MemoryNotChanged:
        notes.error(request, _("The memory of this job can't be changed here. Select Clone & edit."))
        return redirect("job", public_id)
    except (Refused, submission.Conflict):
        notes.error(
            request, _("The job can't be rerun unchanged. Fix the problems in the job file and submit again.")
        )
        return redirect(f"{reverse('job_new')}?like={public_id}")
    except submission.Forbidden:
        notes.error(request, _("Not allowed to start jobs in %(workspace)s.") % {"workspace": job.workspace})
        return redirect("job", public_id)
    notes.success(request, _("Rerunning as %(name)s.") % {"name": again.name})
    return redirect("job", again.public_id)


@require_POST
@signed_in
def share(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Open the job to its workspace, or close it."""
    public = request.POST.get("visibility") == Visibility.PUBLIC
    visibility = Visibility.PUBLIC if public else Visibility.PRIVATE
    return _control(request, public_id, lambda user, job: submission.share(user, job, visibility), {})


@require_POST
@signed_in
def delete(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Remove an ended job from every page."""
    job = find_job(request.user, public_id, Verb.CONTROL)
    try:
        submission.delete(request.user, job)
    except submission.StillRunning:
        notes.error(request, _("Only ended jobs can be deleted. Stop the job first."))
        return redirect("job", public_id)
    notes.success(request, _("%(name)s was deleted.") % {"name": job.name})
    return redirect("jobs")


@require_POST
@signed_in
def label(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Save the job's description and tags, as its page has them."""
    names = {" ".join(each.split())[: tags.LONGEST] for each in request.POST.get("tags", "").split(",")}
    description = request.POST.get("description", "").strip()[: tags.LONGEST_DESCRIPTION]
    too_many = _("Maximum of %(most)s tags reached.") % {"most": tags.MOST}
    return _control(
        request,
        public_id,
        lambda user, job: tags.relabel(user, job, description, names - {""}),
        {tags.TooManyTags: too_many},
        _("Saved."),
    )

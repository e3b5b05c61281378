"""Stack dumps of a job: requested by a button, and downloaded."""

from __future__ import annotations

from django.contrib import messages as notes
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from jobs.submission import stack_dumps
from jobs.submission.access import find_job
from jobs.web.http import SignedIn, signed_in, text_response
from quotas.access import Verb


@require_POST
@signed_in
def new(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Request the stacks of all running replicas."""
    job = find_job(request.user, public_id, Verb.ENTER)
    try:
        stack_dumps.ask(request.user, job)
    except stack_dumps.NothingRuns:
        notes.error(request, _("The job is not running."))
    else:
        notes.success(request, _("Collecting stacks. They appear here in a moment."))
    return redirect(reverse("job", args=[public_id]) + "?tab=replicas")


@require_safe
@signed_in
def report(request: SignedIn, public_id: str, pk: int) -> HttpResponseBase:
    """Download all stacks of a dump."""
    job = find_job(request.user, public_id)
    dump = stack_dumps.find(job, pk)
    if dump is None:
        raise Http404
    return text_response(dump.report, f"{job.public_id}-stacks-{dump.pk}.txt")

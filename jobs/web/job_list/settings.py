"""What a person keeps about the list: saved views, columns, and stars."""

from __future__ import annotations

from typing import Final

from django.contrib import messages as notes
from django.http import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from jobs.models import JobStar, SavedView
from jobs.search.job_pages import NEWEST
from jobs.search.query import LONGEST, parse
from jobs.submission.access import find_job
from jobs.web.http import SignedIn, number, signed_in
from jobs.web.job_list.columns import choose_columns
from quotas.access import Verb

MOST_VIEWS: Final = 50
_LONGEST_NAME: Final = 60


@require_POST
@signed_in
def save_view(request: SignedIn) -> HttpResponseBase:
    """Save the query line and the order under a name; one of that name is replaced."""
    name = " ".join(request.POST.get("name", "").split())[:_LONGEST_NAME]
    query = str(parse(request.POST.get("query", "")))[:LONGEST]
    sort = request.POST.get("sort", "")[:32]
    views = SavedView.objects.filter(user=request.user)
    if not name:
        notes.error(request, _("Give the view a name."))
    elif views.exclude(name=name).count() >= MOST_VIEWS:
        notes.error(request, _("Maximum of %(most)s views reached. Delete one first.") % {"most": MOST_VIEWS})
    else:
        values = {"query": query, "sort": "" if sort == NEWEST else sort}
        SavedView.objects.update_or_create(user=request.user, name=name, defaults=values)
    return redirect(list_url(request))


@require_POST
@signed_in
def delete_view(request: SignedIn) -> HttpResponseBase:
    """Delete one of the person's views."""
    SavedView.objects.filter(user=request.user, pk=number(request.POST.get("view")) or 0).delete()
    return redirect(list_url(request))


@require_POST
@signed_in
def save_columns(request: SignedIn) -> HttpResponseBase:
    """Keep the columns that were chosen; without any the usual ones are back."""
    choose_columns(request.user, request.POST.getlist("column"))
    return redirect(list_url(request))


@require_POST
@signed_in
def star(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Give a job a star, or take it back."""
    job = find_job(request.user, public_id, Verb.LIST)
    if "off" in request.POST:
        JobStar.objects.filter(user=request.user, job=job).delete()
    else:
        JobStar.objects.get_or_create(user=request.user, job=job)
    return redirect(list_url(request, reverse("job", args=[public_id])))


def list_url(request: SignedIn, otherwise: str = "") -> str:
    """Return the address of the list as it was, with its query."""
    where = request.POST.get("next", "")
    mine = url_has_allowed_host_and_scheme(where, {request.get_host()}, require_https=request.is_secure())
    return where if mine and where else otherwise or reverse("jobs")

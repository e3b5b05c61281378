"""A person's own access tokens: made, shown once, revoked."""

from __future__ import annotations

from datetime import timedelta

from django.contrib import messages as notes
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from console.sign_in.confirmation import require_confirmation
from console.views.forms import TokenForm
from console.views.settings import MADE, section_page
from jobs.web import one_time_values
from jobs.web.http import SignedIn, signed_in
from quotas.accounts import tokens as access_tokens


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
@require_confirmation
def tokens(request: SignedIn) -> HttpResponseBase:
    """Show the person's access tokens; a POST makes one, which the page then shows, this once."""
    if request.method != "POST":
        return section_page(request, "settings_tokens")
    form = TokenForm(request.POST)
    if not form.is_valid():
        return section_page(request, "settings_tokens", form)
    made = access_tokens.issue(
        request.user,
        name=form.cleaned_data["name"],
        scopes=form.cleaned_data["scopes"],
        lifetime=timedelta(days=form.cleaned_data["days"]),
    )
    one_time_values.store(request, MADE, made)
    return redirect("settings_tokens")


@require_POST
@signed_in
def revoke_token(request: SignedIn, pk: int) -> HttpResponseBase:
    """End a token now."""
    if not access_tokens.revoke(request.user, pk):
        raise Http404
    notes.success(request, _("Token revoked. Requests with this token are now rejected."))
    return redirect("settings_tokens")

"""A person's own access keys: created, shown once, rotated, revoked."""

from __future__ import annotations

from django.contrib import messages as notes
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from console.sign_in.confirmation import require_confirmation
from console.views import shown_keys
from console.views.forms import AccessKeyForm
from console.views.settings import section_page
from jobs.web.http import SignedIn, signed_in
from quotas.accounts import access_keys as keys


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
@require_confirmation
def access_keys(request: SignedIn) -> HttpResponseBase:
    """Show the person's access keys; a POST creates one, which the page then shows, this once."""
    if request.method != "POST":
        return section_page(request, "settings_access_keys")
    form = AccessKeyForm(request.POST)
    if not form.is_valid():
        return section_page(request, "settings_access_keys", form)
    issued = keys.issue(
        request.user,
        name=form.cleaned_data["name"],
        scopes=form.cleaned_data["scopes"],
        lifetime=form.lifetime,
    )
    shown_keys.store(request, shown_keys.PERSONAL, issued)
    return redirect("settings_access_keys")


@require_POST
@signed_in
@require_confirmation
def rotate_key(request: SignedIn, pk: int) -> HttpResponseBase:
    """Create a key in the place of another, which works one more day."""
    issued = keys.rotate(request.user, pk)
    if issued is None:
        raise Http404
    shown_keys.store(request, shown_keys.PERSONAL, issued)
    notes.success(request, _("Key rotated. The previous key works for one more day."))
    return redirect("settings_access_keys")


@require_POST
@signed_in
def revoke_key(request: SignedIn, pk: int) -> HttpResponseBase:
    """End a key now."""
    if not keys.revoke(request.user, pk):
        raise Http404
    notes.success(request, _("Key revoked. Requests signed with this key are now rejected."))
    return redirect("settings_access_keys")

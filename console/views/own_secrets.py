"""A person's own secrets: saved once, listed by name in the settings, thrown away."""

from __future__ import annotations

from django.contrib import messages as notes
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from console.views.forms import SecretForm
from console.views.settings import section_page
from jobs.assets import personal_secrets
from jobs.web.http import SignedIn, signed_in


@sensitive_post_parameters("value")
@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def secrets(request: SignedIn) -> HttpResponseBase:
    """Show the person's secrets by name; a POST saves one, in place of an earlier one of that name."""
    if request.method != "POST":
        return section_page(request, "settings_secrets")
    form = SecretForm(request.POST)
    if form.is_valid():
        name, value = form.cleaned_data["name"], form.cleaned_data["value"].replace("\r\n", "\n")
        try:
            new = personal_secrets.keep(request.user, name, value)
        except personal_secrets.TooMany:
            form.add_error(
                "name",
                _("Limit of %(most)s secrets reached. Remove one first.") % {"most": personal_secrets.MOST},
            )
        else:
            text = (
                _("The secret %(name)s was saved.")
                if new
                else _("Secret %(name)s updated. Jobs that start from now on get the new value.")
            )
            notes.success(request, text % {"name": name})
            return redirect("settings_secrets")
    return section_page(request, "settings_secrets", form)


@require_POST
@signed_in
def remove_secret(request: SignedIn, pk: int) -> HttpResponseBase:
    """Throw a secret away; jobs that have it already keep what they have."""
    if not personal_secrets.remove(request.user, pk):
        raise Http404
    notes.success(request, _("Secret removed. Jobs that reference it are now rejected."))
    return redirect("settings_secrets")

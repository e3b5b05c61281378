"""Settings: how the console looks and speaks to a person, their secrets, SSH keys and tokens."""

from __future__ import annotations

from typing import Final

from django.contrib import messages as notes
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from console.views.forms import SecretForm, SettingsForm, SshKeyForm, TokenForm
from jobs.client import wheel_builder
from jobs.models import PersonalSecret, SshKey
from jobs.web import one_time_values
from jobs.web.http import SignedIn, page, signed_in
from quotas.access import workspaces_of
from quotas.models import AccessToken, User

MOST_WORKSPACES = 50
MADE: Final = "token"
"""A token that was just made, for `once`."""


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def settings(request: SignedIn) -> HttpResponseBase:
    """The page; a POST changes language, time zone and theme."""
    if request.method != "POST":
        return settings_page(request)
    form = SettingsForm(request.POST, instance=User.objects.get(pk=request.user.pk))
    if not form.is_valid():
        return settings_page(request, form=form, status=422)
    form.save()
    notes.success(request, _("Saved."))
    return redirect("settings")


def settings_page(
    request: SignedIn,
    *,
    form: SettingsForm | None = None,
    token_form: TokenForm | None = None,
    key_form: SshKeyForm | None = None,
    secret_form: SecretForm | None = None,
    status: int = 200,
) -> HttpResponse:
    """The page with whichever of its forms was sent, and a token that was just made."""
    context = {
        "form": form or SettingsForm(instance=request.user),
        "token_form": token_form or TokenForm(),
        "tokens": AccessToken.objects.filter(user=request.user, revoked_at=None),
        "made": one_time_values.pop(request, MADE),
        "client_url": request.build_absolute_uri(reverse("client", args=[wheel_builder.file_name()])),
        "key_form": key_form or SshKeyForm(),
        "secret_form": secret_form or SecretForm(),
        "secrets": PersonalSecret.objects.filter(owner=request.user).order_by("name"),
        "workspaces_of": workspaces_of(request.user).order_by("name")[:MOST_WORKSPACES],
        "ssh_keys": SshKey.objects.filter(user=request.user).select_related("job"),
    }
    return page(request, "console/settings.html", context, status=status)

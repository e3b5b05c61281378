"""Settings: a section each for appearance, secrets, SSH keys, access tokens, access keys and workspaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.contrib import messages as notes
from django.forms import BaseForm
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from console.views import shown_keys
from console.views.forms import AccessKeyForm, SecretForm, SettingsForm, SshKeyForm, TokenForm
from jobs.client import wheel_builder
from jobs.models import PersonalSecret, SshKey
from jobs.web import one_time_values
from jobs.web.http import SignedIn, page, signed_in
from quotas.access import administered_by, workspaces_of
from quotas.models import AccessKey, AccessToken, User

MOST_WORKSPACES = 50
MADE: Final = "token"
"""A token that was just made, for `one_time_values`."""


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def settings(request: SignedIn) -> HttpResponseBase:
    """Show language, time zone and theme; a POST changes them."""
    if request.method != "POST":
        return section_page(request, "settings")
    form = SettingsForm(request.POST, instance=User.objects.get(pk=request.user.pk))
    if not form.is_valid():
        return section_page(request, "settings", form)
    form.save()
    notes.success(request, _("Saved."))
    return redirect("settings")


@require_safe
@signed_in
def workspaces(request: SignedIn) -> HttpResponseBase:
    """Show the person's workspaces, each with the way to its members."""
    return section_page(request, "settings_workspaces")


def section_page(request: SignedIn, section: str, form: BaseForm | None = None) -> HttpResponse:
    """Return the page of a section, named by its URL; with a `form` that was refused, as 422."""
    template, context_of = SECTIONS[section]
    context = {"section": template, **context_of(request, form)}
    return page(request, "console/settings.html", context, status=422 if form else 200)


def _appearance(request: SignedIn, form: BaseForm | None) -> Mapping[str, Any]:
    return {"form": form or SettingsForm(instance=request.user)}


def _secrets(request: SignedIn, form: BaseForm | None) -> Mapping[str, Any]:
    rows = PersonalSecret.objects.filter(owner=request.user).order_by("name")
    return {"secrets": rows, "secret_form": form or SecretForm()}


def _ssh_keys(request: SignedIn, form: BaseForm | None) -> Mapping[str, Any]:
    rows = SshKey.objects.filter(user=request.user).select_related("job")
    return {"ssh_keys": rows, "key_form": form or SshKeyForm()}


def _tokens(request: SignedIn, form: BaseForm | None) -> Mapping[str, Any]:
    return {
        "tokens": AccessToken.objects.filter(user=request.user, revoked_at=None),
        "token_form": form or TokenForm(),
        "made": one_time_values.pop(request, MADE),
        "client_url": request.build_absolute_uri(reverse("client", args=[wheel_builder.file_name()])),
    }


def _access_keys(request: SignedIn, form: BaseForm | None) -> Mapping[str, Any]:
    return {
        "access_keys": AccessKey.objects.filter(user=request.user, revoked_at=None),
        "access_key_form": form or AccessKeyForm(),
        "made_key": shown_keys.pop(request, shown_keys.PERSONAL),
    }


def _workspaces(request: SignedIn, form: BaseForm | None) -> Mapping[str, Any]:
    return {
        "workspaces_of": workspaces_of(request.user).order_by("name")[:MOST_WORKSPACES],
        "administered": set(administered_by(request.user).values_list("pk", flat=True)),
    }


SECTIONS: Final[Mapping[str, tuple[str, Callable[[SignedIn, BaseForm | None], Mapping[str, Any]]]]] = {
    "settings": ("console/settings/appearance.html", _appearance),
    "settings_secrets": ("console/settings/secrets.html", _secrets),
    "settings_ssh_keys": ("console/settings/ssh_keys.html", _ssh_keys),
    "settings_tokens": ("console/settings/tokens.html", _tokens),
    "settings_access_keys": ("console/settings/access_keys.html", _access_keys),
    "settings_workspaces": ("console/settings/workspaces.html", _workspaces),
}
"""Template and context of each section."""

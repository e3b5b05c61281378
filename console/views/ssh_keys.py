"""A person's own SSH keys: added, listed in the settings, removed."""

from __future__ import annotations

from django.contrib import messages as notes
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from console.sign_in.confirmation import require_confirmation
from console.views.forms import SshKeyForm
from console.views.settings import section_page
from jobs.access import sshkeys
from jobs.messages.ssh import key_message
from jobs.web.http import SignedIn, signed_in


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
@require_confirmation
def ssh_keys(request: SignedIn) -> HttpResponseBase:
    """Show the person's SSH keys; a POST adds one."""
    if request.method != "POST":
        return section_page(request, "settings_ssh_keys")
    form = SshKeyForm(request.POST)
    if form.is_valid():
        try:
            sshkeys.add(request.user, form.cleaned_data["text"], form.cleaned_data["title"])
        except sshkeys.BadKey as bad:
            form.add_error("text", key_message(bad.code, bad.params))
        else:
            notes.success(request, _("Key added. You can now use it to connect to your running jobs."))
            return redirect("settings_ssh_keys")
    return section_page(request, "settings_ssh_keys", form)


@require_POST
@signed_in
def remove_key(request: SignedIn, pk: int) -> HttpResponseBase:
    """Take a key away; whoever is inside by it is put out."""
    if not sshkeys.remove(request.user, pk):
        raise Http404
    notes.success(request, _("Key removed. Connections that use it are being closed."))
    return redirect("settings_ssh_keys")

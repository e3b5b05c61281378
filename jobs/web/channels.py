"""Settings → Notifications: a person's own channels, and those of workspaces they keep."""

from __future__ import annotations

import uuid
from typing import Any, Final

from django.conf import settings
from django.contrib import messages as notes
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from jobs.messages.channels import channel_message
from jobs.messages.deliveries import delivery_message
from jobs.models import Channel, Delivery, Rule
from jobs.models.kinds import SENT, Kind
from jobs.notifications import channels as verbs
from jobs.notifications import routing
from jobs.notifications.addresses import Wrong
from jobs.web import once
from jobs.web.channel_forms import KINDS, ChannelForm, PageRuleForm, QuietForm, RuleForm, about_of, abouts
from jobs.web.http import SignedIn, page, signed_in
from quotas.access import workspaces_of
from quotas.models import Workspace

FRAGMENTS: Final = {"deliveries": "jobs/channels/deliveries.html"}
MOST_DELIVERIES: Final = 50


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def channels(request: SignedIn) -> HttpResponseBase:
    """The person's channels; a POST changes what they are told in the console."""
    rule = routing.page_rule(request.user)
    form = PageRuleForm(request.POST if request.method == "POST" else None, instance=rule)
    if request.method == "POST" and form.is_valid():
        form.save()
        notes.success(request, _("Saved."))
        return redirect("channels")
    context = {
        "form": form,
        "channels": verbs.of_person(request.user),
        "workspaces_kept": verbs.kept_by(request.user).order_by("name"),
        "kinds": _kinds(None),
    }
    return page(request, "jobs/channels.html", context, status=422 if form.is_bound else 200)


@require_safe
@signed_in
def workspace_channels(request: SignedIn, slug: str) -> HttpResponseBase:
    """The channels of a workspace, for its admins."""
    workspace = _workspace(request, slug)
    context = {"workspace": workspace, "channels": workspace.channels.all(), "kinds": _kinds(workspace)}
    return page(request, "jobs/channels.html", context)


def _workspace(request: SignedIn, slug: str) -> Workspace:
    workspace = get_object_or_404(workspaces_of(request.user), slug=slug)
    if not verbs.may_keep(request.user, workspace):
        raise PermissionDenied(
            _("Only the admins of %(workspace)s keep its notifications.") % {"workspace": workspace.name}
        )
    return workspace


def _kinds(workspace: Workspace | None) -> list[dict[str, str]]:
    """What can be added, and where."""
    offered = [kind for kind in KINDS if kind is not Channel.Kind.EMAIL or settings.CONSOLE_MAIL]
    return [{"label": str(kind.label), "url": _new_url(kind, workspace)} for kind in offered]


def _new_url(kind: str, workspace: Workspace | None) -> str:
    if workspace is None:
        return reverse("channel_new", args=[kind])
    return reverse("workspace_channel_new", args=[workspace.slug, kind])


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def new(request: SignedIn, kind: str) -> HttpResponseBase:
    """Add a channel of one's own."""
    return _new(request, kind, None)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def workspace_new(request: SignedIn, slug: str, kind: str) -> HttpResponseBase:
    """Add a channel to a workspace."""
    return _new(request, kind, _workspace(request, slug))


def _new(request: SignedIn, kind: str, workspace: Workspace | None) -> HttpResponseBase:
    if kind not in KINDS or (kind == Channel.Kind.EMAIL and not settings.CONSOLE_MAIL):
        raise Http404
    form = ChannelForm(kind, workspace, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            made = verbs.add(
                request.user,
                kind,
                form.address(),
                title=form.cleaned_data["title"],
                workspace=workspace,
                language=form.cleaned_data["language"],
            )
        except Wrong as wrong:
            form.add_error(wrong.field, channel_message(wrong.code, wrong.detail))
        except verbs.Refused as refused:
            form.add_error(None, channel_message(refused.code))
        else:
            if made.secret:
                once.keep(request, _made(made.channel), made.secret)
            return _to(made.channel)
    context = {
        "form": form,
        "kind": Channel.Kind(kind),
        "workspace": workspace,
        "list_url": _list_url(workspace),
        "action": _new_url(kind, workspace),
    }
    return page(request, "jobs/channels/new.html", context, status=422 if form.is_bound else 200)


def _list_url(workspace: Workspace | None) -> str:
    return reverse("workspace_channels", args=[workspace.slug]) if workspace else reverse("channels")


def _to(channel: Channel) -> HttpResponse:
    return redirect("channel", channel.pk)


# --- one channel -----------------------------------------------------------------------------------------


def _find(request: SignedIn, pk: int) -> Channel:
    channel = verbs.find(request.user, pk)
    if channel is None:
        raise Http404
    return channel


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def channel(request: SignedIn, pk: int) -> HttpResponseBase:
    """What is told there, and what became of it; a POST changes its name and quiet hours."""
    found = _find(request, pk)
    if request.method != "POST":
        return _show(request, found)
    form = QuietForm(request.POST, instance=found)
    if not form.is_valid():
        return _show(request, found, quiet_form=form, status=422)
    form.save()
    notes.success(request, _("Saved."))
    return _to(found)


def _show(
    request: SignedIn,
    found: Channel,
    *,
    quiet_form: QuietForm | None = None,
    rule_form: RuleForm | None = None,
    status: int = 200,
) -> HttpResponse:
    deliveries = [_delivery(row) for row in found.deliveries.order_by("-id")[:MOST_DELIVERIES]]
    context: dict[str, Any] = {
        "channel": found,
        "deliveries": deliveries,
        "going": any(row["state"] == Delivery.State.WAITING for row in deliveries),
    }
    if not request.htmx:
        labels = dict(_flat(abouts(request.user, found)))
        context |= {
            "made": once.take(request, _made(found)),
            "list_url": _list_url(found.workspace),
            "quiet_form": quiet_form or QuietForm(instance=found),
            "rules": [_rule(row, labels) for row in found.rules.all()],
            "rule_form": rule_form or RuleForm(request.user, found, instance=Rule(events=list(SENT))),
        }
    return page(request, "jobs/channels/channel.html", context, fragments=FRAGMENTS, status=status)


def _delivery(row: Delivery) -> dict[str, Any]:
    return {
        "public_id": row.public_id,
        "test": row.test,
        "state": row.state,
        "label": row.get_state_display(),
        "attempts": row.attempts,
        "tried_at": row.tried_at,
        "created_at": row.created_at,
        "due_at": row.due_at,
        "code": row.code,
        "why": delivery_message(row.error, row.detail) if row.error else "",
    }


def _flat(choices: list[tuple[str, Any]]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for value, label in choices:
        found += label if isinstance(label, list) else [(value, str(label))]
    return found


def _rule(row: Rule, labels: dict[str, str]) -> dict[str, Any]:
    events = [str(Kind(value).label) for value in row.events if value in Kind.values]
    return {"row": row, "events": events, "about": labels.get(about_of(row), row.get_scope_display())}


@require_POST
@signed_in
def test(request: SignedIn, pk: int) -> HttpResponseBase:
    """Send a test; the page then shows what becomes of it."""
    found = _find(request, pk)
    try:
        verbs.test(found)
    except verbs.Refused as refused:
        notes.warning(request, channel_message(refused.code))
    return _to(found)


@require_POST
@signed_in
def switch(request: SignedIn, pk: int) -> HttpResponseBase:
    """Turn it on or off."""
    found = _find(request, pk)
    verbs.switch(found, on=request.POST.get("on") == "1")
    notes.success(request, _("Saved."))
    return _to(found)


@require_POST
@signed_in
def rotate(request: SignedIn, pk: int) -> HttpResponseBase:
    """Exchange the secret; the channel's page shows the new one, this once."""
    found = _find(request, pk)
    try:
        made = verbs.rotate(found)
    except verbs.Refused as refused:
        notes.warning(request, channel_message(refused.code))
        return _to(found)
    once.keep(request, _made(found), made)
    return _to(found)


def _made(found: Channel) -> str:
    """The name of a channel's new secret, for `once`."""
    return f"secret of channel {found.pk}"


@require_POST
@signed_in
def remove(request: SignedIn, pk: int) -> HttpResponseBase:
    """Remove it with its rules and its record."""
    found = _find(request, pk)
    back = _list_url(found.workspace)
    found.delete()
    notes.success(request, _("The channel was removed."))
    return redirect(back)


@require_POST
@signed_in
def rule_new(request: SignedIn, pk: int) -> HttpResponseBase:
    """One more thing to tell there."""
    found = _find(request, pk)
    if found.rules.count() >= verbs.MOST_RULES:
        notes.warning(request, channel_message("too_many_rules"))
        return _to(found)
    form = RuleForm(request.user, found, request.POST, instance=Rule(channel=found))
    if not form.is_valid():
        return _show(request, found, rule_form=form, status=422)
    form.save()
    notes.success(request, _("The rule was added."))
    return _to(found)


@require_POST
@signed_in
def rule_remove(request: SignedIn, pk: int) -> HttpResponseBase:
    """One thing less."""
    rule = get_object_or_404(Rule, pk=pk)
    found = _find(request, rule.channel_id)
    rule.delete()
    notes.success(request, _("The rule was removed."))
    return _to(found)


@require_POST
@signed_in
def again(request: SignedIn, public_id: uuid.UUID) -> HttpResponseBase:
    """Send a message once more."""
    delivery = verbs.again(request.user, public_id)
    if delivery is None:
        raise Http404
    return redirect("channel", delivery.channel_id)

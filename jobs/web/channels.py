"""Settings → Notifications: a person's own channels, and those of workspaces they manage."""

from __future__ import annotations

import uuid
from typing import Any, Final

from django import forms
from django.conf import settings
from django.contrib import messages as notes
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from jobs.messages.deliveries import channel_message, delivery_message
from jobs.models import Channel, Delivery, NotificationRule
from jobs.models.kinds import CHOICES, SENT, Kind
from jobs.notifications import channels as verbs
from jobs.notifications import routing
from jobs.notifications.channel_addresses import ASKED, OPTIONAL, Wrong
from jobs.web import one_time_values
from jobs.web.http import SignedIn, page, set_choices, signed_in
from quotas.access import workspaces_of
from quotas.models import Quota, User, Workspace

MOST_QUOTAS: Final = 200

_LABELS: Final = {
    "to": gettext_lazy("E-mail address"),
    "url": gettext_lazy("Webhook URL"),
    "secret": gettext_lazy("Signing secret"),
    "token": gettext_lazy("Bot token"),
    "chat": gettext_lazy("Chat"),
}

_HELP: Final = {
    (Channel.Kind.EMAIL, "to"): gettext_lazy(
        "A confirmation message is sent first; the recipient confirms the address."
    ),
    (Channel.Kind.WEBHOOK, "url"): gettext_lazy(
        "Messages are signed JSON POST requests. The secret is shown once after you add the channel."
    ),
    (Channel.Kind.SLACK, "url"): gettext_lazy(
        "From the app's “Incoming Webhooks” page; starts with https://hooks.slack.com/."
    ),
    (Channel.Kind.DINGTALK, "url"): gettext_lazy(
        "From the group's custom robot; starts with https://oapi.dingtalk.com/."
    ),
    (Channel.Kind.DINGTALK, "secret"): gettext_lazy(
        "If the robot's security setting is “sign”: the key that starts with SEC."
    ),
    (Channel.Kind.FEISHU, "url"): gettext_lazy(
        "From the group's custom bot; starts with https://open.feishu.cn/ or https://open.larksuite.com/."
    ),
    (Channel.Kind.FEISHU, "secret"): gettext_lazy(
        "Only if the bot's security setting is “signature verification”."
    ),
    (Channel.Kind.WECOM, "url"): gettext_lazy(
        "From the group's robot; starts with https://qyapi.weixin.qq.com/."
    ),
    (Channel.Kind.MATTERMOST, "url"): gettext_lazy(
        "From Integrations, Incoming Webhooks; looks like https://…/hooks/…."
    ),
    (Channel.Kind.DISCORD, "url"): gettext_lazy(
        "From the channel's settings, Integrations; starts with https://discord.com/."
    ),
    (Channel.Kind.TEAMS, "url"): gettext_lazy(
        "From the channel's Workflows: “Post to a channel when a webhook is received”."
    ),
    (Channel.Kind.TELEGRAM, "token"): gettext_lazy(
        "The token that @BotFather gave you when you created the bot."
    ),
    (Channel.Kind.TELEGRAM, "chat"): gettext_lazy(
        "Chat ID, or @name of a public channel; the bot must be a member."
    ),
}

KINDS: Final = tuple(kind for kind in Channel.Kind if kind is not Channel.Kind.PAGE)
HOURS: Final = tuple((hour, f"{hour:02}:00") for hour in range(24))
QUIET: Final = (("", gettext_lazy("never")), *HOURS)
WAITS: Final = (
    (15, gettext_lazy("15 minutes")),
    (60, gettext_lazy("1 hour")),
    (240, gettext_lazy("4 hours")),
    (720, gettext_lazy("12 hours")),
    (1440, gettext_lazy("1 day")),
)
SHARES: Final = tuple((percent, f"{percent} %") for percent in (50, 70, 80, 90, 95, 100))


class ChannelForm(forms.Form):
    """A new channel of one kind; its secrets are never shown again."""

    title = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=100,
        required=False,
        help_text=gettext_lazy("Shown in the list of channels."),
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )
    language = forms.ChoiceField(
        label=gettext_lazy("Message language"),
        required=False,
        widget=forms.Select(attrs={"class": "form-select"}),
    )

    def __init__(self, kind: str, workspace: Workspace | None, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.address_fields = ASKED[kind]
        for name in self.address_fields:
            self.fields[name] = forms.CharField(
                label=_LABELS[name],
                max_length=2000,
                required=name not in OPTIONAL,
                help_text=_HELP.get((Channel.Kind(kind), name), ""),
                widget=forms.TextInput(
                    attrs={"class": "form-control mono", "autocomplete": "off", "spellcheck": "false"}
                ),
            )
        own = gettext_lazy("Console default") if workspace else gettext_lazy("Same as my settings")
        set_choices(self.fields["language"], [("", own), *settings.LANGUAGES])
        self.order_fields([*self.address_fields, "title", "language"])

    def address(self) -> dict[str, str]:
        """Return the fields of the channel's address."""
        return {name: self.cleaned_data[name] for name in self.address_fields}


def _hour_field(label: Any) -> forms.TypedChoiceField:
    return forms.TypedChoiceField(label=label, required=False, coerce=int, empty_value=None, choices=QUIET)


class QuietForm(forms.ModelForm[Channel]):
    """A channel's name and its quiet hours."""

    quiet_from = _hour_field(gettext_lazy("Quiet hours start"))
    quiet_until = _hour_field(gettext_lazy("Quiet hours end"))

    class Meta:
        model = Channel
        fields = ("title", "quiet_from", "quiet_until")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["title"].widget.attrs |= {"class": "form-control", "autocomplete": "off"}
        for name in ("quiet_from", "quiet_until"):
            self.fields[name].widget.attrs["class"] = "form-select"


class PageRuleForm(forms.ModelForm[NotificationRule]):
    """The events that notify a person in the console."""

    events = forms.MultipleChoiceField(
        label=gettext_lazy("Event"), choices=CHOICES, required=False, widget=forms.CheckboxSelectMultiple
    )
    wait_minutes = forms.TypedChoiceField(
        label=gettext_lazy("Notify after (long queue time)"), coerce=int, choices=WAITS
    )
    quota_percent = forms.TypedChoiceField(
        label=gettext_lazy("Notify at (quota almost full)"), coerce=int, choices=SHARES
    )

    class Meta:
        model = NotificationRule
        fields = ("events", "wait_minutes", "quota_percent")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            if not isinstance(field.widget, (forms.CheckboxSelectMultiple, forms.CheckboxInput)):
                field.widget.attrs["class"] = "form-select"


class RuleForm(PageRuleForm):
    """A rule of a channel.  `about` is a scope, with a workspace or quota where it needs one."""

    about = forms.ChoiceField(label=gettext_lazy("Jobs"))
    pace = forms.ChoiceField(label=gettext_lazy("Frequency"), choices=NotificationRule.Pace.choices)
    hour = forms.TypedChoiceField(label=gettext_lazy("Daily at"), coerce=int, choices=HOURS, initial=8)
    log_lines = forms.BooleanField(
        label=gettext_lazy("Include the last log lines of failed jobs"), required=False
    )

    class Meta(PageRuleForm.Meta):
        fields = ("events", "wait_minutes", "quota_percent", "pace", "hour", "log_lines")  # type: ignore[assignment]

    def __init__(self, user: User, channel: Channel, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        set_choices(self.fields["about"], list_scopes(user, channel))
        self.fields["about"].initial = scope_value(self.instance)
        self.fields["log_lines"].widget.attrs["class"] = "form-check-input"
        self.order_fields(["events", "about", "pace", "hour", "wait_minutes", "quota_percent", "log_lines"])

    def clean_about(self) -> str:
        """Set the rule's scope."""
        scope, _colon, pk = str(self.cleaned_data["about"]).partition(":")
        self.instance.scope = scope
        self.instance.workspace_id = int(pk) if scope == NotificationRule.Scope.WORKSPACE else None
        self.instance.quota_id = int(pk) if scope == NotificationRule.Scope.QUOTA else None
        return scope


def list_scopes(user: User, channel: Channel) -> list[tuple[str, Any]]:
    """Return the scopes of a rule of the channel, as choices."""
    if channel.workspace is not None:
        workspaces, mine = [channel.workspace], []
    else:
        workspaces = list(workspaces_of(user).order_by("name")[:MOST_QUOTAS])
        mine = [(NotificationRule.Scope.MINE.value, gettext_lazy("My own jobs"))]
    quotas = Quota.objects.filter(workspace__in=workspaces).select_related("workspace", "cluster")
    every = [
        (f"workspace:{row.pk}", gettext_lazy("All jobs of workspace %(name)s") % {"name": row.name})
        for row in workspaces
    ]
    each = [
        (f"quota:{row.pk}", f"{row.workspace.title} · {row.cluster.title} · {row.title}")
        for row in quotas.order_by("workspace__name", "name")[:MOST_QUOTAS]
    ]
    grouped: list[tuple[Any, Any]] = [(gettext_lazy("All jobs in one quota"), each)] if each else []
    return [*mine, *every, *grouped]


def scope_value(rule: NotificationRule) -> str:
    """Return a rule's scope as a value of the form."""
    of = {
        NotificationRule.Scope.WORKSPACE.value: rule.workspace_id,
        NotificationRule.Scope.QUOTA.value: rule.quota_id,
    }
    pk = of.get(rule.scope)
    return f"{rule.scope}:{pk}" if pk else str(rule.scope)


MOST_DELIVERIES: Final = 50


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def channels(request: SignedIn) -> HttpResponseBase:
    """Show the person's channels; a POST changes the rule of the console's own notifications."""
    rule = routing.page_rule(request.user)
    form = PageRuleForm(request.POST if request.method == "POST" else None, instance=rule)
    if request.method == "POST" and form.is_valid():
        form.save()
        notes.success(request, _("Saved."))
        return redirect("channels")
    context = {
        "form": form,
        "channels": verbs.of_person(request.user),
        "managed_workspaces": verbs.find_managed_workspaces(request.user).order_by("name"),
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
            _("Only the admins of %(workspace)s can manage its notifications.")
            % {"workspace": workspace.title}
        )
    return workspace


def _kinds(workspace: Workspace | None) -> list[dict[str, str]]:
    """Return the kinds of channels that can be added, with their addresses."""
    offered = [kind for kind in KINDS if kind is not Channel.Kind.EMAIL or settings.CONSOLE_MAIL]
    return [{"label": str(kind.label), "url": _new_url(kind, workspace)} for kind in offered]


def _new_url(kind: str, workspace: Workspace | None) -> str:
    if workspace is None:
        return reverse("channel_new", args=[kind])
    return reverse("workspace_channel_new", args=[workspace.slug, kind])


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def new(request: SignedIn, kind: str, slug: str = "") -> HttpResponseBase:
    """Add a channel of one's own, or of the workspace that the address names."""
    workspace = _workspace(request, slug) if slug else None
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
                one_time_values.store(request, _secret_name(made.channel), made.secret)
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
    """Show a channel's rules and deliveries; a POST changes its name and quiet hours."""
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
        labels = dict(_flat(list_scopes(request.user, found)))
        context |= {
            "made": one_time_values.pop(request, _secret_name(found)),
            "list_url": _list_url(found.workspace),
            "quiet_form": quiet_form or QuietForm(instance=found),
            "rules": [_rule(row, labels) for row in found.rules.all()],
            "rule_form": rule_form
            or RuleForm(request.user, found, instance=NotificationRule(events=list(SENT))),
        }
    return page(
        request,
        "jobs/channels/channel.html",
        context,
        fragments={"deliveries": "jobs/channels/deliveries.html"},
        status=status,
    )


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


def _rule(row: NotificationRule, labels: dict[str, str]) -> dict[str, Any]:
    events = [str(Kind(value).label) for value in row.events if value in Kind.values]
    return {"row": row, "events": events, "about": labels.get(scope_value(row), row.get_scope_display())}


@require_POST
@signed_in
def test(request: SignedIn, pk: int) -> HttpResponseBase:
    """Send a test message; the page shows its delivery."""
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
    """Rotate the secret; the channel's page shows the new one once."""
    found = _find(request, pk)
    try:
        made = verbs.rotate(found)
    except verbs.Refused as refused:
        notes.warning(request, channel_message(refused.code))
        return _to(found)
    one_time_values.store(request, _secret_name(found), made)
    return _to(found)


def _secret_name(found: Channel) -> str:
    """Return the name of a channel's new secret, for `once`."""
    return f"secret of channel {found.pk}"


@require_POST
@signed_in
def remove(request: SignedIn, pk: int) -> HttpResponseBase:
    """Remove it with its rules and its record."""
    found = _find(request, pk)
    back = _list_url(found.workspace)
    found.delete()
    notes.success(request, _("Channel removed."))
    return redirect(back)


@require_POST
@signed_in
def rule_new(request: SignedIn, pk: int) -> HttpResponseBase:
    """Add a rule to the channel."""
    found = _find(request, pk)
    if found.rules.count() >= verbs.MOST_RULES:
        notes.warning(request, channel_message("too_many_rules"))
        return _to(found)
    form = RuleForm(request.user, found, request.POST, instance=NotificationRule(channel=found))
    if not form.is_valid():
        return _show(request, found, rule_form=form, status=422)
    form.save()
    notes.success(request, _("Rule added."))
    return _to(found)


@require_POST
@signed_in
def rule_remove(request: SignedIn, pk: int) -> HttpResponseBase:
    """Remove a rule."""
    rule = get_object_or_404(NotificationRule, pk=pk)
    found = _find(request, rule.channel_id)
    rule.delete()
    notes.success(request, _("Rule removed."))
    return _to(found)


@require_POST
@signed_in
def send_again(request: SignedIn, public_id: uuid.UUID) -> HttpResponseBase:
    """Send a delivery again."""
    delivery = verbs.again(request.user, public_id)
    if delivery is None:
        raise Http404
    return redirect("channel", delivery.channel_id)

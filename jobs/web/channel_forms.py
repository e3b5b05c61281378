"""What is entered about channels and rules."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from jobs.models import Channel, Rule
from jobs.models.kinds import CHOICES
from jobs.notifications.addresses import ASKED, OPTIONAL
from quotas.access import workspaces_of
from quotas.models import Quota, User, Workspace

Kind = Channel.Kind
MOST_QUOTAS: Final = 200

_LABELS: Final = {
    "to": _("E-mail address"),
    "url": _("Address of the webhook"),
    "secret": _("Signing secret"),
    "token": _("Token of the bot"),
    "chat": _("Chat"),
}

_HELP: Final = {
    (Kind.EMAIL, "to"): _("It is sent a message first; whoever reads that confirms the address."),
    (Kind.WEBHOOK, "url"): _("Each message is a signed POST of JSON; its secret is shown once it is added."),
    (Kind.SLACK, "url"): _("From the app's page “Incoming Webhooks”; begins with https://hooks.slack.com/."),
    (Kind.DINGTALK, "url"): _("From the group's custom robot; begins with https://oapi.dingtalk.com/."),
    (Kind.DINGTALK, "secret"): _("If the robot's security setting is “sign”: what begins with SEC."),
    (Kind.FEISHU, "url"): _(
        "From the group's custom bot; begins with https://open.feishu.cn/ or https://open.larksuite.com/."
    ),
    (Kind.FEISHU, "secret"): _("If the bot's security setting is “signature verification”."),
    (Kind.WECOM, "url"): _("From the group's robot; begins with https://qyapi.weixin.qq.com/."),
    (Kind.MATTERMOST, "url"): _("From Integrations, Incoming Webhooks; looks like https://…/hooks/…."),
    (Kind.DISCORD, "url"): _("From the channel's settings, Integrations; begins with https://discord.com/."),
    (Kind.TEAMS, "url"): _("From the channel's Workflows: “Post to a channel when a webhook is received”."),
    (Kind.TELEGRAM, "token"): _("What @BotFather told when the bot was made."),
    (Kind.TELEGRAM, "chat"): _("The chat's number, or @name of a public channel; the bot has to be in it."),
}

KINDS: Final = tuple(kind for kind in Kind if kind is not Kind.PAGE)
HOURS: Final = tuple((hour, f"{hour:02}:00") for hour in range(24))
QUIET: Final = (("", _("never")), *HOURS)
WAITS: Final = (
    (15, _("15 minutes")),
    (60, _("1 hour")),
    (240, _("4 hours")),
    (720, _("12 hours")),
    (1440, _("1 day")),
)
SHARES: Final = tuple((percent, f"{percent} %") for percent in (50, 70, 80, 90, 95, 100))


class ChannelForm(forms.Form):
    """A new channel of one kind; what is secret is never shown again."""

    title = forms.CharField(
        label=_("Name"),
        max_length=100,
        required=False,
        help_text=_("So that you know it in the list."),
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )
    language = forms.ChoiceField(
        label=_("Language of the messages"),
        required=False,
        widget=forms.Select(attrs={"class": "form-select"}),
    )

    def __init__(self, kind: str, workspace: Workspace | None, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.asked = ASKED[kind]
        for name in self.asked:
            self.fields[name] = forms.CharField(
                label=_LABELS[name],
                max_length=2000,
                required=name not in OPTIONAL,
                help_text=_HELP.get((Kind(kind), name), ""),
                widget=forms.TextInput(
                    attrs={"class": "form-control mono", "autocomplete": "off", "spellcheck": "false"}
                ),
            )
        own = _("As the console") if workspace else _("As in my settings")
        set_choices(self.fields["language"], [("", own), *settings.LANGUAGES])
        self.order_fields([*self.asked, "title", "language"])

    def address(self) -> dict[str, str]:
        """The fields that say where it leads."""
        return {name: self.cleaned_data[name] for name in self.asked}


class QuietForm(forms.ModelForm[Channel]):
    """A channel's name and its quiet hours."""

    quiet_from = forms.TypedChoiceField(
        label=_("Quiet from"),
        required=False,
        coerce=int,
        empty_value=None,
        choices=QUIET,
    )
    quiet_until = forms.TypedChoiceField(
        label=_("Quiet until"),
        required=False,
        coerce=int,
        empty_value=None,
        choices=QUIET,
    )

    class Meta:
        model = Channel
        fields = ("title", "quiet_from", "quiet_until")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["title"].widget.attrs |= {"class": "form-control", "autocomplete": "off"}
        for name in ("quiet_from", "quiet_until"):
            self.fields[name].widget.attrs["class"] = "form-select"


class PageRuleForm(forms.ModelForm[Rule]):
    """What a person is told in the console."""

    events = forms.MultipleChoiceField(
        label=_("What"), choices=CHOICES, required=False, widget=forms.CheckboxSelectMultiple
    )
    wait_minutes = forms.TypedChoiceField(label=_("A wait is long after"), coerce=int, choices=WAITS)
    quota_percent = forms.TypedChoiceField(label=_("A quota is nearly used from"), coerce=int, choices=SHARES)

    class Meta:
        model = Rule
        fields = ("events", "wait_minutes", "quota_percent")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            if not isinstance(field.widget, (forms.CheckboxSelectMultiple, forms.CheckboxInput)):
                field.widget.attrs["class"] = "form-select"


class RuleForm(PageRuleForm):
    """One rule of a channel.  `about` is a scope, with the workspace or quota where it needs one."""

    about = forms.ChoiceField(label=_("Of which jobs"))
    pace = forms.ChoiceField(label=_("How soon"), choices=Rule.Pace.choices)
    hour = forms.TypedChoiceField(label=_("Once a day at"), coerce=int, choices=HOURS, initial=8)
    log_lines = forms.BooleanField(label=_("With the last lines of a failed job's log"), required=False)

    class Meta(PageRuleForm.Meta):
        fields = ("events", "wait_minutes", "quota_percent", "pace", "hour", "log_lines")  # type: ignore[assignment]

    def __init__(self, user: User, channel: Channel, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        set_choices(self.fields["about"], abouts(user, channel))
        self.fields["about"].initial = about_of(self.instance)
        self.fields["log_lines"].widget.attrs["class"] = "form-check-input"
        self.order_fields(["events", "about", "pace", "hour", "wait_minutes", "quota_percent", "log_lines"])

    def clean_about(self) -> str:
        """Write the choice into the rule."""
        scope, _colon, pk = str(self.cleaned_data["about"]).partition(":")
        self.instance.scope = scope
        self.instance.workspace_id = int(pk) if scope == Rule.Scope.WORKSPACE else None
        self.instance.quota_id = int(pk) if scope == Rule.Scope.QUOTA else None
        return scope


def abouts(user: User, channel: Channel) -> list[tuple[str, Any]]:
    """What a rule of the channel may be about."""
    if channel.workspace is not None:
        workspaces, mine = [channel.workspace], []
    else:
        workspaces = list(workspaces_of(user).order_by("name")[:MOST_QUOTAS])
        mine = [(Rule.Scope.MINE.value, _("My own jobs"))]
    quotas = Quota.objects.filter(workspace__in=workspaces).select_related("workspace", "cluster")
    every = [
        (f"workspace:{row.pk}", _("All jobs of workspace %(name)s") % {"name": row.name})
        for row in workspaces
    ]
    each = [
        (f"quota:{row.pk}", f"{row.workspace.name} · {row.cluster.name} · {row.name}")
        for row in quotas.order_by("workspace__name", "name")[:MOST_QUOTAS]
    ]
    grouped: list[tuple[Any, Any]] = [(_("All jobs in one quota"), each)] if each else []
    return [*mine, *every, *grouped]


def about_of(rule: Rule) -> str:
    """A rule's scope as the form chooses it."""
    of = {Rule.Scope.WORKSPACE.value: rule.workspace_id, Rule.Scope.QUOTA.value: rule.quota_id}
    pk = of.get(rule.scope)
    return f"{rule.scope}:{pk}" if pk else str(rule.scope)


def set_choices(field: forms.Field, choices: list[Any]) -> None:
    """Give a field of choices what it may choose."""
    assert isinstance(field, forms.ChoiceField)
    field.choices = choices

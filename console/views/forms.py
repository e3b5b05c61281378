"""How a person likes the console, and their access tokens and keys."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final
from zoneinfo import available_timezones

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from jobs.assets import personal_secrets
from jobs.spec import ENV_NAME
from jobs.web.http import set_choices
from quotas.models import User

LIFETIMES: Final = ((7, _("7 days")), (30, _("30 days")), (90, _("90 days")), (365, _("1 year")))
NEVER: Final = (0, _("Never"))
"""The lifetime of an access key that works until it is revoked."""

SCOPES: Final = (
    ("read", _("Read jobs, logs and events")),
    ("submit", _("Submit jobs")),
    ("stop", _("Stop and delete jobs")),
    ("exec", _("Access jobs: endpoints and terminals")),
    ("admin", _("Full admin access")),
)


class SettingsForm(forms.ModelForm[User]):
    """Language, time zone and theme; empty ones follow the browser and the console."""

    language = forms.ChoiceField(label=_("Language"), required=False)
    time_zone = forms.ChoiceField(label=_("Time zone"), required=False)

    class Meta:
        model = User
        fields = ("language", "time_zone", "theme")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        zones = sorted(zone for zone in available_timezones() if "/" in zone and not zone.startswith("Etc/"))
        set_choices(self.fields["language"], [("", _("Browser default")), *settings.LANGUAGES])
        default = _("Console default (%(zone)s)") % {"zone": settings.TIME_ZONE}
        set_choices(
            self.fields["time_zone"], [("", default), ("UTC", "UTC"), *((zone, zone) for zone in zones)]
        )
        for field in self.fields.values():
            field.widget.attrs["class"] = "form-select"


class SshKeyForm(forms.Form):
    """One more SSH key; `jobs.access.sshkeys` judges it."""

    text = forms.CharField(
        label=_("Public key"),
        max_length=16_384,
        help_text=_("The line in your .pub file, such as ~/.ssh/id_ed25519.pub."),
        widget=forms.Textarea(
            attrs={
                "class": "form-control mono",
                "rows": 3,
                "autocomplete": "off",
                "spellcheck": "false",
                "placeholder": "ssh-ed25519 AAAA…",
            }
        ),
    )
    title = forms.CharField(
        label=_("Purpose"),
        max_length=100,
        required=False,
        help_text=_("For example, “work laptop”. Default: the comment in the key."),
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )


class SecretForm(forms.Form):
    """A secret to name in job files; saving one that is there replaces its value."""

    name = forms.RegexField(
        ENV_NAME,
        label=_("Name"),
        max_length=100,
        help_text=_("Letters, digits and _, such as HF_TOKEN or WANDB_API_KEY."),
        error_messages={"invalid": _("Letters, digits and _ only; can't start with a digit.")},
        widget=forms.TextInput(attrs={"class": "form-control mono", "autocomplete": "off"}),
    )
    value = forms.CharField(
        label=_("Value"),
        max_length=personal_secrets.LONGEST,
        strip=False,
        help_text=_("Encrypted, never shown again, and available only to jobs that reference it."),
        widget=forms.Textarea(
            attrs={
                "class": "form-control mono",
                "rows": 2,
                "autocomplete": "off",
                "autocapitalize": "none",
                "spellcheck": "false",
            }
        ),
    )


class TokenForm(forms.Form):
    """A new access token of the API."""

    name = forms.CharField(
        label=_("Purpose"),
        max_length=100,
        help_text=_("Helps you identify the token when you revoke it."),
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )
    scopes = forms.MultipleChoiceField(
        label=_("Scopes"),
        choices=SCOPES,
        initial=["read", "submit", "stop"],
        widget=forms.CheckboxSelectMultiple,
    )
    days = forms.TypedChoiceField(
        label=_("Expires after"),
        choices=LIFETIMES,
        coerce=int,
        initial=30,
        widget=forms.Select(attrs={"class": "form-select"}),
    )


class AccessKeyLifetime(forms.Form):
    """A form with the lifetime of a new access key."""

    days = forms.TypedChoiceField(
        label=_("Expires after"),
        choices=(*LIFETIMES, NEVER),
        coerce=int,
        initial=90,
        widget=forms.Select(attrs={"class": "form-select"}),
    )

    @property
    def lifetime(self) -> timedelta | None:
        """Return the lifetime; None for a key that does not expire."""
        days: int = self.cleaned_data["days"]
        return timedelta(days=days) if days else None


class AccessKeyForm(AccessKeyLifetime, TokenForm):
    """A new access key of a person."""

    field_order = ("name", "scopes", "days")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].help_text = _("Helps you identify the key when you revoke it.")

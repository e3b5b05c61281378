"""The forms of a workspace's members page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.utils.translation import gettext_lazy as _

from console.views.forms import LIFETIMES, SCOPES, AccessKeyLifetime
from quotas.models import Role, User


class _WithRole(forms.Form):
    """One of the roles that whoever asks may give."""

    role = forms.ChoiceField(label=_("Role"), widget=forms.Select(attrs={"class": "form-select"}))

    def __init__(self, *args: Any, roles: Sequence[Role], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["role"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(role.value, role.label) for role in roles]
        field.initial = Role.DEVELOPER.value


class InviteForm(_WithRole):
    """An invitation; without an e-mail address it gives a link to copy."""

    email = forms.EmailField(
        label=_("E-mail address"),
        required=False,
        widget=forms.EmailInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )


class ServiceForm(_WithRole):
    """A new service account."""

    username = forms.CharField(
        label=_("Name"),
        max_length=150,
        validators=[UnicodeUsernameValidator()],
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )
    contact = forms.CharField(
        label=_("Contact"),
        max_length=200,
        help_text=_("Person responsible: a name or e-mail address."),
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )
    about = forms.CharField(
        label=_("Purpose"),
        max_length=200,
        required=False,
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )

    def clean_username(self) -> str:
        name: str = self.cleaned_data["username"]
        if User.objects.filter(username__iexact=name).exists():
            raise forms.ValidationError(_("Name already taken."))
        return name


class ServiceTokenForm(forms.Form):
    """A token of a service account; it never administers anything."""

    scopes = forms.MultipleChoiceField(
        label=_("Scopes"),
        choices=SCOPES[:-1],  # all but the admin's
        initial=["read", "submit", "stop"],
        widget=forms.CheckboxSelectMultiple,
    )
    days = forms.TypedChoiceField(
        label=_("Expires after"),
        choices=LIFETIMES,
        coerce=int,
        initial=90,
        widget=forms.Select(attrs={"class": "form-select"}),
    )


class ServiceKeyForm(AccessKeyLifetime, ServiceTokenForm):
    """An access key of a service account."""

"""The forms of signing in: django-allauth's, in the console's dress and words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allauth.account.adapter import get_adapter
from allauth.account.forms import (
    AddEmailForm,
    ChangePasswordForm,
    LoginForm,
    ReauthenticateForm,
    ResetPasswordForm,
    ResetPasswordKeyForm,
    SignupForm,
)
from allauth.mfa.base.forms import AuthenticateForm
from allauth.mfa.base.forms import ReauthenticateForm as CodeAgainForm
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.webauthn.forms import AddWebAuthnForm, EditWebAuthnForm
from django import forms
from django.http import HttpRequest, QueryDict
from django.utils.translation import get_language, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from console.sign_in import outbox, reset_mails
from console.sign_in.backends import DirectoryAway
from quotas.accounts import access_keys, tokens

if TYPE_CHECKING:  # what gettext_lazy gives has a name in the stubs only
    from django.utils.functional import _StrPromise


_AWAY = _("The directory is not reachable. Try again later; this did not count as a wrong password.")


class Dressed:
    """Looks like the console's other forms, and calls its fields by their `words`."""

    words: dict[str, _StrPromise] = {}
    helps: dict[str, _StrPromise] = {}
    fields: dict[str, forms.Field]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            check = isinstance(field.widget, forms.CheckboxInput)
            field.widget.attrs["class"] = "form-check-input" if check else "form-control"
            field.widget.attrs.pop("placeholder", None)
            field.label = self.words.get(name, field.label)
            field.help_text = self.helps.get(name, "")


class SignInForm(LoginForm):
    """With the field called `username`, as scripts and password managers know it."""

    def __init__(self, data: QueryDict | None = None, *args: Any, **kwargs: Any) -> None:
        if data is not None and "username" in data:
            data = data.copy()
            data["login"] = data.get("username", "")
        super().__init__(data, *args, **kwargs)

    def clean(self) -> Any:
        """An unreachable directory says nothing of the password, and so it is no wrong one."""
        try:
            return super().clean()
        except DirectoryAway as away:
            raise forms.ValidationError(_AWAY) from away


class JoinForm(Dressed, SignupForm):
    """A new account for somebody who was invited."""

    words = {"username": _("User name"), "email": _("E-mail address"), "password1": _("Password")}
    helps = {"password1": _("At least 8 characters, and not a common word.")}


class ResetForm(Dressed, ResetPasswordForm):
    """Asking for a link to set a new password.

    Whose address it is, if anybody's, is looked up when the request has been answered: neither the answer
    nor the time that it takes tells.
    """

    words = {"email": _("E-mail address")}

    def clean_email(self) -> str:
        email: str = get_adapter().clean_email(self.cleaned_data["email"].lower())
        return email

    def save(self, request: HttpRequest, **kwargs: Any) -> str:
        email, language = str(self.cleaned_data["email"]), get_language() or "en"
        outbox.later(lambda: reset_mails.send(email, language))
        return email


class RevokingTokens(forms.Form):
    """A password form that can end sign-ins, tokens and access keys made under the old password."""

    revoke_tokens = forms.BooleanField(
        label=_("Also revoke my access tokens and access keys"),
        initial=True,
        required=False,
        widget=forms.CheckboxInput,
    )
    user: Any

    def save(self) -> None:
        super().save()  # type: ignore[misc]  # the form that this one is mixed into has it
        if self.cleaned_data["revoke_tokens"]:
            tokens.revoke_all(self.user)
            access_keys.revoke_all(self.user)


class NewPasswordForm(Dressed, RevokingTokens, ResetPasswordKeyForm):
    """A new password, by such a link."""

    words = {"password1": _("New password"), "password2": _("Confirm new password")}
    helps = {"password1": _("At least 8 characters, and not a common word.")}


class ChangeForm(Dressed, RevokingTokens, ChangePasswordForm):
    """A new password for somebody who knows the old one."""

    words = {
        "oldpassword": _("Current password"),
        "password1": _("New password"),
        "password2": _("Confirm new password"),
    }
    helps = {"password1": _("At least 8 characters, and not a common word.")}


class AddressForm(Dressed, AddEmailForm):
    """One more e-mail address; the present one is notified."""

    words = {"email": _("E-mail address")}

    def save(self, request: HttpRequest) -> Any:
        made = super().save(request)
        assert request.user.is_authenticated
        about = {"address": self.cleaned_data["email"]}
        get_adapter().send_notification_mail("console/email/address_added", request.user, about)
        return made


class AgainForm(Dressed, ReauthenticateForm):
    """The password, before something that matters."""

    words = {"password": _("Password")}

    def clean_password(self) -> str:
        try:
            password: str = super().clean_password()
        except DirectoryAway as away:
            raise forms.ValidationError(_AWAY) from away
        return password


class CodeForm(Dressed, AuthenticateForm):
    """The second factor while signing in."""

    words = {"code": pgettext_lazy("second factor", "Code")}


class CodeAgain(Dressed, CodeAgainForm):
    """The second factor, before something that matters."""

    words = {"code": pgettext_lazy("second factor", "Code")}


class AppForm(Dressed, ActivateTOTPForm):
    """The first code of an app, which shows that it has the secret."""

    words = {"code": _("Code from the app")}


class KeyForm(Dressed, AddWebAuthnForm):
    """A security key or passkey; the script fills in what it answered."""

    words = {"name": _("Name"), "passwordless": _("Use as a passkey (sign in without a password)")}
    helps = {"passwordless": _("Requires a fingerprint, face or PIN each time.")}


class KeyNameForm(Dressed, EditWebAuthnForm):
    """Another name for a key."""

    words = {"name": _("Name")}

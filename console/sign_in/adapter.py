"""How django-allauth behaves here: who may sign up, what a sign-in leaves behind, how secrets are stored."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.flows.login import get_authentication_records
from allauth.core import context
from allauth.mfa.adapter import DefaultMFAAdapter
from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from console.addresses import absolute
from console.sign_in import arrival, invitations, outbox, signins
from quotas import audit, encryption
from quotas.accounts import sessions
from quotas.accounts.sessions import Came
from quotas.models import Action, User

_UNSAID = frozenset({"account/messages/logged_in.txt", "account/messages/logged_out.txt"})
"""A successful sign-in shows no message."""


class AccountAdapter(DefaultAccountAdapter):
    """Accounts: only the invited sign up; every sign-in, and every one that failed, is written down."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return invitations.invitation_of(request) is not None

    def is_email_verified(self, request: HttpRequest, email: str) -> bool:
        return invitations.proves(request, email) or bool(super().is_email_verified(request, email))

    def is_safe_url(self, url: str) -> bool:
        """Return whether a redirect after sign-in stays on the host of the request."""
        request = context.request
        hosts = {request.get_host()}
        return url_has_allowed_host_and_scheme(url, hosts, require_https=request.is_secure())

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Wrong passwords are counted by axes: per person and address, so that nobody locks others out."""

    def pre_login(self, request: HttpRequest, user: AbstractBaseUser, **kwargs: Any) -> HttpResponse | None:
        assert isinstance(user, User)
        if user.kind == User.Kind.SERVICE:
            _refuse(user, "service account")
            return redirect("account_inactive")
        response: HttpResponse | None = super().pre_login(request, user, **kwargs)
        if response is not None:
            _refuse(user, "disabled")
        return response

    def post_login(self, request: HttpRequest, user: AbstractBaseUser, **kwargs: Any) -> HttpResponse:
        assert isinstance(user, User)
        social = (kwargs.get("signal_kwargs") or {}).get("sociallogin")
        if social is not None:
            arrival.by_provider(request, user, social)
        else:
            sessions.remember(request, user, _came(request, user))
        invitations.accept(request, user)
        response: HttpResponse = super().post_login(request, user, **kwargs)
        signins.remember_browser(request, response, user)
        return response

    def logout(self, request: HttpRequest) -> None:
        if isinstance(request.user, User):
            sessions.forget(sessions.reference(request))
            with transaction.atomic():
                audit.log(Action.SIGN_OUT, request.user, actor=request.user)
        super().logout(request)

    def add_message(
        self, request: HttpRequest, level: int, message_template: str | None = None, *args: Any, **kwargs: Any
    ) -> None:
        if message_template not in _UNSAID:
            super().add_message(request, level, message_template, *args, **kwargs)

    def get_reset_password_from_key_url(self, key: str) -> str:
        """The link in an e-mail: a Host header, which anybody may write, is no part of it."""
        uid, _dash, token = key.partition("-")
        return absolute(reverse("account_reset_password_from_key", kwargs={"uidb36": uid, "key": token}))

    def get_email_confirmation_url(self, request: HttpRequest, emailconfirmation: Any) -> str:
        """Likewise."""
        return absolute(reverse("account_confirm_email", args=[emailconfirmation.key]))

    def send_mail(self, template_prefix: str, email: str, values: dict[str, Any]) -> None:
        """Outside the request: nobody waits for the mail server, or learns that it is away."""
        name = urlsplit(settings.CONSOLE_URL).netloc
        site = {"name": name, "domain": name}
        about = {"request": context.request, "email": email, "current_site": site, **values}
        outbox.send(self.render_mail(template_prefix, email, about))

    def send_password_reset_mail(self, user: AbstractBaseUser, email: str, values: dict[str, Any]) -> None:
        """Send the reset mail, except to accounts of a directory or a provider."""
        assert isinstance(user, User)
        if user.has_usable_password() and user.kind == User.Kind.PERSON:
            super().send_password_reset_mail(user, email, values)

    def set_password(self, user: AbstractBaseUser, password: str) -> None:
        super().set_password(user, password)
        assert isinstance(user, User)
        with transaction.atomic():
            audit.log(Action.PASSWORD, user, actor=user)

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return "/settings/sign-in"


def _refuse(user: User, why: str) -> None:
    audit.log_refusal(
        user.get_username(), action=Action.SIGN_IN_FAILED, thing=user, actor=user, details={"why": why}
    )


def _came(request: HttpRequest, user: User) -> Came:
    """By which way the person came who came by no provider."""
    records = get_authentication_records(request, user)
    if any(each["method"] == "mfa" and each.get("passwordless") for each in records):
        return Came("passkey")
    return Came("password" if user.has_usable_password() or not user.directory_dn else "ldap")


class SecondFactorAdapter(DefaultMFAAdapter):
    """Stores second-factor secrets encrypted."""

    def encrypt(self, text: str) -> str:
        return encryption.encrypt(text)

    def decrypt(self, encrypted_text: str) -> str:
        return encryption.decrypt(encrypted_text)

"""Sign-in by an OIDC provider: the account it leads to, and what is stored of the claims."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.models import EmailAddress
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialApp, SocialLogin
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest
from django.shortcuts import render
from django.utils import timezone

from console.sign_in import providers
from console.sign_in.oidc.claims import Claims
from quotas import audit
from quotas.accounts import groups, sessions
from quotas.accounts.sessions import Came
from quotas.models import Action, Grant, User, unixnames

SECOND_FACTOR_KEY = "second_factor_at_provider"
"""In the session of somebody whose provider asks for a second factor itself."""


def by_provider(request: HttpRequest, user: User, social: SocialLogin) -> None:
    """Record a sign-in by a provider; its claims about the person hold from now on."""
    claims = Claims(**social.account.extra_data)
    name = social.account.provider
    sessions.remember(request, user, Came(name, name, claims.uid, claims.sid))
    provider = providers.find(name)
    if provider is not None and provider.second_factor:
        request.session[SECOND_FACTOR_KEY] = True
    if claims.groups is not None:
        groups.learn(user, name, claims.groups)
    if claims.unix_name is not None:
        unixnames.learn(user, name, claims.unix_name)
    if social.token is not None and social.token.token_secret:
        Grant.objects.update_or_create(
            user=user,
            provider=name,
            defaults={"refresh_token": social.token.token_secret, "checked_at": timezone.now()},
        )


class ProviderAdapter(DefaultSocialAccountAdapter):
    """OIDC providers: only those in the settings, and no account is taken over by its e-mail address."""

    def list_apps(
        self, request: HttpRequest, provider: str | None = None, client_id: str | None = None
    ) -> list[SocialApp]:
        """As the settings have them: no secret of a provider lies in the database."""
        return [
            SocialApp(
                provider="oidc",
                provider_id=each.name,
                name=each.label,
                client_id=each.client_id,
                secret=each.secret,
                settings={"scope": each.scopes},
            )
            for each in providers.list_providers()
            if provider in {None, "oidc", each.name} and client_id in {None, each.client_id}
        ]

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        provider = providers.find(sociallogin.account.provider)
        if provider is not None and provider.sign_up:
            return True
        return bool(super().is_open_for_signup(request, sociallogin))

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Refuse a new sign-in whose e-mail address an account has already; nothing is merged.

        Where the provider does not vouch for the address, a new account is made without it.
        """
        if sociallogin.is_existing or sociallogin.state.get("process") == "connect":
            return
        taken = [each for each in sociallogin.email_addresses if _is_taken(each.email)]
        if any(each.verified for each in taken):
            address, how = taken[0].email, sociallogin.account.provider
            audit.log_refusal(how, action=Action.SIGN_IN_FAILED, details={"why": "the address is taken"})
            page = render(request, "socialaccount/taken.html", {"address": address}, status=409)
            raise ImmediateHttpResponse(page)
        if taken:
            sociallogin.email_addresses = [each for each in sociallogin.email_addresses if each not in taken]
            user = sociallogin.user
            assert isinstance(user, User)
            user.email = ""

    def populate_user(
        self, request: HttpRequest, sociallogin: SocialLogin, data: dict[str, Any]
    ) -> AbstractBaseUser:
        """Their name there, with a number where somebody here has it already."""
        user: AbstractBaseUser = super().populate_user(request, sociallogin, data)
        assert isinstance(user, User)
        claims = Claims(**sociallogin.account.extra_data)
        wanted: list[str | None] = [claims.username, claims.email, user.first_name, "user"]
        user.username = get_adapter(request).generate_unique_username(wanted)
        return user

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: Any = None,
        exception: Any = None,
        extra_context: Any = None,
    ) -> None:
        why = str(exception or error or "unknown")[:200]
        audit.log_refusal(str(provider.app.provider_id), action=Action.SIGN_IN_FAILED, details={"why": why})

    def get_connect_redirect_url(self, request: HttpRequest, socialaccount: Any) -> str:
        return "/settings/sign-in"


def _is_taken(address: str) -> bool:
    return (
        User.objects.filter(email__iexact=address).exists()
        or EmailAddress.objects.filter(email__iexact=address).exists()
    )

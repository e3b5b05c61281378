"""django-allauth's OIDC provider, asked with a nonce and believed only by its signature."""

from __future__ import annotations

import secrets
from typing import Any

from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialApp, SocialLogin, SocialToken
from allauth.socialaccount.providers.base.provider import ProviderAccount, ProviderException
from allauth.socialaccount.providers.oauth2.provider import OAuth2Provider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from console.sign_in import providers
from console.sign_in.oidc import wire
from console.sign_in.oidc.claims import Claims
from quotas import encryption


class OidcAccount(ProviderAccount):
    """How an account of a provider is shown."""

    def to_str(self) -> str:
        data: dict[str, Any] = self.account.extra_data
        return str(data.get("username") or data.get("email") or data.get("subject") or "")


class OidcAdapter(OpenIDConnectOAuth2Adapter):
    """The exchange of a code for what the provider says; `state` is what was stored with the request."""

    state: dict[str, Any] | None = None

    @property
    def openid_config(self) -> Any:
        return self._ask(wire.discover)

    @property
    def basic_auth(self) -> bool:  # type: ignore[override]  # as in the class above it
        return wire.by_basic(self.openid_config)

    def _ask(self, question: Any, *args: Any, **kwargs: Any) -> Any:
        """Django-allauth shows its error page for what a ProviderException tells."""
        provider = providers.find(self.provider_id)
        if provider is None:
            raise ProviderException("it is not configured any more")
        try:
            return question(provider, *args, **kwargs)
        except (wire.ProviderAway, wire.NotOurs) as problem:
            raise ProviderException(str(problem)) from problem

    def parse_token(self, data: dict[str, Any]) -> SocialToken:
        """Store only the refresh token, encrypted."""
        token: SocialToken = super().parse_token(data)
        token.token = ""
        token.token_secret = encryption.encrypt(token.token_secret) if token.token_secret else ""
        return token

    def complete_login(
        self, request: HttpRequest, app: SocialApp, token: SocialToken, **kwargs: Any
    ) -> SocialLogin:
        answer = kwargs["response"]
        nonce = (self.state or {}).get("nonce", "")
        claims = self._ask(wire.verified_sign_in, str(answer.get("id_token", "")), nonce)
        more = self._ask(wire.userinfo, str(answer["access_token"]), claims["sub"])
        social: SocialLogin = self.get_provider().sociallogin_from_response(
            request, {**more, **_own(claims, more)}
        )
        return social

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        return request.build_absolute_uri(reverse("oidc_callback", args=[self.provider_id]))


def _own(claims: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Of the signed claims what userinfo does not say, and always who it is about."""
    signed = ("iss", "sub", "sid", "aud")
    return {key: value for key, value in claims.items() if key in signed or key not in more}


class OidcProvider(OAuth2Provider):
    """One class for all providers of the settings."""

    id = "oidc"
    name = "OIDC"
    account_class = OidcAccount
    oauth2_adapter_class = OidcAdapter
    pkce_enabled_default = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.name = self.app.name

    def get_login_url(self, request: HttpRequest, **kwargs: Any) -> str:
        return reverse("oidc_login", args=[self.app.provider_id])

    def get_callback_url(self) -> str:
        return reverse("oidc_callback", args=[self.app.provider_id])

    def get_oauth2_adapter(self, request: HttpRequest) -> OidcAdapter:
        return OidcAdapter(request, self.app.provider_id)

    def get_auth_params_from_request(self, request: HttpRequest, action: str) -> dict[str, Any]:
        """Return the parameters of the request, which a link can't change."""
        return dict(self.get_auth_params())

    def get_scope_from_request(self, request: HttpRequest) -> list[str]:
        return list(self.get_scope())

    def redirect(
        self, request: HttpRequest, process: str, next_url: Any = None, data: Any = None, **kwargs: Any
    ) -> HttpResponse:
        nonce = secrets.token_urlsafe(24)
        auth_params = {**(kwargs.pop("auth_params", None) or self.get_auth_params()), "nonce": nonce}
        response: HttpResponse = super().redirect(
            request, process, next_url, data, auth_params=auth_params, nonce=nonce, **kwargs
        )
        return response

    # --- Claims ------------------------------------------------------------------------------------------

    def _identity(self, data: dict[str, Any]) -> Claims:
        provider = providers.find(self.app.provider_id)
        assert provider is not None  # its app was just made from it
        return provider.read_claims(data)

    def extract_uid(self, data: dict[str, Any]) -> str:
        return self._identity(data).uid

    def extract_extra_data(self, data: dict[str, Any]) -> dict[str, Any]:
        return self._identity(data).to_json()

    def extract_common_fields(self, data: dict[str, Any]) -> dict[str, Any]:
        identity = self._identity(data)
        return {
            "email": identity.email,
            "username": identity.username,
            "name": identity.name,
            "email_verified": identity.email_verified,
        }

    def extract_email_addresses(self, data: dict[str, Any]) -> list[EmailAddress]:
        identity = self._identity(data)
        if not identity.email:
            return []
        return [EmailAddress(email=identity.email, verified=identity.email_verified, primary=True)]


provider_classes = [OidcProvider]

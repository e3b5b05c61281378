"""To a provider and back; and what a provider tells the console by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from allauth.account.decorators import reauthentication_required
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.helpers import render_authentication_error
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.base.provider import ProviderException
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.utils.crypto import constant_time_compare, salted_hmac
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from console.sign_in import providers
from console.sign_in.oidc import logout
from console.sign_in.oidc.provider import OidcAdapter


class _Callback(OAuth2CallbackView):
    """allauth's, which hands the stored state of the request to the adapter: it has the nonce."""

    adapter: OidcAdapter

    def _get_state(self, request: HttpRequest, provider: Any) -> Any:
        state, response = super()._get_state(request, provider)
        self.adapter.state = state
        return state, response


def connect_key(request: HttpRequest, provider: str) -> str:
    """Shows that this session's own page asked: otherwise a link could connect a stranger's account."""
    return salted_hmac("oidc-connect", f"{request.session.session_key} {provider}").hexdigest()


@never_cache
@require_safe
def login(request: HttpRequest, provider: str) -> HttpResponseBase:
    """Off to the provider, to sign in or, from the settings, to connect an account there with this one."""
    _provider_or_404(provider)
    if request.GET.get("process") == "connect":
        if not constant_time_compare(request.GET.get("key", ""), connect_key(request, provider)):
            raise Http404
        return _connect(request, provider)
    if request.GET.get("process", "login") != "login":
        raise Http404
    return _start(request, provider)


def _start(request: HttpRequest, provider: str) -> HttpResponseBase:
    adapter = OidcAdapter(request, provider)
    try:
        response: HttpResponseBase = OAuth2LoginView.adapter_view(adapter)(request)
    except ProviderException as problem:  # it does not even say where to go
        response = render_authentication_error(request, adapter.get_provider(), exception=problem)
    return response


_connect: Callable[[HttpRequest, str], HttpResponseBase] = reauthentication_required(_start)


@never_cache
@require_safe
def callback(request: HttpRequest, provider: str) -> HttpResponseBase:
    """Back from the provider."""
    _provider_or_404(provider)
    try:
        response: HttpResponseBase = _Callback.adapter_view(OidcAdapter(request, provider))(request)
    except ImmediateHttpResponse as at_once:
        return at_once.response
    except SocialApp.DoesNotExist:
        return HttpResponseRedirect("/sign-in")
    return response


@csrf_exempt
@never_cache
@require_POST
def back_channel(request: HttpRequest, provider: str) -> HttpResponse:
    """The provider says that a sign-in, or somebody's every sign-in, has ended (OIDC Back-Channel Logout)."""
    configured = _provider_or_404(provider)
    problem = logout.end(configured, request.POST.get("logout_token", ""))
    if problem:
        return HttpResponse(
            problem, status=400, content_type="text/plain", headers={"Cache-Control": "no-store"}
        )
    return HttpResponse(status=200, headers={"Cache-Control": "no-store"})


def _provider_or_404(name: str) -> providers.Provider:
    found = providers.find(name)
    if found is None:
        raise Http404
    return found

"""The door: signing in and out, and the settings of how one signs in."""

from __future__ import annotations

from typing import Any, Final

from allauth.account.adapter import get_adapter
from allauth.account.models import EmailAddress
from allauth.account.views import LoginView, PasswordResetView
from allauth.mfa.models import Authenticator
from allauth.socialaccount.internal.flows import connect
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib import messages as notes
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from console.sign_in import backends, invitations, providers
from console.sign_in.browsers import describe
from console.sign_in.confirmation import require_confirmation
from console.sign_in.oidc.views import connect_key
from jobs.web.http import SignedIn, page, signed_in
from quotas.accounts import second_factors, sessions
from quotas.models import SignIn

NEXT: Final = "next"


class SignInView(LoginView):
    """The sign-in page: whatever is configured, and nothing else."""

    template_name = "console/sign_in.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        where = context.get("redirect_field_value") or ""
        local = backends.passwords_are_for_everybody() or bool(settings.CONSOLE_LDAP)
        context.update(
            next=where,
            providers=[
                {"label": each.label, "url": _address(reverse("oidc_login", args=[each.name]), where)}
                for each in providers.list_providers()
            ],
            open_form=local or self.request.method == "POST" or "local" in self.request.GET,
            directory=bool(settings.CONSOLE_LDAP),
            local_url=_address(f"{reverse('login')}?local=1", where),
            can_reset=bool(settings.CONSOLE_MAIL) and backends.passwords_are_for_everybody(),
            invitation=invitations.invitation_of(self.request),
        )
        return context


sign_in = SignInView.as_view()


def _address(path: str, where: str) -> str:
    if not where:
        return path
    return f"{path}{'&' if '?' in path else '?'}{urlencode({NEXT: where})}"


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End this browser's sign-in."""
    get_adapter(request).logout(request)
    return redirect("login")


class ResetView(PasswordResetView):
    """Ask for a link by e-mail; without e-mail the page says whom to ask."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        return context | {"can_mail": bool(settings.CONSOLE_MAIL)}

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not settings.CONSOLE_MAIL:
            raise Http404
        response: HttpResponse = super().post(request, *args, **kwargs)
        return response


reset = ResetView.as_view()


@require_safe
@signed_in
def sign_in_settings(request: SignedIn) -> HttpResponseBase:
    """How the person signs in, and where they are signed in now."""
    user = request.user
    factors = list(Authenticator.objects.filter(user=user).order_by("pk"))
    codes = next((each for each in factors if each.type == Authenticator.Type.RECOVERY_CODES), None)
    linked = list(SocialAccount.objects.filter(user=user).order_by("pk"))
    known = {each.name: each for each in providers.list_providers()}
    return page(
        request,
        "console/sign_in_settings.html",
        {
            "has_password": user.has_usable_password(),
            "passwords": backends.passwords_are_for_everybody() or user.break_glass,
            "app": next((each for each in factors if each.type == Authenticator.Type.TOTP), None),
            "keys": [each for each in factors if each.type == Authenticator.Type.WEBAUTHN],
            "codes_left": len(codes.wrap().get_unused_codes()) if codes else None,
            "second_factor_due": second_factors.needs(user) and not second_factors.has(user),
            "addresses": EmailAddress.objects.filter(user=user).order_by("-primary", "email"),
            "can_mail": bool(settings.CONSOLE_MAIL),
            "linked": [{"row": row, "provider": known.get(row.provider)} for row in linked],
            "connectable": [
                {
                    "label": each.label,
                    "url": _address(
                        f"{reverse('oidc_login', args=[each.name])}?process=connect"
                        f"&key={connect_key(request, each.name)}",
                        reverse("sign_in_settings"),
                    ),
                }
                for name, each in known.items()
                if name not in {row.provider for row in linked}
            ],
            "sign_ins": [(each, describe(each.browser)) for each in sessions.of(user)],
            "here": sessions.reference(request),
        },
    )


@signed_in
def to_settings(request: SignedIn) -> HttpResponseBase:
    """Redirect django-allauth's own page to the settings."""
    return redirect("sign_in_settings")


@require_POST
@signed_in
@require_confirmation
def end_sign_in(request: SignedIn, pk: int) -> HttpResponseBase:
    """End one of the person's sign-ins."""
    if not sessions.end(SignIn.objects.filter(user=request.user, pk=pk), why="person"):
        raise Http404
    notes.success(request, _("Browser signed out. Pages still open there stop working within a minute."))
    return redirect("sign_in_settings")


@require_POST
@signed_in
@require_confirmation
def end_other_sign_ins(request: SignedIn) -> HttpResponseBase:
    """End all of them but this one."""
    ended = sessions.end_all(request.user, but=sessions.reference(request), why="person")
    notes.success(
        request,
        ngettext(
            "%(count)d other browser was signed out.", "%(count)d other browsers were signed out.", ended
        )
        % {"count": ended},
    )
    return redirect("sign_in_settings")


@require_POST
@signed_in
@never_cache
@require_confirmation
def disconnect(request: SignedIn, pk: int) -> HttpResponseBase:
    """Let an account at a provider no longer be a way in here."""
    account = SocialAccount.objects.filter(user=request.user, pk=pk).first()
    if account is None:
        raise Http404
    try:
        connect.validate_disconnect(request, account)
    except ValidationError:
        notes.error(
            request, _("This is your only sign-in method. Set a password or connect another account first.")
        )
    else:
        account.delete()
        notes.success(request, _("The account was disconnected."))
    return redirect("sign_in_settings")

"""How the console looks and speaks to a person, also before they sign in."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils import translation
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST
from django.views.i18n import set_language as django_set_language

from console.views import banners
from jobs.web.http import SignedIn, signed_in
from quotas.models import User


@require_POST
def set_language(request: HttpRequest) -> HttpResponseBase:
    """Change the language in this browser and, for somebody who is signed in, everywhere."""
    language = request.POST.get("language", "")
    if isinstance(request.user, User) and translation.check_for_language(language):
        User.objects.filter(pk=request.user.pk).update(language=language)
    return django_set_language(request)


@require_POST
@signed_in
def set_theme(request: SignedIn) -> HttpResponseBase:
    """Remember the theme; the page already shows it."""
    theme = request.POST.get("theme", "")
    if theme not in User.Theme.values:
        return HttpResponse(status=400)
    User.objects.filter(pk=request.user.pk).update(theme=theme)
    return HttpResponse(status=204)


@require_POST
@signed_in
def dismiss_banner(request: SignedIn, pk: int) -> HttpResponseBase:
    """Show that banner no more, and go back to where it stood."""
    banners.dismiss(request, pk)
    back = request.POST.get("next", "")
    return redirect(back if url_has_allowed_host_and_scheme(back, {request.get_host()}) else "home")

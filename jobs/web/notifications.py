"""Notifications of a person: the bell, the page behind it, and the links in messages."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from jobs.live import bus
from jobs.notifications import channels, composition, inbox
from jobs.web.http import SignedIn, live, number, page, signed_in


@require_safe
@signed_in
def list_notifications(request: SignedIn) -> HttpResponseBase:
    """Show the person's notifications, newest first."""
    around = live(request)
    before = number(request.GET.get("before")) or 0
    found = inbox.list_notifications(request.user, before)
    older = f"{reverse('notifications')}?before={found.older}" if found.older else ""
    context = {
        **around,
        "rows": found.rows,
        "live_name": bus.notifications_name(request.user.pk),
        "list_url": request.get_full_path(),
        "newest": found.rows[0].pk if found.rows else 0,
        "any_unread": any(row.unread for row in found.rows),
        "previous_url": reverse("notifications") if before else "",
        "next_url": older,
    }
    return page(
        request,
        "jobs/notifications.html",
        context,
        fragments={"notifications-list": "jobs/notifications/list.html"},
    )


@require_safe
@signed_in
def bell(request: SignedIn) -> HttpResponseBase:
    """Show the bell alone, which every page fetches again after a new notification."""
    context = {"unread_notifications": inbox.unread(request.user)}
    return page(request, "jobs/notifications/bell.html", context)


@require_POST
@signed_in
def mark_read(request: SignedIn) -> HttpResponseBase:
    """Mark everything as read up to the notification that the page showed first."""
    inbox.read(request.user, number(request.POST.get("up_to")) or 0)
    return redirect("notifications")


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def confirm(request: HttpRequest, ticket: str) -> HttpResponse:
    """Confirm an e-mail address by its ticket."""
    if request.method == "POST":
        channel = channels.confirm(ticket)
    else:
        channel = composition.channel_of(ticket, "on", days=composition.CONFIRM_DAYS)
    return _ticket_page(request, "confirm", channel is not None, channel.shown if channel else "")


@csrf_exempt  # mail programs POST here by themselves: RFC 8058; the ticket is the proof
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def unsubscribe(request: HttpRequest, ticket: str) -> HttpResponse:
    """Unsubscribe an e-mail address by its ticket."""
    if request.method == "POST":
        channel = channels.unsubscribe(ticket)
    else:
        channel = composition.channel_of(ticket, "off")
    return _ticket_page(request, "unsubscribe", channel is not None, channel.shown if channel else "")


def _ticket_page(request: HttpRequest, what: str, good: bool, shown: str) -> HttpResponse:
    context = {"what": what, "good": good, "done": request.method == "POST", "shown": shown}
    return render(request, "notifications/ticket.html", context, status=200 if good else 404)

"""Opening an endpoint: from its host to the console, which identifies the person, and back with a ticket.

endpoint: mark the browser  →  console: signed in? may enter? a ticket  →  endpoint: a cookie for it
"""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qs, quote

import structlog

from jobs.access.gateway import addresses, cookies, pages, visits
from jobs.access.gateway.asgi import Reply
from jobs.access.gateway.pages import PageText
from jobs.access.gateway.requests import EndpointRequest
from jobs.access.gateway.visits import EndpointAccess
from jobs.live.thread_pool import run_in_thread

log = structlog.get_logger(__name__)

TOKEN_COOKIES: Final = frozenset({"ray-authentication-token"})
"""Names under which what listens takes its token from a cookie and not from the query: Ray's dashboard."""


async def answer_own_page(request: EndpointRequest) -> Reply:
    """Answer a request below the gateway's own path on an endpoint's host."""
    if request.websocket or request.method not in {"GET", "HEAD"}:
        return pages.render(pages.malformed_request(405), request)
    query = request.query
    match request.path.removeprefix(addresses.OWN):
        case "page.css":
            return pages.stylesheet()
        case "start":
            return redirect_to_console(request, query.get("next"), query.get("console"))
        case "enter" if request.method == "GET":
            return await _enter(request, query.get("ticket", ""), addresses.safe_path(query.get("next")))
    return render_page(pages.NOWHERE, request)


def redirect_to_console(request: EndpointRequest, then: str | None, console: str | None = None) -> Reply:
    """Redirect to the console, to return to `then`; the ticket is tied to this browser's mark."""
    mark = next(iter(request.cookies.browsers), "") or cookies.new_secret()
    there = addresses.opening_path(request.slug, browser=cookies.digest(mark), next=addresses.safe_path(then))
    home = addresses.console_origin(request.scheme, request.host, console)
    return pages.redirect(home + there, cookies.set_browser(mark))


async def _enter(request: EndpointRequest, ticket: str, then: str) -> Reply:
    entered = await run_in_thread(
        visits.enter, request.slug, ticket, request.cookies.browsers, request.client
    )
    if entered is None:
        log.info("endpoint_refused", endpoint=request.slug, client=request.client)
        await run_in_thread(visits.record_refusal, request.slug, request.client)
        return render_page(pages.STALE, request)
    visit = cookies.set_visit(entered.secret)
    if entered.token and entered.token_name in TOKEN_COOKIES:
        return pages.redirect(then, visit, cookies.set_token(entered.token_name, entered.token))
    return pages.redirect(_with_token(then, entered.token, entered.token_name), visit)


def _with_token(path: str, token: str, name: str) -> str:
    """`path` with the token that what listens may ask for, unless it brings one of its own."""
    query = path.partition("?")[2]
    if not token or name in parse_qs(query, keep_blank_values=True):
        return path
    return f"{path}{'&' if '?' in path else '?'}{name}={quote(token)}"


def render_page(page: PageText, request: EndpointRequest, access: EndpointAccess | None = None) -> Reply:
    """Render a page of the gateway with a link back to the console."""
    home = addresses.console_origin(request.scheme, request.host)
    return pages.render(page, request, access.language if access else "", home)

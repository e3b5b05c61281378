"""The way in: from an endpoint's host to the console, which asks who this is, and back with a ticket.

endpoint: mark the browser  →  console: signed in? may enter? a ticket  →  endpoint: a cookie for it
"""

from __future__ import annotations

from urllib.parse import parse_qs, quote

import structlog

from jobs.access.gateway import addresses, cookies, pages, visits
from jobs.access.gateway.asgi import Reply
from jobs.access.gateway.asked import Asked
from jobs.access.gateway.pages import Said
from jobs.access.gateway.visits import Standing
from jobs.live.threads import aside

log = structlog.get_logger(__name__)


async def own_page(request: Asked) -> Reply:
    """What stands under the gateway's own path on every endpoint's host."""
    if request.websocket or request.method not in {"GET", "HEAD"}:
        return pages.page(pages.malformed(405), request)
    query = request.query
    match request.path.removeprefix(addresses.OWN):
        case "page.css":
            return pages.stylesheet()
        case "start":
            return to_console(request, query.get("next"), query.get("console"))
        case "enter" if request.method == "GET":
            return await _enter(request, query.get("ticket", ""), addresses.safe_path(query.get("next")))
    return say(pages.NOWHERE, request)


def to_console(request: Asked, then: str | None, console: str | None = None) -> Reply:
    """To the console, to come back and arrive at `then`; the ticket will bear this browser's mark."""
    mark = next(iter(request.cookies.browsers), "") or cookies.new_secret()
    there = addresses.opening(request.slug, browser=cookies.digest(mark), next=addresses.safe_path(then))
    home = addresses.console_origin(request.scheme, request.host, console)
    return pages.redirect(home + there, cookies.set_browser(mark))


async def _enter(request: Asked, ticket: str, then: str) -> Reply:
    entered = await aside(visits.enter, request.slug, ticket, request.cookies.browsers, request.client)
    if entered is None:
        log.info("endpoint_refused", endpoint=request.slug, client=request.client)
        await aside(visits.refused, request.slug, request.client)
        return say(pages.STALE, request)
    return pages.redirect(
        _with_token(then, entered.token, entered.token_name), cookies.set_visit(entered.secret)
    )


def _with_token(path: str, token: str, name: str) -> str:
    """`path` with the token that what listens may ask for, unless it brings one of its own."""
    query = path.partition("?")[2]
    if not token or name in parse_qs(query, keep_blank_values=True):
        return path
    return f"{path}{'&' if '?' in path else '?'}{name}={quote(token)}"


def say(said: Said, request: Asked, standing: Standing | None = None) -> Reply:
    """`said` to whoever asked, with the way back to the console."""
    home = addresses.console_origin(request.scheme, request.host)
    return pages.page(said, request, standing.language if standing else "", home)

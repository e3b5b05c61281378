"""Pages of the gateway itself: HTML for people, one line of text for scripts.

Pages need nothing from the console's host but a link back; their style sheet is served from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from django.template.loader import render_to_string
from django.utils import translation
from django.utils.translation import gettext_noop
from django.utils.translation.trans_real import parse_accept_lang_header

from jobs.access.gateway import addresses
from jobs.access.gateway.asgi import Reply
from jobs.access.gateway.requests import EndpointRequest

CSP: Final = (
    b"default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
REFRESH_SECONDS: Final = 2


@dataclass(frozen=True, slots=True)
class PageText:
    """A page's status, heading and sentence.

    With `again` it loads itself again; with `reopen` it offers to open the endpoint anew.
    """

    status: int
    heading: str
    sentence: str
    again: bool = False
    reopen: bool = False


AGAIN: Final = gettext_noop("This page retries automatically.")
"""Follows the sentence of a page that loads itself again."""

STARTING: Final = PageText(
    503, gettext_noop("Starting …"), gettext_noop("The job has not opened this port yet."), again=True
)
SILENT: Final = PageText(
    502,
    gettext_noop("No response"),
    gettext_noop(
        "The job is running, but this port doesn't respond, or the response can't be shown in a browser."
    ),
    again=True,
)
NOT_LISTENING: Final = PageText(
    503,
    gettext_noop("Service not listening"),
    gettext_noop("No process of the job is listening on this port."),
    again=True,
)
UNCHECKED: Final = PageText(
    503,
    gettext_noop("Can't connect now"),
    gettext_noop("Can't verify that the job itself is listening on this port."),
    again=True,
)
ENDED: Final = PageText(
    410,
    gettext_noop("Job ended"),
    gettext_noop("The job or this replica is no longer running. Logs are still available on the job page."),
)
FORBIDDEN: Final = PageText(
    403,
    gettext_noop("Permission denied"),
    gettext_noop("Only the job owner and workspace admins can open this."),
)
NOWHERE: Final = PageText(
    404,
    gettext_noop("Page not found"),
    gettext_noop("The job was deleted, or the address is misspelled."),
)
STALE: Final = PageText(
    403,
    gettext_noop("Link expired"),
    gettext_noop(
        "The link works once, within 30 seconds, and only in the browser that requested it. If "
        "this page keeps appearing, allow cookies for this address."
    ),
    reopen=True,
)
STRANGER: Final = PageText(
    401,
    gettext_noop("Please sign in"),
    gettext_noop("Open this address in a browser that is signed in to the console."),
    reopen=True,
)
FOREIGN: Final = PageText(
    403,
    gettext_noop("Cross-site request blocked"),
    gettext_noop("Only pages at this address can send this request."),
)
FULL: Final = PageText(
    503,
    gettext_noop("Too many connections"),
    gettext_noop("Close some pages of running jobs, and try again."),
)
AWAY: Final = PageText(
    503,
    gettext_noop("Console database unavailable"),
    gettext_noop("Open connections are not affected."),
    again=True,
)
MALFORMED: Final = gettext_noop("The gateway rejected this request")
TOO_LARGE: Final = PageText(
    413, gettext_noop("Request too large"), gettext_noop("Send it in smaller parts, or use a dataset.")
)


def malformed_request(status: int) -> PageText:
    """A request that is refused as it stands."""
    return PageText(status, MALFORMED, MALFORMED)


@cache
def stylesheet() -> Reply:
    """The style of these pages."""
    body = Path(__file__).with_name("page.css").read_bytes()
    headers = ((b"content-type", b"text/css; charset=utf-8"), (b"cache-control", b"max-age=3600"))
    return Reply(200, body, headers)


def redirect(to: str, *cookies: tuple[bytes, bytes]) -> Reply:
    """Send the browser to `to` with GET, leaving no trace in caches or referrers."""
    return Reply(303, b"", ((b"location", to.encode()), *_QUIET, *cookies))


_QUIET: Final = ((b"cache-control", b"no-store"), (b"referrer-policy", b"no-referrer"))


def render(
    text: PageText, request: EndpointRequest | None = None, language: str = "", home: str = ""
) -> Reply:
    """`said` in the person's language; `home` is the console's origin, for the links."""
    headers = [*_QUIET, (b"x-content-type-options", b"nosniff"), (b"content-security-policy", CSP)]
    if text.status == 503:
        headers.append((b"retry-after", b"%d" % REFRESH_SECONDS))
    with translation.override(language or _language(request)):
        if request is None or not request.wants_page:
            return Reply(text.status, _text(text).encode(), ((b"content-type", _PLAIN), *headers))
        body = render_to_string("gateway/page.html", _context(text, request, home))
    return Reply(text.status, body.encode(), ((b"content-type", b"text/html; charset=utf-8"), *headers))


_PLAIN: Final = b"text/plain; charset=utf-8"


def _text(text: PageText) -> str:
    _: Callable[[str], str] = translation.gettext
    return "".join(f"{_(line)}\n" for line in (text.heading, *_sentences(text)))


def _sentences(text: PageText) -> tuple[str, ...]:
    return (text.sentence, AGAIN) if text.again else (text.sentence,)


def _context(text: PageText, request: EndpointRequest, home: str) -> Mapping[str, object]:
    reopen = home + addresses.opening_path(request.slug) if text.reopen and home else ""
    return {
        "heading": translation.gettext(text.heading),
        "sentences": [translation.gettext(sentence) for sentence in _sentences(text)],
        "language": translation.get_language(),
        "stylesheet": addresses.own_path("page.css"),
        "refresh_seconds": REFRESH_SECONDS if text.again else 0,
        "home": home,
        "reopen": reopen,
    }


def _language(request: EndpointRequest | None) -> str:
    """The best of the browser's languages; English when it speaks none of ours."""
    wanted = (request.header(b"accept-language") if request else None) or ""
    for code, _weight in parse_accept_lang_header(wanted[:500]):
        try:
            return translation.get_supported_language_variant(code)
        except LookupError:
            continue
    return "en"

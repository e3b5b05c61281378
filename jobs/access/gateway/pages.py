"""What the gateway itself has to say: a page for people, one line of text for scripts.

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
from jobs.access.gateway.asked import Asked

CSP: Final = (
    b"default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
REFRESH_SECONDS: Final = 2


@dataclass(frozen=True, slots=True)
class Said:
    """A page's status, heading and sentence.

    With `again` it loads itself again; with `reopen` it offers to open the endpoint anew.
    """

    status: int
    heading: str
    sentence: str
    again: bool = False
    reopen: bool = False


AGAIN: Final = gettext_noop("This page tries again automatically.")
"""Follows the sentence of a page that loads itself again."""

STARTING: Final = Said(
    503, gettext_noop("Starting …"), gettext_noop("The job has not opened this port yet."), again=True
)
SILENT: Final = Said(
    502,
    gettext_noop("No answer"),
    gettext_noop(
        "The job is running, but nothing answers on this port, or not in a way that a browser understands."
    ),
    again=True,
)
NOT_LISTENING: Final = Said(
    503,
    gettext_noop("The service isn't listening now"),
    gettext_noop("Nothing of this job listens on the port at the moment."),
    again=True,
)
UNCHECKED: Final = Said(
    503,
    gettext_noop("Can't connect now"),
    gettext_noop("The console can't check that the job itself listens on the port."),
    again=True,
)
ENDED: Final = Said(
    410,
    gettext_noop("It has ended"),
    gettext_noop("The job, or this replica of it, is not running any more. Its logs are still on its page."),
)
FORBIDDEN: Final = Said(
    403,
    gettext_noop("Not for you to open"),
    gettext_noop("Only the job's owner and the admins of its workspace may open what it serves."),
)
NOWHERE: Final = Said(
    404,
    gettext_noop("There is nothing at this address"),
    gettext_noop("The job was deleted, or the address has a typing error."),
)
STALE: Final = Said(
    403,
    gettext_noop("This way in is closed"),
    gettext_noop(
        "A way in is good once, for half a minute, and only in the browser that asked for it. "
        "If this comes again, let your browser keep cookies for this address."
    ),
    reopen=True,
)
STRANGER: Final = Said(
    401,
    gettext_noop("Please sign in"),
    gettext_noop("Open this address in a browser that is signed in to the console."),
    reopen=True,
)
FOREIGN: Final = Said(
    403,
    gettext_noop("Asked by another page"),
    gettext_noop("Only pages of this very address may ask for this."),
)
FULL: Final = Said(
    503,
    gettext_noop("Too many connections"),
    gettext_noop("Close some pages of running jobs, and try again."),
)
AWAY: Final = Said(
    503,
    gettext_noop("The console's database does not answer"),
    gettext_noop("What is open stays open."),
    again=True,
)
MALFORMED: Final = gettext_noop("The gateway does not take this request")
TOO_LARGE: Final = Said(
    413, gettext_noop("Too large"), gettext_noop("Send it in smaller parts, or by way of a dataset.")
)


def malformed(status: int) -> Said:
    """A request that is refused as it stands."""
    return Said(status, MALFORMED, MALFORMED)


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


def page(said: Said, asked: Asked | None = None, language: str = "", home: str = "") -> Reply:
    """`said` in the person's language; `home` is the console's origin, for the links."""
    headers = [*_QUIET, (b"x-content-type-options", b"nosniff"), (b"content-security-policy", CSP)]
    if said.status == 503:
        headers.append((b"retry-after", b"%d" % REFRESH_SECONDS))
    with translation.override(language or _language(asked)):
        if asked is None or not asked.wants_page:
            return Reply(said.status, _text(said).encode(), ((b"content-type", _PLAIN), *headers))
        body = render_to_string("gateway/page.html", _context(said, asked, home))
    return Reply(said.status, body.encode(), ((b"content-type", b"text/html; charset=utf-8"), *headers))


_PLAIN: Final = b"text/plain; charset=utf-8"


def _text(said: Said) -> str:
    _: Callable[[str], str] = translation.gettext
    return "".join(f"{_(line)}\n" for line in (said.heading, *_sentences(said)))


def _sentences(said: Said) -> tuple[str, ...]:
    return (said.sentence, AGAIN) if said.again else (said.sentence,)


def _context(said: Said, asked: Asked, home: str) -> Mapping[str, object]:
    reopen = home + addresses.opening(asked.slug) if said.reopen and home else ""
    return {
        "heading": translation.gettext(said.heading),
        "sentences": [translation.gettext(sentence) for sentence in _sentences(said)],
        "language": translation.get_language(),
        "stylesheet": addresses.own("page.css"),
        "refresh_seconds": REFRESH_SECONDS if said.again else 0,
        "home": home,
        "reopen": reopen,
    }


def _language(asked: Asked | None) -> str:
    """The best of the browser's languages; English when it speaks none of ours."""
    wanted = (asked.header(b"accept-language") if asked else None) or ""
    for code, _weight in parse_accept_lang_header(wanted[:500]):
        try:
            return translation.get_supported_language_variant(code)
        except LookupError:
            continue
    return "en"

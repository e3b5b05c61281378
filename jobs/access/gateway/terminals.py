"""The way from a page to its terminal: who asks, from which page, and may they; then byte by byte.

The console's own pages use no other WebSocket.  Browsers send cookies with any page's, so that the Origin has
to be the console's own, to the letter; the terminal's key is in none but the pages of those who may enter.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any, Final
from urllib.parse import parse_qs, urlencode

import aiohttp
import structlog
from django.conf import settings
from django.db import DatabaseError
from django.http import parse_cookie
from django.http.request import split_domain_port, validate_host

from jobs.access import entries
from jobs.access.gateway import addresses
from jobs.access.gateway.asgi import Receive, Reply, Scope, Send, answer
from jobs.access.gateway.places import Full, Places
from jobs.access.gateway.right import LONGEST_TRUST_SECONDS
from jobs.access.gateway.watch import until_first
from jobs.access.gateway.websocket import GOING_AWAY, POLICY, Bridge, JobSocket
from jobs.live.threads import aside
from jobs.models import Entry
from quotas.accounts.session_store import reference_of
from quotas.accounts.sessions import person_of

log = structlog.get_logger(__name__)

PATH: Final = re.compile(r"/terminals/([0-9a-f]{32})/socket")
MOST_MESSAGE: Final = 1 << 20


class May(StrEnum):
    """What somebody may do with a terminal."""

    TYPE = "1"
    LOOK = "0"
    NOTHING = ""


def may(key: str, session_key: str) -> tuple[May, int]:
    """What whoever is signed in by that session may do with the terminal, and who that is (0: nobody)."""
    person = person_of(session_key)
    if person is None:
        return May.NOTHING, 0
    rows = entries.open_entries().filter(key=key, kind=Entry.Kind.TERMINAL)
    entry = rows.select_related("task__attempt__job").first()
    if entry is None or not entries.may_enter(person, entry.task):
        return May.NOTHING, person.pk
    return (May.TYPE if entry.user_id == person.pk else May.LOOK), person.pk


class Terminals:
    """The sockets of this process."""

    def __init__(self) -> None:
        self._client: aiohttp.ClientSession | None = None
        self._places = Places()

    @staticmethod
    def serves(scope: Scope) -> bool:
        """Whether it is a terminal's socket."""
        return scope["type"] == "websocket" and PATH.fullmatch(scope["path"]) is not None

    async def close(self) -> None:
        """Give up the connections; the shells stay."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        found = PATH.fullmatch(scope["path"])
        session = _session(scope)
        if found is None or not session or not _from_own_page(scope):
            log.info("terminal_refused", client=(scope.get("client") or ("",))[0])
            await answer(scope, send, Reply(403))
            return
        try:
            granted, person = await aside(may, found[1], session)
            if granted is May.NOTHING:
                await answer(scope, send, Reply(403))
                return
            with self._places.one(), self._places.of(person):
                await self._carry(found[1], session, granted, scope, receive, send)
        except (Full, DatabaseError, aiohttp.ClientError, OSError) as problem:
            log.warning("terminal_unreachable", problem=repr(problem))
            await answer(scope, send, Reply(503))

    async def _carry(
        self, key: str, session: str, granted: May, scope: Scope, receive: Receive, send: Send
    ) -> None:
        asked = {
            name: values[0] for name, values in parse_qs(scope["query_string"].decode("latin-1")).items()
        }
        query = {name: asked[name] for name in ("columns", "rows", "from") if name in asked}
        address = f"http://shells/{key}?{urlencode({**query, 'typing': granted})}"
        shell = await self._connections.ws_connect(address, max_msg_size=MOST_MESSAGE)
        assert isinstance(shell, JobSocket)
        await send({"type": "websocket.accept"})
        bridge = Bridge(shell, receive, send)
        right = _Right(key, session, granted)
        try:
            done = await until_first([bridge.from_browser(), bridge.from_job()], right.holds, _every())
            if done is None or done.exception() is not None:
                await bridge.close_browser(POLICY if done is None else GOING_AWAY)
        finally:
            await shell.close(code=GOING_AWAY)

    @property
    def _connections(self) -> aiohttp.ClientSession:
        if self._client is None:
            self._client = aiohttp.ClientSession(
                connector=aiohttp.UnixConnector(str(settings.CONSOLE_HOME / entries.SOCKET), limit=0),
                ws_response_class=JobSocket,
            )
        return self._client


class _Right:
    """That whoever looks or types still may; without a database for a minute at the most."""

    def __init__(self, key: str, session: str, granted: May) -> None:
        self._key, self._session, self._granted = key, session, granted
        self._doubts = 0.0

    async def holds(self) -> bool:
        """Look again."""
        try:
            now, _person = await aside(may, self._key, self._session)
        except DatabaseError:
            self._doubts += _every()
            return self._doubts < LONGEST_TRUST_SECONDS
        self._doubts = 0.0
        return now is self._granted


def _every() -> float:
    return min(float(settings.CONSOLE_GATEWAY_RECHECK_SECONDS), LONGEST_TRUST_SECONDS / 2)


def _header(scope: Scope, wanted: bytes) -> str:
    """The header, if there is exactly one of it."""
    found: list[Any] = [value for name, value in scope["headers"] if name == wanted]
    return found[0].decode("latin-1") if len(found) == 1 else ""


def _session(scope: Scope) -> str:
    return reference_of(parse_cookie(_header(scope, b"cookie")).get(settings.SESSION_COOKIE_NAME, ""))


def _from_own_page(scope: Scope) -> bool:
    host = _header(scope, b"host").lower()
    own = f"{addresses.scheme_of(scope['scheme'])}://{host}"
    known = validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS)
    return bool(host) and known and _header(scope, b"origin").lower() == own

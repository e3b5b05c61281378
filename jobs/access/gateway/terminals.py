"""WebSockets of the console's pages to their terminals.

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

from jobs.access import sessions
from jobs.access.gateway import addresses
from jobs.access.gateway.asgi import Receive, Reply, Scope, Send, answer
from jobs.access.gateway.client_sessions import LazySession
from jobs.access.gateway.rechecks import RecheckedRight
from jobs.access.gateway.websocket import GOING_AWAY, POLICY, Bridge, JobSocket
from jobs.live.limits import EVERYBODY, ConnectionLimit, LimitReached
from jobs.live.thread_pool import run_in_thread
from jobs.models import AccessSession
from quotas.accounts.session_store import reference_of
from quotas.accounts.sessions import person_of

log = structlog.get_logger(__name__)

PATH: Final = re.compile(r"/terminals/([0-9a-f]{32})/socket")
MOST_MESSAGE: Final = 1 << 20


class TerminalRight(StrEnum):
    """Rights to a terminal."""

    TYPE = "1"
    LOOK = "0"
    NOTHING = ""


def find_right(key: str, session_key: str) -> tuple[TerminalRight, int]:
    """Return the right of the session's person to the terminal, and their primary key (0: nobody)."""
    person = person_of(session_key)
    if person is None:
        return TerminalRight.NOTHING, 0
    rows = sessions.open_entries().filter(key=key, kind=AccessSession.Kind.TERMINAL)
    entry = rows.select_related("replica__attempt__job").first()
    if entry is None or not sessions.may_enter(person, entry.replica):
        return TerminalRight.NOTHING, person.pk
    return (TerminalRight.TYPE if entry.user_id == person.pk else TerminalRight.LOOK), person.pk


class Terminals:
    """The sockets of this process."""

    def __init__(self) -> None:
        self._session = LazySession(
            lambda: aiohttp.ClientSession(
                connector=aiohttp.UnixConnector(str(settings.CONSOLE_HOME / sessions.SOCKET), limit=0),
                ws_response_class=JobSocket,
            )
        )
        self._open = ConnectionLimit()
        self.close = self._session.close

    @staticmethod
    def serves(scope: Scope) -> bool:
        """Tell whether it is a terminal's socket."""
        return scope["type"] == "websocket" and PATH.fullmatch(scope["path"]) is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        found = PATH.fullmatch(scope["path"])
        session = _session(scope)
        if found is None or not session or not _from_own_page(scope):
            log.info("terminal_refused", client=(scope.get("client") or ("",))[0])
            await answer(scope, send, Reply(403))
            return
        try:
            right = RecheckedRight(
                await run_in_thread(find_right, found[1], session),
                lambda: run_in_thread(find_right, found[1], session),
            )
            granted, person = right.now
            if granted is TerminalRight.NOTHING:
                await answer(scope, send, Reply(403))
                return
            with (
                self._open.hold(EVERYBODY, settings.CONSOLE_GATEWAY_CONNECTIONS),
                self._open.hold(person, settings.CONSOLE_GATEWAY_CONNECTIONS_PER_PERSON),
            ):
                await self._carry(found[1], right, scope, receive, send)
        except (LimitReached, DatabaseError, aiohttp.ClientError, OSError) as problem:
            log.warning("terminal_unreachable", problem=repr(problem))
            await answer(scope, send, Reply(503))

    async def _carry(
        self,
        key: str,
        right: RecheckedRight[tuple[TerminalRight, int]],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        parameters = {
            name: values[0] for name, values in parse_qs(scope["query_string"].decode("latin-1")).items()
        }
        query = {name: parameters[name] for name in ("columns", "rows", "from") if name in parameters}
        address = f"http://shells/{key}?{urlencode({**query, 'typing': right.now[0]})}"
        shell = await self._session.get().ws_connect(address, max_msg_size=MOST_MESSAGE)
        assert isinstance(shell, JobSocket)
        await send({"type": "websocket.accept"})
        bridge = Bridge(shell, receive, send)
        try:
            done = await right.until_first([bridge.from_browser(), bridge.from_job()])
            if done is None or done.exception() is not None:
                await bridge.close_browser(POLICY if done is None else GOING_AWAY)
        finally:
            await shell.close(code=GOING_AWAY)


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

"""WebSockets to terminals: of the console's pages, and of clients that have a ticket.

The console's own pages use no other WebSocket.  Browsers send cookies with any page's, so that the Origin has
to be the console's own, to the letter; the terminal's key is in none but the pages of those who may enter.
A ticket is all that a client without a sign-in needs, and no cookie counts there: its Origin does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from urllib.parse import parse_qs, urlencode

import aiohttp
import structlog
from django.conf import settings
from django.db import DatabaseError
from django.http import parse_cookie
from django.http.request import split_domain_port, validate_host

from jobs.access import sessions, terminal_tickets
from jobs.access.gateway import addresses
from jobs.access.gateway.asgi import Receive, Reply, Scope, Send, answer
from jobs.access.gateway.client_sessions import LazySession
from jobs.access.gateway.frames import FrameBridge
from jobs.access.gateway.rechecks import RecheckedRight
from jobs.access.gateway.websocket import GOING_AWAY, POLICY, Bridge, JobSocket
from jobs.access.sessions import EntryRefused
from jobs.live.limits import EVERYBODY, ConnectionLimit, LimitReached
from jobs.live.thread_pool import run_in_thread
from jobs.models import AccessSession
from quotas.accounts.session_store import reference_of
from quotas.accounts.sessions import person_of

log = structlog.get_logger(__name__)

PATH: Final = re.compile(r"/terminals/([0-9a-f]{32})/socket")
TICKET_PATH: Final = re.compile(r"/terminals/tickets/([A-Za-z0-9_-]{43})/socket")
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


def find_holders_right(key: str) -> tuple[TerminalRight, int]:
    """Return the right of whoever opened the terminal by a ticket, and their primary key (0: nobody)."""
    rows = sessions.open_entries().filter(key=key, kind=AccessSession.Kind.TERMINAL)
    entry = rows.select_related("replica__attempt__job").first()
    person = sessions.holder_of(entry) if entry is not None else None
    if entry is None or person is None:
        return TerminalRight.NOTHING, 0
    mine = person.pk == entry.user_id and sessions.may_enter(person, entry.replica)
    return (TerminalRight.TYPE if mine else TerminalRight.NOTHING), person.pk


@dataclass(frozen=True, slots=True)
class OpenTerminal:
    """A terminal's key, the right of whoever is connected, and how they speak."""

    key: str
    right: RecheckedRight[tuple[TerminalRight, int]]
    bridge: type[Bridge]


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
        paths = (PATH, TICKET_PATH)
        return scope["type"] == "websocket" and any(path.fullmatch(scope["path"]) for path in paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        try:
            opened = (
                await _open_by_ticket(scope) if TICKET_PATH.fullmatch(scope["path"]) else await _open(scope)
            )
            if opened is None:
                log.info("terminal_refused", client=_client(scope))
                await answer(scope, send, Reply(403))
                return
            with (
                self._open.hold(EVERYBODY, settings.CONSOLE_GATEWAY_CONNECTIONS),
                self._open.hold(opened.right.now[1], settings.CONSOLE_GATEWAY_CONNECTIONS_PER_PERSON),
            ):
                await self._carry(opened, scope, receive, send)
        except (LimitReached, DatabaseError, aiohttp.ClientError, OSError) as problem:
            log.warning("terminal_unreachable", problem=repr(problem))
            await answer(scope, send, Reply(503))

    async def _carry(self, opened: OpenTerminal, scope: Scope, receive: Receive, send: Send) -> None:
        right = opened.right
        parameters = {
            name: values[0] for name, values in parse_qs(scope["query_string"].decode("latin-1")).items()
        }
        query = {name: parameters[name] for name in ("columns", "rows", "from") if name in parameters}
        address = f"http://shells/{opened.key}?{urlencode({**query, 'typing': right.now[0]})}"
        shell = await self._session.get().ws_connect(address, max_msg_size=MOST_MESSAGE)
        assert isinstance(shell, JobSocket)
        await send({"type": "websocket.accept"})
        bridge = opened.bridge(shell, receive, send)
        try:
            done = await right.until_first([bridge.from_browser(), bridge.from_job()])
            if done is None or done.exception() is not None:
                await bridge.close_browser(POLICY if done is None else GOING_AWAY)
        finally:
            await shell.close(code=GOING_AWAY)


async def _open(scope: Scope) -> OpenTerminal | None:
    """Return the terminal that a page of the console's shows, if its person may see it."""
    found = PATH.fullmatch(scope["path"])
    session = _session(scope)
    if found is None or not session or not _from_own_page(scope):
        return None
    return await _build_terminal(found[1], lambda: run_in_thread(find_right, found[1], session), Bridge)


async def _open_by_ticket(scope: Scope) -> OpenTerminal | None:
    """Return a new terminal for a ticket that was not used yet."""
    found = TICKET_PATH.fullmatch(scope["path"])
    if found is None or not _is_known_host(scope):
        return None
    try:
        entry = await run_in_thread(terminal_tickets.redeem, found[1], _client(scope))
    except EntryRefused:
        return None
    return await _build_terminal(entry.key, lambda: run_in_thread(find_holders_right, entry.key), FrameBridge)


async def _build_terminal(
    key: str, look: Callable[[], Awaitable[tuple[TerminalRight, int]]], bridge: type[Bridge]
) -> OpenTerminal | None:
    right = RecheckedRight(await look(), look)
    return OpenTerminal(key, right, bridge) if right.now[0] is not TerminalRight.NOTHING else None


def _client(scope: Scope) -> str:
    return str((scope.get("client") or ("",))[0])


def _header(scope: Scope, wanted: bytes) -> str:
    """The header, if there is exactly one of it."""
    found: list[Any] = [value for name, value in scope["headers"] if name == wanted]
    return found[0].decode("latin-1") if len(found) == 1 else ""


def _session(scope: Scope) -> str:
    return reference_of(parse_cookie(_header(scope, b"cookie")).get(settings.SESSION_COOKIE_NAME, ""))


def _is_known_host(scope: Scope) -> bool:
    host = _header(scope, b"host").lower()
    return bool(host) and validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS)


def _from_own_page(scope: Scope) -> bool:
    own = f"{addresses.scheme_of(scope['scheme'])}://{_header(scope, b'host').lower()}"
    return _is_known_host(scope) and _header(scope, b"origin").lower() == own

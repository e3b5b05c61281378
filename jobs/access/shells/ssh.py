"""The SSH gateway: who comes by which key, and what of SSH is answered.

Shells, commands and SFTP run in the job; connections are forwarded to what the job itself listens on.
Passwords, agents, X11, certificates, Unix sockets and forwarding the other way are refused.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

import asyncssh
import structlog
from asyncssh.forward import SSHForwarder
from django.conf import settings
from django.db import DatabaseError
from django.utils import translation

from jobs.access import entries, sshhost, sshkeys
from jobs.access.entries import Shut, Way
from jobs.access.shells import channels
from jobs.access.shells.forward import Forwards
from jobs.access.shells.guard import Guard, Knock
from jobs.access.shells.house import House
from jobs.access.shells.inside import Inside
from jobs.live.threads import aside
from jobs.messages.ssh import entry_message
from jobs.models import Entry, SshKey, Task
from quotas import audit
from quotas.audit.origin import Origin
from quotas.models import Action, User
from quotas.models import Way as Came

log = structlog.get_logger(__name__)

MOST_TRIES: Final = 10
"""Keys that one connection may offer; agents offer all that they have."""

LOGIN_SECONDS: Final = 30
KEEPALIVE_SECONDS: Final = 30
KEEPALIVES: Final = 4
LAST_WORD_SECONDS: Final = 5.0
"""Whoever may not in is told so in this time, and then disconnected."""

_SIGNATURES: Final = (
    "ssh-ed25519",
    "sk-ssh-ed25519@openssh.com",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ecdsa-sha2-nistp256@openssh.com",
    "rsa-sha2-256",
    "rsa-sha2-512",
)
"""Without ssh-rsa, which signs by SHA-1."""


@dataclass(frozen=True, slots=True)
class Known:
    """Whose key it is, and the replica that they ask for."""

    user: User
    key: SshKey
    task: Task


def known(name: str, fingerprint: str) -> Known | None:
    """Who comes by that key and may enter what is called `name`; None for everybody else.  Blocks."""
    key = SshKey.objects.select_related("user").filter(fingerprint=fingerprint).first()
    task = entries.find(name) if key else None
    if key is None or task is None or key.job_id not in (None, task.attempt.job_id):
        return None
    return Known(key.user, key, task) if entries.may_enter(key.user, task) else None


def refused(name: str, address: str, tries: int) -> None:
    """Tell the audit trail that a connection ended without a key that opens anything.  Blocks."""
    came = Origin(Came.SSH, name="", address=address)
    audit.denied(name, action=Action.ENTER, details={"keys": tries}, came=came)


class Door(asyncssh.SSHServer):
    """One connection."""

    def __init__(self, house: House, guard: Guard) -> None:
        self._house, self._guard = house, guard
        self._address = ""
        self._knock: Knock | None = None
        self._tries = 0
        self._name = ""
        self._forwards = Forwards()
        self._known: Known | None = None
        self._inside: asyncio.Future[Inside] = asyncio.get_running_loop().create_future()

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._conn = conn
        self._address = (conn.get_extra_info("peername") or ("",))[0]
        self._knock = self._guard.admit(self._address, conn.abort)
        if self._knock is None:
            log.info("ssh_turned_away", client=self._address)
            conn.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._knock is not None:
            self._knock.gone()
            if self._tries and not self._knock.is_known:
                _later(aside(refused, self._name, self._address, self._tries))
        if not self._inside.done():
            self._inside.cancel()
        elif not self._inside.cancelled() and self._inside.exception() is None:
            _later(self._inside.result().end(Entry.Why.LEFT))

    def begin_auth(self, username: str) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    async def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        assert self._knock is not None
        self._knock.has_offered = True
        self._known = None
        self._name = username
        self._tries += 1
        if self._tries > MOST_TRIES:
            self._conn.disconnect(asyncssh.DISC_NO_MORE_AUTH_METHODS_AVAILABLE, "Too many keys")
            return False
        try:
            self._known = await aside(known, username, key.get_fingerprint())
        except DatabaseError as error:
            log.warning("ssh_without_database", problem=type(error).__name__)
        return self._known is not None

    async def auth_completed(self) -> None:
        """What was validated last is what was signed with."""
        assert self._knock is not None
        assert self._known is not None
        self._knock.known()
        came = self._known
        way = Way(Entry.Kind.SSH, self._address, came.key)
        try:
            inside = await self._house.let_in(came.user, came.task, way)
        except (Shut, DatabaseError) as error:
            self._turn_away(error if isinstance(error, Shut) else Shut("away"))
            return
        if self._inside.done():  # gone meanwhile
            await inside.end(Entry.Why.LEFT)
            return
        self._inside.set_result(inside)
        inside.ended.add_done_callback(self._show_out)
        await aside(sshkeys.used, came.key.pk)

    def _turn_away(self, shut: Shut) -> None:
        """Whatever the client asks for is answered with the reason; what it never reads is no answer."""
        if not self._inside.done():
            self._inside.set_exception(shut)
            self._inside.exception()
        said = self._say(shut)
        loop = asyncio.get_running_loop()
        loop.call_later(LAST_WORD_SECONDS, self._conn.disconnect, asyncssh.DISC_BY_APPLICATION, said)

    def _say(self, shut: Shut) -> str:
        language = self._known.user.language if self._known else ""
        with translation.override(language or "en"):
            return entry_message(shut.code)

    def _show_out(self, ended: asyncio.Future[Entry.Why]) -> None:
        if ended.result() is not Entry.Why.LEFT:
            self._conn.disconnect(asyncssh.DISC_BY_APPLICATION, str(ended.result().label))

    async def inside(self) -> Inside:
        """The entry, once there is one.  Raises Shut."""
        return await asyncio.shield(self._inside)

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> Any:
        return self._forward(dest_host, dest_port)

    async def _forward(self, host: str, port: int) -> SSHForwarder:
        try:
            return await self._forward_inside(await self.inside(), host, port)
        except Shut as shut:
            log.info("ssh_forward_refused", client=self._address, host=host, port=port)
            said = self._say(shut)
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, said) from None

    async def _forward_inside(self, inside: Inside, host: str, port: int) -> SSHForwarder:
        """Connect, unless another listener takes the port meanwhile.  Raises Shut."""
        where = await inside.reach(host, port)
        before = await inside.listener(*where)
        there = await self._forwards.connect(*where)
        try:
            if await inside.listener(*where) != before:
                raise Shut("not_its_own")
        except Shut:
            there.close()
            raise
        return there

    def session_requested(self) -> asyncssh.SSHServerSession[bytes]:
        return channels.Process(self._serve)

    async def _serve(self, process: channels.Process) -> None:
        try:
            await channels.serve(process, await self.inside())
        except Shut as shut:
            channels.refuse(process, self._say(shut))

    def server_requested(self, listen_host: str, listen_port: int) -> bool:
        return False


_tasks: set[asyncio.Future[None]] = set()


def _later(work: Any) -> None:
    """Do it without anybody waiting; it is kept until it is done."""
    task = asyncio.ensure_future(work)
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


async def listen(house: House, host: str, port: int) -> asyncssh.SSHAcceptor:
    """Serve SSH.  OSError when the port can't be had."""
    key = await asyncio.to_thread(sshhost.ensure, settings.CONSOLE_HOME)
    guard = Guard.from_settings()
    return await asyncssh.listen(
        host,
        port,
        server_factory=lambda: Door(house, guard),
        server_host_keys=[str(key)],
        server_version="JobConsole",
        encoding=None,
        line_editor=False,
        allow_scp=False,
        agent_forwarding=False,
        x11_forwarding=False,
        password_auth=False,
        kbdint_auth=False,
        host_based_auth=False,
        gss_kex=False,
        gss_auth=False,
        signature_algs=_SIGNATURES,
        compression_algs=None,
        login_timeout=LOGIN_SECONDS,
        keepalive_interval=KEEPALIVE_SECONDS,
        keepalive_count_max=KEEPALIVES,
        reuse_address=True,
        config=(),
    )

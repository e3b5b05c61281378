"""The SSH gateway: authentication by keys, and the supported parts of SSH.

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

from jobs.access import sessions, sshhost, sshkeys
from jobs.access.sessions import EntryOrigin, EntryRefused
from jobs.access.terminal_gateway import channels
from jobs.access.terminal_gateway.guard import ConnectionGuard, PendingConnection
from jobs.access.terminal_gateway.open_sessions import OpenSessions
from jobs.access.terminal_gateway.session import JobSession
from jobs.live.thread_pool import run_in_thread
from jobs.messages.ssh import entry_message
from jobs.models import AccessSession, Replica, SshKey
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
REFUSAL_SECONDS: Final = 5.0
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
class KeyHolder:
    """The owner of a key, and the replica that they want to enter."""

    user: User
    key: SshKey
    replica: Replica


_ROOT: Final = "root@"
"""OpenPAI's clients write it before whatever they were told to connect to, and so before the user name."""


def find_key_holder(name: str, fingerprint: str) -> KeyHolder | None:
    """Return the key's owner if they may enter the replica `name`; else None.  Blocks."""
    key = SshKey.objects.select_related("user").filter(fingerprint=fingerprint).first()
    replica = sessions.find(name.removeprefix(_ROOT)) if key else None
    if key is None or replica is None or key.job_id not in (None, replica.attempt.job_id):
        return None
    return KeyHolder(key.user, key, replica) if sessions.may_enter(key.user, replica) else None


def record_refusal(name: str, address: str, tries: int) -> None:
    """Record in the audit trail that a connection ended without an accepted key.  Blocks."""
    origin = Origin(Came.SSH, name="", address=address)
    audit.log_refusal(name, action=Action.ENTER, details={"keys": tries}, request_origin=origin)


class SshConnection(asyncssh.SSHServer):
    """An SSH connection."""

    def __init__(self, sessions: OpenSessions, guard: ConnectionGuard) -> None:
        self._sessions, self._guard = sessions, guard
        self._address = ""
        self._pending: PendingConnection | None = None
        self._tries = 0
        self._name = ""
        self._forwards = channels.Forwards()
        self._known: KeyHolder | None = None
        self._session: asyncio.Future[JobSession] = asyncio.get_running_loop().create_future()

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._conn = conn
        self._address = (conn.get_extra_info("peername") or ("",))[0]
        self._pending = self._guard.admit(self._address, conn.abort)
        if self._pending is None:
            log.info("ssh_turned_away", client=self._address)
            conn.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._pending is not None:
            self._pending.close()
            if self._tries and not self._pending.is_known:
                _run_in_background(run_in_thread(record_refusal, self._name, self._address, self._tries))
        if not self._session.done():
            self._session.cancel()
        elif not self._session.cancelled() and self._session.exception() is None:
            _run_in_background(self._session.result().end(AccessSession.Why.LEFT))

    def begin_auth(self, username: str) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    async def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        assert self._pending is not None
        self._pending.has_offered = True
        self._known = None
        self._name = username
        self._tries += 1
        if self._tries > MOST_TRIES:
            self._conn.disconnect(asyncssh.DISC_NO_MORE_AUTH_METHODS_AVAILABLE, "Too many keys")
            return False
        try:
            self._known = await run_in_thread(find_key_holder, username, key.get_fingerprint())
        except DatabaseError as error:
            log.warning("ssh_without_database", problem=type(error).__name__)
        return self._known is not None

    async def auth_completed(self) -> None:
        """Begin the session; the key that was validated last is the one that signed."""
        assert self._pending is not None
        assert self._known is not None
        self._pending.authenticate()
        holder = self._known
        origin = EntryOrigin(AccessSession.Kind.SSH, self._address, holder.key)
        try:
            session = await self._sessions.begin(holder.user, holder.replica, origin)
        except (EntryRefused, DatabaseError) as error:
            self._refuse(error if isinstance(error, EntryRefused) else EntryRefused("away"))
            return
        if self._session.done():  # gone meanwhile
            await session.end(AccessSession.Why.LEFT)
            return
        self._session.set_result(session)
        session.ended.add_done_callback(self._disconnect)
        await run_in_thread(sshkeys.mark_used, holder.key.pk)

    def _refuse(self, shut: EntryRefused) -> None:
        """Answer every request of the client with the reason, then disconnect."""
        if not self._session.done():
            self._session.set_exception(shut)
            self._session.exception()
        message = self._say(shut)
        loop = asyncio.get_running_loop()
        loop.call_later(REFUSAL_SECONDS, self._conn.disconnect, asyncssh.DISC_BY_APPLICATION, message)

    def _say(self, shut: EntryRefused) -> str:
        language = self._known.user.language if self._known else ""
        with translation.override(language or "en"):
            return entry_message(shut.code)

    def _disconnect(self, ended: asyncio.Future[AccessSession.Why]) -> None:
        if ended.result() is not AccessSession.Why.LEFT:
            self._conn.disconnect(asyncssh.DISC_BY_APPLICATION, str(ended.result().label))

    async def session(self) -> JobSession:
        """The entry, once there is one.  Raises Shut."""
        return await asyncio.shield(self._session)

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> Any:
        return self._forward(dest_host, dest_port)

    async def _forward(self, host: str, port: int) -> SSHForwarder:
        try:
            return await self._forwards.connect(await self.session(), host, port)
        except EntryRefused as shut:
            log.info("ssh_forward_refused", client=self._address, host=host, port=port)
            message = self._say(shut)
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, message) from None

    def session_requested(self) -> asyncssh.SSHServerSession[bytes]:
        return channels.Process(self._serve)

    async def _serve(self, process: channels.Process) -> None:
        try:
            await channels.serve(process, await self.session())
        except EntryRefused as shut:
            channels.refuse(process, self._say(shut))

    def server_requested(self, listen_host: str, listen_port: int) -> bool:
        return False


_tasks: set[asyncio.Future[None]] = set()


def _run_in_background(work: Any) -> None:
    """Run in the background; the task is referenced until it is done."""
    task = asyncio.ensure_future(work)
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


async def listen(sessions: OpenSessions, host: str, port: int) -> asyncssh.SSHAcceptor:
    """Serve SSH.  OSError when the port can't be had."""
    key = await asyncio.to_thread(sshhost.ensure, settings.CONSOLE_HOME)
    guard = ConnectionGuard.from_settings()
    return await asyncssh.listen(
        host,
        port,
        server_factory=lambda: SshConnection(sessions, guard),
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

"""The whole process: sessions, the SSH gateway, terminals and folders."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

import asyncssh
import structlog
from django.conf import settings
from django.db import DatabaseError

from jobs.access import sessions as entries
from jobs.access import sshhost
from jobs.access.connections import close_agents
from jobs.access.terminal_gateway import folder_server, ssh, web
from jobs.access.terminal_gateway.open_sessions import OpenSessions
from jobs.access.terminal_gateway.terminals import Terminals
from jobs.live import heartbeats
from jobs.live.thread_pool import run_in_thread

log = structlog.get_logger(__name__)

AGAIN_SECONDS: Final = 10.0
"""A port that is taken is tried again so often."""

CLEANUP_SECONDS: Final = 60.0


async def run(ended: asyncio.Event) -> None:
    """Serve until `ended`."""
    sessions = OpenSessions()
    works = [sessions.check_for_ever(), _end_lost(), _serve_ssh(sessions), _give_signs()]
    served = await web.serve(Terminals(sessions), settings.CONSOLE_HOME / entries.SOCKET)
    browsed = folder_server.FolderServer()
    await browsed.listen(settings.CONSOLE_HOME / entries.FOLDERS_SOCKET)
    tasks = [asyncio.ensure_future(work) for work in works]
    waiting = asyncio.ensure_future(ended.wait())
    done, _ = await asyncio.wait([waiting, *tasks], return_when=asyncio.FIRST_COMPLETED)
    for task in (waiting, *tasks):
        task.cancel()
    await asyncio.gather(waiting, *tasks, return_exceptions=True)
    await browsed.close()
    await sessions.close()
    await close_agents()
    await served.cleanup()
    for task in done - {waiting}:
        task.result()  # none of them ends by itself


async def _give_signs() -> None:
    """Send heartbeats for the health check."""
    while True:
        await asyncio.to_thread(heartbeats.beat, "ssh")
        await asyncio.sleep(heartbeats.SIGN_SECONDS / 3)


async def _end_lost() -> None:
    """End sessions without a process: all at the start, later those that were not renewed."""
    everybody = True
    while True:
        with suppress(DatabaseError):
            await run_in_thread(entries.end_lost, everybody=everybody)
            everybody = False
        await asyncio.sleep(CLEANUP_SECONDS if not everybody else AGAIN_SECONDS)


async def _serve_ssh(sessions: OpenSessions) -> None:
    """Serve SSH unless it is switched off; a port that is in use is tried again."""
    host, port, home = settings.CONSOLE_BIND, settings.CONSOLE_SSH_PORT, settings.CONSOLE_HOME
    asyncssh.set_log_level("WARNING")
    before: str | None = None
    while port:
        try:
            acceptor = await ssh.listen(sessions, host, port)
        except OSError as error:
            trouble = error.strerror or str(error)
            if trouble != before:
                log.warning("ssh_cannot_listen", host=host, port=port, problem=trouble)
                before = trouble
                await asyncio.to_thread(sshhost.note_trouble, home, trouble)
            await asyncio.sleep(AGAIN_SECONDS)
            continue
        await asyncio.to_thread(sshhost.note_trouble, home, "")
        log.info("ssh_listens", host=host, port=port)
        async with acceptor:
            await acceptor.wait_closed()
    await asyncio.Event().wait()

"""The whole process: everybody who is inside, and the doors."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

import asyncssh
import structlog
from django.conf import settings
from django.db import DatabaseError

from jobs.access import entries, sshhost
from jobs.access.shells import folders, ssh, web
from jobs.access.shells.house import House
from jobs.access.shells.terminals import Terminals
from jobs.live import vitals
from jobs.live.threads import aside

log = structlog.get_logger(__name__)

AGAIN_SECONDS: Final = 10.0
"""A port that is taken is tried again so often."""

TIDY_SECONDS: Final = 60.0


async def run(told: asyncio.Event) -> None:
    """Serve until `told`."""
    house = House()
    works = [house.ask_after_all(), _end_lost(), _serve_ssh(house), _give_signs()]
    served = await web.serve(Terminals(house), settings.CONSOLE_HOME / entries.SOCKET)
    browsed = folders.Served()
    await browsed.listen(settings.CONSOLE_HOME / entries.FOLDERS_SOCKET)
    tasks = [asyncio.ensure_future(work) for work in works]
    waiting = asyncio.ensure_future(told.wait())
    done, _ = await asyncio.wait([waiting, *tasks], return_when=asyncio.FIRST_COMPLETED)
    for task in (waiting, *tasks):
        task.cancel()
    await asyncio.gather(waiting, *tasks, return_exceptions=True)
    await browsed.close()
    await house.close()
    await served.cleanup()
    for task in done - {waiting}:
        task.result()  # none of them ends by itself


async def _give_signs() -> None:
    """For ever: health looks for them."""
    while True:
        await asyncio.to_thread(vitals.alive, "ssh")
        await asyncio.sleep(vitals.SIGN_SECONDS / 3)


async def _end_lost() -> None:
    """At the start nobody is inside any more; from then on, those whom no process holds."""
    everybody = True
    while True:
        with suppress(DatabaseError):
            await aside(entries.end_lost, everybody=everybody)
            everybody = False
        await asyncio.sleep(TIDY_SECONDS if not everybody else AGAIN_SECONDS)


async def _serve_ssh(house: House) -> None:
    """For ever, unless it is switched off; a port that is taken is no reason to end."""
    host, port, home = settings.CONSOLE_BIND, settings.CONSOLE_SSH_PORT, settings.CONSOLE_HOME
    asyncssh.set_log_level("WARNING")
    before: str | None = None
    while port:
        try:
            acceptor = await ssh.listen(house, host, port)
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

"""`manage.py shells`: the gateway process for SSH and terminals into running jobs."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import uvloop
from django.core.management.base import BaseCommand

from jobs.access.terminal_gateway.server import run


class Command(BaseCommand):
    """Runs until SIGTERM or SIGINT."""

    help = "Serve SSH into running jobs, and the terminals of their pages."

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve."""
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_until_told())


async def _until_told() -> None:
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    await run(told)

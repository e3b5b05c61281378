"""E-mail about accounts, sent outside the request: it takes as long for a known address as for no account's.

Nobody waits for the mail server, and nobody learns from the answer whether it is away; health and the log
tell.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from smtplib import SMTPException
from typing import Final

import structlog
from django.core.mail import EmailMessage
from django.db import DatabaseError, close_old_connections

from jobs.live import heartbeats

log = structlog.get_logger(__name__)

MAIL: Final = "mail"
_threads = ThreadPoolExecutor(2, thread_name_prefix="mail")


def later(work: Callable[[], None]) -> None:
    """Do `work` soon, in a thread; what fails is logged."""
    _threads.submit(_do, work)


def _do(work: Callable[[], None]) -> None:
    try:
        work()
    except DatabaseError as problem:
        log.warning("mail_not_made", problem=type(problem).__name__)
    finally:
        close_old_connections()


def send(message: EmailMessage) -> None:
    """Send a message soon."""
    later(lambda: _send(message))


def _send(message: EmailMessage) -> None:
    try:
        message.send()
    except (OSError, SMTPException) as problem:
        log.warning("mail_not_sent", problem=str(problem))
        heartbeats.set_trouble(MAIL, "the mail server does not answer")
    else:
        heartbeats.clear_trouble(MAIL)

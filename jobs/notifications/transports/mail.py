"""E-mail, through the admin's own server."""

from __future__ import annotations

import smtplib
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMultiAlternatives, get_connection
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from jobs.notifications.message import Message, more, plain, truncate
from jobs.notifications.transports.outcome import Outcome

MOST_LINES: Final = 100
PREFIX: Final = "[Job Console]"


def send(address: Mapping[str, str], message: Message) -> Outcome:
    """Hand it to the server; what that refuses for good is not sent again."""
    if not settings.CONSOLE_MAIL:
        return Outcome(error="no_mail", again=True)
    mail = compose(address["to"], message)
    mail.connection = get_connection(timeout=settings.EMAIL_TIMEOUT)
    try:
        mail.send()
    except smtplib.SMTPRecipientsRefused as refused:
        code, words = next(iter(refused.recipients.values()))
        return _refusal_outcome(code, words)
    except smtplib.SMTPResponseException as refused:
        return _refusal_outcome(refused.smtp_code, refused.smtp_error)
    except TimeoutError:
        return Outcome(error="timeout", again=True)
    except (OSError, smtplib.SMTPException) as problem:
        return Outcome(error="connect", detail=str(problem)[:200], again=True)
    return Outcome(250)


def _refusal_outcome(code: int, words: bytes | str) -> Outcome:
    text = words.decode("utf-8", "replace") if isinstance(words, bytes) else words
    return Outcome(code, "rejected" if code >= 500 else "busy", text[:200], again=code < 500)


def compose(to: str, message: Message) -> EmailMultiAlternatives:
    """Text and HTML; messages of one job make one thread, and one click ends them all."""
    context = {"message": message, "shown": message.lines[:MOST_LINES]}
    if message.confirm:
        subject = _("Confirm this address for notifications")
        text = _(
            "Someone requested that Job Console send notifications to this address. If it was you, "
            "open this page to confirm:\n\n%(url)s\n\nOtherwise, ignore this message: nothing more "
            "will be sent."
        ) % {"url": message.confirm}
    else:
        subject, text = message.subject, _text(message)
    mail = EmailMultiAlternatives(
        subject=f"{PREFIX} {truncate(' '.join(subject.split()), 180)}",
        body=text,
        from_email=settings.CONSOLE_MAIL_FROM,
        to=[to],
        headers=_headers(message),
    )
    mail.attach_alternative(render_to_string("notifications/mail.html", context), "text/html")
    return mail


def _text(message: Message) -> str:
    parts = [plain(line) for line in message.lines[:MOST_LINES]]
    if left := len(message.lines) - len(parts):
        parts.append(more(left))
    goodbye = _("Sent by Job Console. To unsubscribe: %(url)s") % {"url": message.unsubscribe}
    return "\n\n".join([*parts, f"-- \n{goodbye}\n"])


def _headers(message: Message) -> dict[str, str]:
    host = urlsplit(settings.CONSOLE_URL).hostname or "localhost"
    headers = {
        "Message-ID": f"<{message.id}@{host}>",
        "Auto-Submitted": "auto-generated",
        "X-Console-Delivery": message.id,
    }
    if message.thread:
        thread = f"<job.{message.thread}.{settings.CONSOLE_INSTALLATION}@{host}>"
        headers |= {"In-Reply-To": thread, "References": thread}
    if not message.confirm:
        headers |= {
            "List-Unsubscribe": f"<{message.unsubscribe}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        }
    return headers

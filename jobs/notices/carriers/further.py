"""Discord, Microsoft Teams and Telegram, in apprise's words and through our own way out.

Only the three classes named here are ever made, never one by its URL: apprise knows services that run
programs, write files or talk to this machine.  Their modules reach the network by the name `requests`, and
that name is bound here to what goes through `jobs.egress`; a test reads their source for any other way.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Final

import requests
from apprise.common import NotifyFormat
from apprise.exception import AppriseImproperlyConfigured
from apprise.plugins import discord as discord_module
from apprise.plugins import telegram as telegram_module
from apprise.plugins import workflows as workflows_module
from apprise.plugins.base import NotifyBase

from jobs import egress
from jobs.notices.carriers.outcome import Outcome, of_answer
from jobs.notices.message import Message, more, plain

MOST_LINES: Final = 20
MOST_BYTES: Final = 3500

_last: ContextVar[Outcome | None] = ContextVar("last", default=None)
"""What came of the request that a service's class made: its own answer is no more than yes or no."""


class _Adapter(requests.adapters.BaseAdapter):
    """Carries out what `requests` prepared."""

    def send(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        body = request.body.encode() if isinstance(request.body, str) else request.body or b""
        headers = {name: value for name, value in request.headers.items() if name != "Content-Length"}
        try:
            answer = egress.request(request.method, request.url, headers=headers, body=body)
        except egress.Refused as refused:
            _last.set(Outcome(error=refused.code, detail=refused.detail))
            raise requests.ConnectionError(refused.code) from refused
        except egress.Failed as failed:
            _last.set(Outcome(error=failed.code, detail=failed.detail, again=True))
            raise requests.ConnectionError(failed.code) from failed
        _last.set(of_answer(answer))
        return _response(request, answer)

    def close(self) -> None:
        """Each request has a connection of its own."""


def _response(request: Any, answer: egress.Answer) -> Any:
    response = requests.Response()
    response.status_code = answer.status
    response.headers.update(answer.headers)
    response.url, response.request = request.url, request
    response._content = answer.body  # noqa: SLF001  # there is no other way to give it its body
    return response


class _Requests:
    """What stands for the library `requests` in a service's module."""

    codes = requests.codes
    RequestException = requests.RequestException

    def post(self, url: str, **options: Any) -> Any:
        return self._request("POST", url, **options)

    def get(self, url: str, **options: Any) -> Any:
        return self._request("GET", url, **options)

    def _request(self, method: str, url: str, **options: Any) -> Any:
        wanted = {name: options[name] for name in ("data", "headers", "params") if name in options}
        with requests.Session() as session:
            session.trust_env = False
            session.adapters.clear()
            for scheme in ("https://", "http://"):
                session.mount(scheme, _Adapter())
            return session.request(method, url, allow_redirects=False, **wanted)


MODULES: Final = (discord_module, telegram_module, workflows_module)

for _module in MODULES:
    vars(_module)["requests"] = _Requests()

# It would write addresses, with what is secret in them.
logging.getLogger("apprise").setLevel(logging.CRITICAL)


def discord(address: Mapping[str, str], message: Message) -> Outcome:
    """A Discord webhook."""
    options = discord_module.NotifyDiscord.parse_native_url(address["url"]) or {}
    return _carry(discord_module.NotifyDiscord, options, message)


def teams(address: Mapping[str, str], message: Message) -> Outcome:
    """A workflow of Microsoft Teams."""
    options: Any = workflows_module.NotifyWorkflows.parse_native_url(address["url"])  # type: ignore[no-untyped-call]
    return _carry(workflows_module.NotifyWorkflows, options or {}, message)


def telegram(address: Mapping[str, str], message: Message) -> Outcome:
    """A Telegram bot that writes to one chat."""
    options = {"bot_token": address["token"], "targets": [address["chat"]], "detect_owner": False}
    return _carry(telegram_module.NotifyTelegram, options, message)


def _carry(service: type[NotifyBase], options: Mapping[str, Any], message: Message) -> Outcome:
    _last.set(None)
    shown, left = message.within(MOST_LINES, MOST_BYTES, plain)
    body = "\n\n".join([*shown, *([more(left)] if left else [])])
    try:
        row = service(**options)
    except (AppriseImproperlyConfigured, TypeError):
        return Outcome(error="url")
    row.request_rate_per_sec = 0  # the pace is ours
    taken = row.send(body=body, title=message.subject, body_format=NotifyFormat.TEXT)
    told = _last.get()
    if told is None or (told.error == "" and not taken):
        return Outcome(error="rejected")
    return told

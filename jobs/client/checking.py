"""The check of a job file by a console, before it is submitted there."""

from __future__ import annotations

from typing import Any, Final

import httpx

from jobs.client.api import Console, Refused
from jobs.client.login import Login
from jobs.client.trouble import Trouble
from jobs.dialects.base import Action, Fix
from jobs.dialects.document import Document
from jobs.language import gettext as _
from jobs.messages.findings import Finding

TIMEOUT_S: Final = 10
"""A check is not worth waiting for a console that is away."""


def check(login: Login, document: Document) -> tuple[list[Finding], list[Finding]]:
    """Problems and notes of the file where it would run.  Raises Trouble for a console that does not say."""
    with Console(login, lambda _line: None) as console:
        try:
            body = {"file": document.text, "dialect": document.known_dialect}
            answer = console.http.post("/check", json=body, timeout=TIMEOUT_S)
            if answer.is_error:
                raise Refused(answer)
            told = answer.json()
            return [_parse_finding(each) for each in told["problems"]], [
                _parse_finding(each) for each in told["notes"]
            ]
        except (httpx.HTTPError, ValueError, KeyError) as error:
            raise Trouble(_("it does not answer")) from error


def _parse_finding(told: dict[str, Any]) -> Finding:
    fix, actions = told["fix"], told.get("actions", ())
    return Finding(
        told["message"],
        told["code"],
        told["pointer"],
        told["line"],
        told["column"],
        told["params"],
        Fix(fix["pointer"], fix["value"]) if fix else None,
        told["source"],
        actions=tuple(Action(each["kind"], each["value"], {"label": each["label"]}) for each in actions),
    )

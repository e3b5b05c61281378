"""The check of a job file by a console, before it is submitted there."""

from __future__ import annotations

from typing import Any, Final

import httpx

from jobs.client.api import Console, RequestRefused
from jobs.client.failure import CommandFailure
from jobs.client.login import Login
from jobs.dialects.base import Action, Fix
from jobs.dialects.document import Document
from jobs.language import gettext as _
from jobs.messages.findings import Finding

TIMEOUT_S: Final = 10
"""A check is not worth waiting for a console that is away."""


def check(login: Login, document: Document) -> tuple[list[Finding], list[Finding]]:
    """Return the console's problems and notes.  Raises CommandFailure where it does not answer."""
    with Console(login, lambda _line: None) as console:
        try:
            body = {"file": document.text, "dialect": document.known_dialect}
            answer = console.http.post("/check", json=body, timeout=TIMEOUT_S)
            if answer.is_error:
                raise RequestRefused(answer)
            answer_json = answer.json()
            return [_parse_finding(each) for each in answer_json["problems"]], [
                _parse_finding(each) for each in answer_json["notes"]
            ]
        except (httpx.HTTPError, ValueError, KeyError) as error:
            raise CommandFailure(_("no response")) from error


def _parse_finding(answer_json: dict[str, Any]) -> Finding:
    fix, actions = answer_json["fix"], answer_json.get("actions", ())
    return Finding(
        answer_json["message"],
        answer_json["code"],
        answer_json["pointer"],
        answer_json["line"],
        answer_json["column"],
        answer_json["params"],
        Fix(fix["pointer"], fix["value"]) if fix else None,
        answer_json["source"],
        actions=tuple(Action(each["kind"], each["value"], {"label": each["label"]}) for each in actions),
    )

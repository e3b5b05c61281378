"""Sentences about endpoints that are not ready."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say
from jobs.states import Unready

_SENTENCES: Final[Mapping[str, tuple[str, ...]]] = {
    Unready.WAITING: (_("The replica has not started yet."),),
    Unready.ENDED: (_("The replica has ended."),),
    Unready.STARTING: (_("It is starting: nothing listens there yet."),),
    Unready.SILENT: (_("Nothing listens on port %(port)s."), _("Nothing listens there yet.")),
    Unready.OTHER_PORT: (
        _("Nothing listens on port %(port)s, but the job listens on port %(other)s: is that the one?"),
        _("Nothing listens there yet."),
    ),
    Unready.OTHER_ADDRESS: (
        _(
            "The job listens on port %(port)s at the address %(address)s only, where the console can't "
            "reach it; have it listen on 127.0.0.1."
        ),
        _("Nothing listens there yet."),
    ),
    Unready.TAKEN: (
        _("Something that is not this replica listens on port %(port)s; have the job use another port."),
        _("Nothing listens there yet."),
    ),
    Unready.NO_ANSWER: (_("Something listens there, but it does not answer."),),
    Unready.NO_HTTP: (_("Something listens there, but it does not answer in HTTP."),),
    Unready.STATUS: (
        _("It answers with the HTTP error %(status)s."),
        _("It answers with an HTTP error."),
    ),
}


def endpoint_message(code: str, params: Mapping[str, object]) -> str:
    """Return the sentence for a code of `Endpoint.lacks`."""
    return say(_SENTENCES[code], params)

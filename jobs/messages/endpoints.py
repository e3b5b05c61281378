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
    Unready.STARTING: (_("Starting: no process is listening yet."),),
    Unready.SILENT: (_("No process is listening on port %(port)s."), _("No process is listening yet.")),
    Unready.OTHER_PORT: (
        _(
            "No process is listening on port %(port)s, but the job is listening on port %(other)s. "
            "Did you mean that port?"
        ),
        _("No process is listening yet."),
    ),
    Unready.OTHER_ADDRESS: (
        _(
            "The job listens on port %(port)s of %(address)s only, which the console can't reach. "
            "Make it listen on 127.0.0.1."
        ),
        _("No process is listening yet."),
    ),
    Unready.TAKEN: (
        _("Port %(port)s is used by another process. Use a different port in the job."),
        _("No process is listening yet."),
    ),
    Unready.NO_ANSWER: (_("The port is open but not responding."),),
    Unready.NO_HTTP: (_("The port is open but doesn't respond with HTTP."),),
    Unready.STATUS: (
        _("Responds with HTTP error %(status)s."),
        _("Responds with an HTTP error."),
    ),
}


def endpoint_message(code: str, params: Mapping[str, object]) -> str:
    """Return the sentence for a code of `Endpoint.lacks`."""
    return say(_SENTENCES[code], params)

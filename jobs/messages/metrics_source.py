"""Sentences about a test of a site's Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say

_SENTENCES: Final[Mapping[str, tuple[str, ...]]] = {
    "ok": (_("%(metric)s: %(count)s series of jobs."),),
    "refused": (
        _(
            "The console is not allowed to contact %(entry)s. "
            "Add %(entry)s to CONSOLE_EGRESS_HOSTS and restart."
        ),
    ),
    "away": (_("No answer from %(address)s: %(detail)s"),),
    "credentials": (_("%(address)s requires credentials (%(status)s), and the console sends none."),),
    "not_found": (_("No Prometheus at %(address)s (404). Enter the address before /api/v1/query."),),
    "unreadable": (_("%(address)s is not a Prometheus: unexpected response (%(status)s)."),),
    "query": (_("%(metric)s: Prometheus says: %(detail)s"), _("Prometheus says: %(detail)s")),
    "no_series": (_("%(metric)s: the query finds no series. Check that its exporter is scraped."),),
    "no_job": (
        _(
            "%(metric)s: no series has the job's number. Expected label: %(expected)s. "
            "Labels of the series: %(labels)s."
        ),
    ),
    "no_node": (
        _(
            "%(metric)s: no series has the node's name. Expected label: %(expected)s. "
            "Labels of the series: %(labels)s."
        ),
    ),
}
"""By the code of `jobs.scheduling.prometheus`."""


def metrics_source_message(code: str, params: Mapping[str, object]) -> str:
    """Return the sentence for a result, or for why there was no answer."""
    return say(_SENTENCES[code], params)

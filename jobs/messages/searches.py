"""Sentences about the query line of the list of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say

_PROBLEMS: Final = {
    "unknown_filter": (
        _("Unknown filter “%(key)s” in %(text)s. Did you mean “%(suggestion)s”?"),
        _("Unknown filter “%(key)s” in %(text)s."),
    ),
    "unknown_value": (
        _("Unknown value in %(text)s. Did you mean “%(suggestion)s”?"),
        _("Unknown value in %(text)s. Use one of: %(example)s."),
    ),
    "bad_value": (_("Invalid value in %(text)s. Example: %(example)s."),),
}


class Problem(Protocol):
    """A `jobs.search.query.QueryProblem`."""

    @property
    def code(self) -> str: ...
    @property
    def params(self) -> Mapping[str, str]: ...


def query_message(problem: Problem) -> str:
    """Return the sentence for a problem of a query line."""
    return say(_PROBLEMS[problem.code], problem.params)


_HELP: Final = {
    "state": _("in this state; several are alternatives"),
    "owner": _("of this user; “me” is you"),
    "workspace": _("in this workspace"),
    "cluster": _("on this cluster"),
    "quota": _("in this resource quota"),
    "tag": _("with this tag, or a value of it"),
    "gpu": _("with this number of GPUs, or of this type: gpu:A100"),
    "replicas": _("with this number of replicas"),
    "priority": _("with this priority"),
    "since": _("submitted since a day, or in the last hours (h), days (d) or weeks (w)"),
    "until": _("submitted until the end of a day"),
    "command": _("with this text in the job file"),
    "description": _("with this text in the description"),
    "sweep": _("of this sweep"),
    "is": _("starred by you, or idle"),
}


def filter_help(key: str) -> str:
    """Return what a filter of the query line finds."""
    return say((_HELP[key],), {})

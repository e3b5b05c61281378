"""Refusals that several backends have in common (`jobs.messages.refusals` has their sentences)."""

from __future__ import annotations

from collections.abc import Iterable

from jobs.backends.base import Refused, Submission
from jobs.states import Params, Reason, ReasonCode


def refusal(why: str, **params: str | int | None) -> Refused:
    """Return the refusal for a reason of `jobs.messages.refusals`."""
    said: Params = {"why": why, **params}
    return Refused(Reason(ReasonCode.REFUSED, said))


def refuse_missing_secrets(submission: Submission, names: Iterable[str]) -> None:
    """Raise Refused for the first named secret that the submission does not have."""
    for name in names:
        if name not in submission.secrets:
            raise refusal("no_secret", name=name)


def refuse_restricted(submission: Submission) -> None:
    """Raise Refused for a job that may not connect to everywhere, where nothing would keep it from that."""
    if submission.is_restricted:
        raise refusal("egress_not_enforced", workspace=submission.workspace)

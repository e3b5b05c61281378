"""The variables by which MLflow's client in a job finds the console, and proves which attempt it is of."""

from __future__ import annotations

from typing import Final

from jobs.backends.base import Submission
from jobs.spec import JobSpec

URI: Final = "MLFLOW_TRACKING_URI"
TOKEN: Final = "MLFLOW_TRACKING_TOKEN"  # noqa: S105 a name


def is_offered(submission: Submission, console_url: str) -> bool:
    """Return whether MLflow's client in the job finds the console, which the job reaches at an address."""
    return bool(submission.tracking_token and console_url) and not has_own_server(submission.spec)


def has_own_server(spec: JobSpec) -> bool:
    """Return whether the job names a tracking server of its own, which must not get the console's token."""
    given = {*spec.env, *spec.secret_env, *(name for role in spec.roles for name in role.env)}
    return not given.isdisjoint({URI, TOKEN})

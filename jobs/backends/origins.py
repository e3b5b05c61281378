"""The record of what an attempt was submitted as, which lies with the attempt.

A console whose database was restored from a backup does not know the jobs that were submitted after it; by
this record an admin adopts those that still run.  It has no secret.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, runtime_checkable

from jobs.backends.base import Person, Submission

FILE: Final = "origin.json"


@dataclass(frozen=True, slots=True)
class Origin:
    """The submission of an attempt: its JobSpec as JSON has it, and for whom.

    `quota` is the quota's short name, `nodes` are where admission placed it.  `secrets` are the values that
    its programs were given, to be masked in its logs, and `endpoint_token` is its own.
    """

    spec: Mapping[str, Any]
    person: Person
    workspace: str
    quota: str
    nodes: tuple[str, ...] = ()
    secrets: tuple[str, ...] = field(default=(), repr=False)
    endpoint_token: str = field(default="", repr=False)

    @property
    def name(self) -> str:
        """Return the job's name."""
        return str(self.spec.get("name", ""))


@runtime_checkable
class OriginReader(Protocol):
    """A backend that can tell what an attempt was submitted as."""

    def read_origin(self, key: str) -> Origin | None:
        """Return it; None where there is no record."""


@runtime_checkable
class LiveAttempts(Protocol):
    """A backend that knows all attempts which it runs; others list them in their inventory."""

    def list_live(self) -> Sequence[str]:
        """Return their keys."""


def render(submission: Submission) -> dict[str, Any]:
    """Return the record of a submission, as JSON."""
    return {
        "spec": submission.spec.model_dump(mode="json"),
        "person": [submission.person.name, submission.person.number],
        "workspace": submission.workspace,
        "quota": submission.virtual_cluster,
        "nodes": [each.node for each in submission.reserved],
    }


def parse(value: Mapping[str, Any], secrets: Mapping[str, str], others: tuple[str, ...] = ()) -> Origin:
    """Return the origin of a record; `secrets` are the secret variables, `others` further secret values."""
    name, number = value["person"]
    return Origin(
        value["spec"],
        Person(name, number),
        value["workspace"],
        value["quota"],
        tuple(value["nodes"]),
        (*secrets.values(), *others),
        secrets.get("JOB_CONSOLE_ENDPOINT_TOKEN", ""),
    )

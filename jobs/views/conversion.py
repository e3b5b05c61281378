"""A job file in another dialect, as pages and the API tell it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jobs import dialects
from jobs.dialects.base import Note, Refused
from jobs.messages.findings import Finding, loss_json
from jobs.views.findings import problems_of


@dataclass(frozen=True, slots=True)
class Conversion:
    """`name` is the job's, `dialect` empty when it is not known, `text` None when nothing could be read.

    `text` has placeholders for secrets, `filled` the values that stood in the file that came.
    """

    dialect: str
    name: str = ""
    text: str | None = None
    filled: str | None = None
    losses: tuple[Note, ...] = ()
    problems: tuple[Finding, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As the API tells it."""
        return {
            "dialect": self.dialect or None,
            "text": self.text,
            "notes": [loss_json(loss) for loss in self.losses],
            "problems": [problem.to_json() for problem in self.problems],
        }


def conversion(text: str, to: str, dialect: str | None = None) -> Conversion:
    """`text` in the dialect `to`; never raises for what stands in it."""
    try:
        made = dialects.convert(text, to, dialect)
    except Refused as refused:
        return Conversion(dialect or "", problems=problems_of(text, refused.problems))
    filled = dialects.get(to).with_secrets(made.text, made.parsed.secrets)
    return Conversion(made.source, made.parsed.spec.name, made.text, filled, made.losses)

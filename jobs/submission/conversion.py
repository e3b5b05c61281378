"""A job file in another dialect, as pages and the API tell it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jobs import dialects
from jobs.dialects.base import Note, Refused
from jobs.dialects.document import Document
from jobs.messages.findings import Finding, loss_json
from jobs.submission.findings import problems_of


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


def conversion(document: Document, to: str) -> Conversion:
    """The job file in the dialect `to`; never raises for what stands in it."""
    try:
        made = dialects.convert(document, to)
    except Refused as refused:
        return Conversion(document.given or "", problems=problems_of(document.text, refused.problems))
    parsed = document.parsed
    filled = made.document.fill(parsed.secrets).text
    return Conversion(document.dialect, parsed.spec.name, made.document.text, filled, made.losses)

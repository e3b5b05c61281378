"""Problems, notes and losses as people and programs read them, wherever they are told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from jobs import dialects
from jobs.dialects.base import Action, Fix, Note, Params, Problem
from jobs.messages.actions import action_label
from jobs.messages.fieldnames import capability_label
from jobs.messages.notes import note_message
from jobs.messages.problems import problem_message

LONGEST_EXCERPT: Final = 160


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem or a note with its sentence.  `line` and `column` count from 1.

    `source` is whose rule it is; `excerpt` the line that it is about, where somebody wants to see it;
    `actions` are ways out of it.
    """

    message: str
    code: str
    pointer: str = ""
    line: int | None = None
    column: int | None = None
    params: Params = field(default_factory=dict)
    fix: Fix | None = None
    source: str = ""
    excerpt: str = ""
    actions: tuple[Action, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it as the command line, the API and the editor tell it."""
        return {
            "pointer": self.pointer,
            "line": self.line,
            "column": self.column,
            "code": self.code,
            "message": self.message,
            "params": dict(self.params),
            "fix": self.fix and fix_json(self.fix),
            "source": self.source,
            "actions": [
                {"kind": each.kind, "value": each.value, "label": action_label(each)} for each in self.actions
            ],
        }


def fix_json(fix: Fix) -> dict[str, Any]:
    """Return a fix as `fix_from_json` reads it again."""
    return {"pointer": fix.pointer, "value": fix.value, "key": fix.key}


def fix_from_json(value: Mapping[str, Any]) -> Fix:
    """Return the fix that `fix_json` wrote; raises KeyError and TypeError for anything else."""
    key = value.get("key")
    return Fix(str(value["pointer"]), value["value"], None if key is None else str(key))


def of_problem(problem: Problem, lines: Sequence[str] = ()) -> Finding:
    """Return a problem, with an excerpt where the text's `lines` are given."""
    return Finding(
        problem_message(problem),
        problem.code,
        problem.pointer,
        problem.line,
        problem.column,
        problem.params,
        problem.fix,
        problem.source,
        _excerpt(lines, problem.line),
        problem.actions,
    )


def of_note(note: Note) -> Finding:
    """Return a note; its place is told as far as it was worked out."""
    message = note_message(note)
    return Finding(message, note.code, note.pointer, note.line, note.column, note.params, note.fix)


def loss_json(note: Note) -> dict[str, Any]:
    """Return a loss of a conversion: with the `capability` that the target lacks, in words, and the `side` on
    which its line is: `source` or `target`.
    """
    of_source = note.code in dialects.SOURCE_LOSSES
    capability = capability_label(note.pointer) if of_source and note.code != "not_carried" else ""
    side = "source" if of_source else "target"
    return {**of_note(note).to_json(), "capability": capability, "side": side}


def _excerpt(lines: Sequence[str], number: int | None) -> str:
    if number is None or not 0 < number <= len(lines):
        return ""
    line = lines[number - 1].strip()
    return line if len(line) <= LONGEST_EXCERPT else line[: LONGEST_EXCERPT - 1] + "…"

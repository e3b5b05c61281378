"""Codes become sentences here, in the reader's language: problems, notes, reasons, ends and states.

Everything further in speaks in codes and parameters.  A missing parameter never breaks a sentence: a
shorter one is chosen.
"""

from jobs.messages.dialects import dialect_label, why_message
from jobs.messages.exits import exit_message, signal_name
from jobs.messages.fieldnames import capability_label, field_name
from jobs.messages.labels import phase_label, replica_state_label, state_label
from jobs.messages.notes import note_message
from jobs.messages.problems import problem_message
from jobs.messages.reasons import reason_message

__all__ = [
    "capability_label",
    "dialect_label",
    "exit_message",
    "field_name",
    "note_message",
    "phase_label",
    "problem_message",
    "reason_message",
    "replica_state_label",
    "signal_name",
    "state_label",
    "why_message",
]

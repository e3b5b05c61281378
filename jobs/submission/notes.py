"""Notes that were stored with a job, as notes again."""

from __future__ import annotations

from jobs.dialects.base import Note
from jobs.models import JobFile


def stored_notes(file: JobFile) -> list[Note]:
    """What was told when the job was submitted."""
    return [Note(row["code"], row["pointer"], row["params"]) for row in file.note_rows()]

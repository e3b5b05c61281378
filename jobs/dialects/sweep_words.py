"""Words in braces, as `{lr}`, which a sweep replaces in commands, and which nothing replaced."""

from __future__ import annotations

import re
from typing import Final

from jobs.dialects.base import Note
from jobs.spec import JobSpec

UNFILLED: Final = "word_unfilled"

MOST_NOTES: Final = 20
"""Notes on one job; more than so many words are no parameters of a sweep."""

_IN_BRACES: Final = re.compile(r"(?<![$%@^{\\])\{([A-Za-z_][A-Za-z0-9_]*)\}(?!\})")
_SINGLE_QUOTED: Final = re.compile(r"'[^']*'")


def notes(spec: JobSpec) -> tuple[Note, ...]:
    """Return a note for each word in braces that the job's commands still have, such as `--lr {lr}`.

    Braces that a shell or a program gives a meaning of its own are left out: `${HOME}`, what is in single
    quotes, here documents.
    """
    commands = [role.command for role in spec.roles if "<<" not in role.command]
    texts = [_SINGLE_QUOTED.sub("", command) for command in commands]
    words = dict.fromkeys(word for text in texts for word in _IN_BRACES.findall(text))
    return tuple(Note(UNFILLED, "", {"word": word}) for word in list(words)[:MOST_NOTES])

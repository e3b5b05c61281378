"""Sentences about problems of the form's fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.dialects.base import Problem
from jobs.messages.dialects import dialect_label
from jobs.messages.fieldnames import capability_label
from jobs.messages.problems import problem_message
from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say

_SENTENCES: Final[Mapping[str, tuple[str, ...]]] = {
    "needed": (_("This is needed."),),
    "bad_text": (_("“%(value)s” does not fit here."),),
    "too_long": (_("This may have at most %(most)s characters."),),
    "no_image_name": (_("The name of an image has no spaces."),),
    "no_number": (_("“%(value)s” is no number."),),
    "not_whole": (_("This must be a whole number."),),
    "too_small": (_("This must be at least %(least)s."),),
    "too_great": (_("This may be at most %(most)s."),),
    "no_option": (_("“%(value)s” is none of the choices."),),
    "no_pair": (_("“%(value)s” is no name=value."),),
    "no_json": (_("This is no JSON object."),),
    "no_time": (_("This is no date and time. Write it as in 2027-01-31T22:00:00+08:00."),),
    "no_variable": (
        _("“%(value)s” is no name of a variable: letters, digits and “_”, and no digit at the beginning."),
    ),
    "env_too_long": (
        _(
            "This has %(count)s characters, and a .env file may have %(most)s here. Paste fewer variables,"
            " and keep long values in a file that the job reads."
        ),
    ),
    "env_lines": (
        _(
            "Line %(lines)s can't be read: each line is NAME=value, and a quote ends where its value does."
            " Nothing has been added yet."
        ),
    ),
    "no_fit": (_("This does not fit together with the rest of the job."),),
    "repeats": (_("This name is there twice."),),
    "code_needs_place": (_("Say the repository as well, or the code's id."),),
    "too_many_secrets": (_("You have as many secrets as the console keeps. Remove one in Settings first."),),
    "not_said": (
        _("This kind of job file would say “%(instead)s” instead."),
        _("This kind of job file has no words for it."),
    ),
}
"""By the code of a field's problem."""

_OFF: Final = (_("%(dialect)s has no words for %(capability)s."), _("%(dialect)s has no words for this."))


def field_message(code: str, params: Mapping[str, object], because: Problem | None = None) -> str:
    """Return the sentence for a field's problem."""
    return problem_message(because) if because else say(_SENTENCES[code], params)


def off_message(dialect: str, path: str) -> str:
    """Return why a field is disabled in a file of that dialect."""
    return say(_OFF, {"dialect": dialect_label(dialect), "capability": capability_label(path)})

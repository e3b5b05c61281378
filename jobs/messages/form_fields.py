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
    "needed": (_("Required."),),
    "bad_text": (_("“%(value)s” is not valid here."),),
    "too_long": (_("At most %(most)s characters."),),
    "no_image_name": (_("Image names can't contain spaces."),),
    "no_number": (_("“%(value)s” is not a number."),),
    "not_whole": (_("This must be a whole number."),),
    "too_small": (_("Must be at least %(least)s."),),
    "too_great": (_("Must be at most %(most)s."),),
    "no_option": (_("“%(value)s” is not one of the options."),),
    "no_pair": (_("“%(value)s” is not in the form name=value."),),
    "no_words": (_('Not a JSON list of words, e.g. ["sleep", "60"].'),),
    "no_json": (_("Not a JSON object."),),
    "no_time": (_("Not a valid date and time. Example: 2027-01-31T22:00:00+08:00."),),
    "no_variable": (
        _(
            "“%(value)s” is not a valid variable name. Use letters, digits and “_”; the first "
            "character can't be a digit."
        ),
    ),
    "env_too_long": (
        _(
            "Too long: %(count)s characters, maximum %(most)s. Paste fewer variables, and put long "
            "values in a file that the job reads."
        ),
    ),
    "env_lines": (
        _(
            "Can't read line %(lines)s. Use NAME=value on each line and close all quotes. Nothing "
            "has been added."
        ),
    ),
    "no_fit": (_("Conflicts with other settings of the job."),),
    "repeats": (_("Duplicate name."),),
    "code_needs_place": (_("Also enter the repository or the code ID."),),
    "too_many_secrets": (_("Secret limit reached. Remove one in Settings first."),),
    "not_said": (
        _("This job file format would store “%(instead)s” instead."),
        _("Not supported by this job file format."),
    ),
}
"""By the code of a field's problem."""

_OFF: Final = (_("%(dialect)s doesn't support %(capability)s."), _("Not supported by %(dialect)s."))


def field_message(code: str, params: Mapping[str, object], because: Problem | None = None) -> str:
    """Return the sentence for a field's problem."""
    return problem_message(because) if because else say(_SENTENCES[code], params)


def off_message(dialect: str, path: str) -> str:
    """Return why a field is disabled in a file of that dialect."""
    return say(_OFF, {"dialect": dialect_label(dialect), "capability": capability_label(path)})

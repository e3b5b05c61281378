"""Checks of the arguments of the sanity check: what is misspelled, wrong, or without effect here."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Final

from jobs.dialects.argument_text import Argument, find_arguments
from jobs.dialects.base import Note, Problem
from jobs.form.subfields import SANITY_CHECK
from jobs.spec import JobSpec

_AT: Final = "/sanity_check/arguments"
_ALIKE: Final = 0.93
"""High, as the vendor has not published all names."""

_LONGEST: Final = 60
_DIGITS: Final = 6
_KNOWN: Final = {each.name: each for each in SANITY_CHECK}


def find_problems(spec: JobSpec) -> Iterator[Problem]:
    """Yield a problem for each misspelled argument, and for a time-out that is no number."""
    for argument in _list_arguments(spec):
        if (close := _find_close(argument.name)) and argument.name not in _KNOWN:
            params = {"name": argument.name, "close": close}
            yield Problem("fault_argument_misspelled", _AT, params=params)
        elif argument.name in _KNOWN and _KNOWN[argument.name].number and not _is_seconds(argument.value):
            about = {"expected": "1, 2, 3 … (s)", "source": "SanityCheck"}
            yield Problem(
                "fault_argument_wrong", _AT, params={"name": argument.name, "value": argument.value, **about}
            )


def find_notes(spec: JobSpec) -> Iterator[Note]:
    """Yield a note for each argument that nobody knows, or whose value has no meaning here."""
    for argument in _list_arguments(spec):
        known = _KNOWN.get(argument.name)
        if known is None and not _find_close(argument.name):
            yield Note("fault_argument_unknown", _AT, {"name": argument.name})
        elif known is not None and known.options and argument.value not in known.options:
            yield Note("fault_argument_unused", _AT, {"name": argument.name})


def _list_arguments(spec: JobSpec) -> Iterator[Argument]:
    return find_arguments(spec.sanity_check.arguments) if spec.sanity_check.enabled else iter(())


def _is_seconds(value: str) -> bool:
    is_number = value.isascii() and value.isdecimal() and len(value) <= _DIGITS
    return is_number and not value.startswith("0")


def _find_close(name: str) -> str:
    """Return the known argument that was probably meant; "" where none is alike."""
    return next(iter(difflib.get_close_matches(name[:_LONGEST], _KNOWN, 1, _ALIKE)), "")

"""Checks of the arguments of fault tolerance: what is misspelled, wrong, or without effect here."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Final

from jobs.dialects import fault_arguments
from jobs.dialects.argument_text import find_arguments
from jobs.dialects.base import Note, Problem
from jobs.dialects.fault_arguments import BY_NAME, ArgumentKind
from jobs.spec import JobSpec

_AT: Final = "/fault_tolerance/arguments"
_ALIKE: Final = 0.8
_LONGEST: Final = 60

_EXPECTED: Final = {
    ArgumentKind.FLAG: "true, false",
    ArgumentKind.COUNT: "0, 1, 2 …",
    ArgumentKind.SECONDS: "1, 2, 3 … (s)",
    ArgumentKind.MINUTES: "1, 2, 3 … (min)",
    ArgumentKind.TEXT: "…",
}


def find_problems(spec: JobSpec) -> Iterator[Problem]:
    """Yield a problem for each misspelled argument, and for each wrong value."""
    if not spec.fault_tolerance.enabled:
        return
    for argument in find_arguments(spec.fault_tolerance.arguments):
        known = BY_NAME.get(argument.name)
        if known is None:
            close = _find_close(argument.name)
            if close:
                params = {"name": argument.name, "close": close}
                yield Problem("fault_argument_misspelled", _AT, params=params)
        elif not known.fits(argument.value):
            expected = ", ".join(known.words) or _EXPECTED[known.kind]
            params = {
                "name": known.name,
                "value": argument.value,
                "expected": expected,
                "source": known.source,
            }
            yield Problem("fault_argument_wrong", _AT, params=params)


def find_notes(spec: JobSpec) -> Iterator[Note]:
    """Yield a note for each argument without effect: one that nobody knows, or that nothing here acts on."""
    if not spec.fault_tolerance.enabled:
        return
    for argument in find_arguments(spec.fault_tolerance.arguments):
        known = BY_NAME.get(argument.name)
        if known is None and not _find_close(argument.name):
            yield Note("fault_argument_unknown", _AT, {"name": argument.name})
        elif known is not None and not known.acts:
            yield Note("fault_argument_unused", _AT, {"name": argument.name})


def _find_close(name: str) -> str:
    """Return the known argument that was probably meant; "" where none is alike."""
    names = [each.name for each in fault_arguments.ARGUMENTS]
    return next(iter(difflib.get_close_matches(name[:_LONGEST], names, 1, _ALIKE)), "")

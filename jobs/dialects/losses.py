"""The difference between the JobSpec wanted and the one that a rendered text reads back as."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from jobs.dialects.base import Note
from jobs.dialects.spans import escape
from jobs.spec import JobSpec

_SHOWN: Final = 60
ABSENT: Final = object()
"""What stands where nothing does."""


def losses(wanted: JobSpec, said: JobSpec, dialect: str) -> tuple[Note, ...]:
    """Return a note for each JobSpec path that differs, in the JobSpec's order.

    `lost` is what `dialect` can't say at all, `approximated` what it says differently, `added` what it
    brings along by itself.  The pointer is a path of the JobSpec.
    """
    found = differences(wanted.model_dump(mode="json"), said.model_dump(mode="json"), "")
    return tuple(_make_note(pointer, before, after, dialect) for pointer, before, after in found)


def _make_note(pointer: str, before: object, after: object, dialect: str) -> Note:
    params = {"path": pointer, "dialect": dialect, "value": _shorten(before), "instead": _shorten(after)}
    if _is_nothing(before) and not _is_nothing(after):
        return Note("added", pointer, params)
    return Note("lost" if _is_nothing(after) else "approximated", pointer, params)


def differences(before: object, after: object, pointer: str) -> Iterator[tuple[str, object, object]]:
    """Each innermost path at which the two differ, with what stands there in both."""
    missing = before is ABSENT or after is ABSENT
    if before == after or (missing and _is_nothing(before) and _is_nothing(after)):
        return
    if isinstance(before, dict) and (isinstance(after, dict) or _is_nothing(after)):
        yield from _compare_objects(before, after if isinstance(after, dict) else {}, pointer)
    elif isinstance(after, dict) and before is None:
        yield from _compare_objects({}, after, pointer)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _compare_lists(before, after, pointer)
    else:
        yield pointer, before, after


def _compare_objects(
    before: dict[str, object], after: dict[str, object], pointer: str
) -> Iterator[tuple[str, object, object]]:
    for key in dict.fromkeys((*before, *after)):
        inner = f"{pointer}/{escape(key)}"
        yield from differences(before.get(key, ABSENT), after.get(key, ABSENT), inner)


def _compare_lists(
    before: list[object], after: list[object], pointer: str
) -> Iterator[tuple[str, object, object]]:
    """Compare two lists: an element of both is no difference; the rest is compared in order."""
    rest = list(after)
    missing: list[tuple[int, object]] = []
    for index, element in enumerate(before):
        if element in rest:
            rest.remove(element)
        else:
            missing.append((index, element))
    missing += [(index, ABSENT) for index in range(len(before), len(before) + len(rest) - len(missing))]
    for place, (index, element) in enumerate(missing):
        other = rest[place] if place < len(rest) else ABSENT
        yield from differences(element, other, f"{pointer}/{index}")


def _is_nothing(value: object) -> bool:
    """Return whether `value` is what a JobSpec holds where nothing was said.

    Two of these may still differ: retrying without end (None) is not never retrying (0).
    """
    return value is ABSENT or value is None or value in ("", 0, False)


def _shorten(value: object) -> str | None:
    if value is ABSENT or value is None:
        return None
    text = str(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"

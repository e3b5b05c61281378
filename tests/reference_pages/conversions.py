"""The page of conversions: what survives which dialect, and from which one to which."""

from __future__ import annotations

from collections.abc import Iterator

from console.documentation.reference.table import code, table
from jobs import dialects
from tests.reference_pages.survival import Fate, added, both_keep, fates, lost_between

INTRODUCTION = """\
# What survives a conversion

From one dialect to another a job goes through the JobSpec and nothing beside it, so that whatever both can
say arrives. Measured, path by path: a job that says something there is written in the dialect and read again.

- **kept**: every value tried comes back as it was
- kept for Job Console: they do, and some by way of our own object in the file, which the dialect's own system
  ignores; the conversion names each
- *approximated*: some do, or something near to them does; the conversion names each difference
- lost: none does; the conversion names it
"""

_SHOWN = {
    Fate.KEPT: "**kept**",
    Fate.OURS: "kept for Job Console",
    Fate.APPROXIMATED: "*approximated*",
    Fate.LOST: "lost",
}


def page() -> str:
    """The whole page."""
    return "\n".join(
        [
            INTRODUCTION,
            "## Path by path\n",
            table(("JobSpec", *dialects.NAMES), _paths()),
            "## From one to another\n",
            "How many of the paths both sides keep; the way there and the way back are measured each.\n",
            table(("from \\ to", *dialects.NAMES), _pairs()),
            "Kept by both and lost on the way between them:",
            _between(),
            "## What a dialect brings along\n",
            "A job that says nothing but a name, a command and an image comes back with:\n",
            "\n".join(
                f"- {name}: {', '.join(map(code, paths)) or 'nothing more'}"
                for name, paths in added().items()
            ),
            "",
        ]
    )


def _paths() -> Iterator[tuple[str, ...]]:
    for path, row in fates().items():
        yield (code(path), *(_SHOWN[row[name]] for name in dialects.NAMES))


def _pairs() -> Iterator[tuple[str, ...]]:
    for source in dialects.NAMES:
        counts = (
            str(len(both_keep(source, target))) if source != target else "" for target in dialects.NAMES
        )
        yield (source, *counts)


def _between() -> str:
    lines = [f"- {code(each.path)}, {each.source} → {each.target}" for each in lost_between()]
    return "\n" + ("\n".join(lines) or "- nothing") + "\n"

"""Django's `makemessages`, which also collects the descriptions of the dialects' keys.

Those texts are data of packages that know no Django (`help` in the tables of keys); people read them in
the published schemas, where `jobs.api.schemas` translates them.  While strings are collected they stand
in a file of their own, written as calls that the collector knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from django.core.management.commands import makemessages

from jobs import dialects

HINTS: Final = Path("jobs") / "hints_of_dialects.py"


def hints() -> tuple[str, ...]:
    """Return every title and description of every dialect's schema, once."""
    found = (text for name in dialects.NAMES for text in _texts(dialects.get(name).schema()))
    return tuple(dict.fromkeys(found))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key in {"title", "description"} and isinstance(inner, str):
                yield inner
            else:
                yield from _texts(inner)


class Command(makemessages.Command):
    """Collect strings, the dialects' among them."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Run in the checkout, as Django's own; the file goes again, whatever happens."""
        HINTS.write_text("".join(f"_({text!r})\n" for text in hints() if text), encoding="utf-8")
        try:
            super().handle(*args, **options)
        finally:
            HINTS.unlink()

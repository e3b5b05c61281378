"""The first block of code of a Markdown page that is a job file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from jobs.dialects.pasted.layers import Layer, dedented

_FENCE: Final = re.compile(
    r"^[ \t]*(?P<mark>`{3,}|~{3,})[^`\r\n]*\r?\n(?P<inside>.*?)(?:^[ \t]*(?P=mark)[ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)
_MOST: Final = 20
"""So many blocks are looked at."""


def blocks(text: str) -> Iterator[Layer]:
    """The blocks of code that stand between fences."""
    for number, found in enumerate(_FENCE.finditer(text)):
        if number == _MOST:
            return
        yield dedented("markdown", text, *found.span("inside"))

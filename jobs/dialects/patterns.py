"""Regular expressions with possessive groups, `(?:…)*+`, on every Python that is supported.

Before Python 3.11.5 such a group is matched wrongly where it has alternatives (CPython issue 106052), as on
Debian 12.  There it is written as an atomic group, which matches the same and takes more memory.
"""

from __future__ import annotations

import re
import sys
from typing import Final

_IS_MENDED: Final = sys.version_info >= (3, 11, 5)
_POSSESSIVE: Final = re.compile(r"[*+?]\+")


def compile_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return `re.compile(pattern, flags)`, with atomic groups for possessive ones where those are wrong."""
    return re.compile(pattern if _IS_MENDED else write_atomic(pattern), flags)


def write_atomic(pattern: str) -> str:
    """Write each possessive group of a pattern, `(…)*+`, as an atomic one, `(?>(…)*)`."""
    written: list[str] = []
    starts: list[int] = []
    position, in_class = 0, False
    while position < len(pattern):
        length, start = 1, None
        match pattern[position]:
            case "\\":
                length = 2
            case "[" if not in_class:
                in_class = True
                length += pattern[position + 1] == "^"
                length += pattern[position + length] == "]"  # here it is no end
            case "]":
                in_class = False
            case "(" if not in_class:
                starts.append(len(written))
            case ")" if not in_class:
                start = starts.pop()
        written.append(pattern[position : position + length])
        position += length
        if start is not None and _POSSESSIVE.match(pattern, position):
            written[start] = f"(?>{written[start]}"
            written.append(f"{pattern[position]})")
            position += 2
    return "".join(written)

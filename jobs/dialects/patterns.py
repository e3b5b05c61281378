"""Regular expressions with possessive groups, `(?:…)*+`, on every Python that is supported.

Before Python 3.11.5, as on Debian 12, such a group ends at the wrong place: where its last repetition stopped
matching, not where that began (CPython issue 106052).  An alternative that never matches sets the place back.
"""

from __future__ import annotations

import re
import sys
from typing import Final

_IS_FIXED: Final = sys.version_info >= (3, 11, 5)
_POSSESSIVE: Final = re.compile(r"[*+?]\+")
_NEVER: Final = "|(?!)"


def compile_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return `re.compile(pattern, flags)`, whose possessive groups end where they should."""
    return re.compile(pattern if _IS_FIXED else end_groups(pattern), flags)


def end_groups(pattern: str) -> str:
    """Write `|(?!)` at the end of each possessive group of a pattern, `(…|(?!))*+`."""
    written: list[str] = []
    position, in_class = 0, False
    while position < len(pattern):
        length = 1
        match pattern[position]:
            case "\\":
                length = 2
            case "[" if not in_class:
                in_class = True
                length += pattern[position + 1] == "^"
                length += pattern[position + length] == "]"  # here it is no end
            case "]":
                in_class = False
            case ")" if not in_class and _POSSESSIVE.match(pattern, position + 1):
                written.append(_NEVER)
        written.append(pattern[position : position + length])
        position += length
    return "".join(written)

"""Number of restarts that a command gives to torchrun: `--max-restarts`, which comes before variables.

Source: torch.distributed.run.  Its own options end at the script; what follows is the script's.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

_LAUNCHERS: Final = frozenset({"torchrun", "torch.distributed.run", "torch.distributed.launch"})
_FLAGS: Final = frozenset({"m", "module", "no-python", "run-path", "standalone", "use-env"})
"""Options without a value."""

_OPTION: Final = "max-restarts"
_ENDS: Final = frozenset({"|", "||", "&", "&&", ";", "(", ")", "\n"})
_DIGITS: Final = 6


def find_max_restarts(command: str) -> int | None:
    """Return the last number of restarts that a shell command gives to torchrun; None where it gives none."""
    try:
        lexer = shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars="();<>|&\n")
        lexer.whitespace = " \t\r"
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:  # a quotation without end
        return None
    starts = [at + 1 for at, word in enumerate(words) if word.rpartition("/")[2] in _LAUNCHERS]
    values = [value for at in starts for value in _list_values(words[at:])]
    fitting = [value for value in values if value.isascii() and value.isdecimal() and len(value) <= _DIGITS]
    return int(fitting[-1]) if fitting else None


def _list_values(words: Sequence[str]) -> Iterator[str]:
    """Yield the values of the option among torchrun's own words."""
    rest = iter(words)
    for word in rest:
        if word in _ENDS or not word.startswith("-"):
            return
        name, is_joined, value = word.lstrip("-").replace("_", "-").partition("=")
        if not is_joined and name not in _FLAGS:
            value = next(rest, "")
        if name == _OPTION:
            yield value

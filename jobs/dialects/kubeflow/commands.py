"""A container's command and arguments ↔ the command line of a role.

Kubernetes runs words without a shell, and replaces `$(NAME)` in them by variables that it knows; `$$` is a
dollar sign.  A role's command is a shell's.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence
from typing import Final

SHELL: Final = ("/bin/bash", "-c")
"""What runs a role's command; the images of frameworks all have it."""

_SHELLS: Final = frozenset({"sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/bash", "/usr/bin/sh"})
_REFERENCE: Final = re.compile(r"\$\$|\$\((?P<name>[A-Za-z_][A-Za-z0-9_.\-]*)\)")
_DOLLARS: Final = re.compile(r"\$(?=\$)|\$(?=\((?P<name>[A-Za-z_][A-Za-z0-9_.\-]*)\))")


def shell(command: Sequence[str], args: Sequence[str], known: Collection[str]) -> str:
    """The command line that does what `command` and `args` do; `known` are the container's variables."""
    words = [*command, *args]
    script = _script(words)
    if script is not None:
        return _expanded(script, known)
    return " ".join(_word(word, known) for word in words)


def words(command: str, known: Collection[str]) -> list[str]:
    """A container's command that runs a role's."""

    def escaped(match: re.Match[str]) -> str:
        name = match["name"]
        return "$$" if name is None or _is_known(name, known) else "$"

    return [*SHELL, _DOLLARS.sub(escaped, command)]


def _script(words: Sequence[str]) -> str | None:
    """What a shell is told to run, when that is all that the words say."""
    if len(words) == 3 and words[0] in _SHELLS and words[1] == "-c":
        return words[2]
    return None


def _is_known(name: str, known: Collection[str]) -> bool:
    """Whether the cluster replaces `$(name)`; the operators set variables of their own, in capitals."""
    return name in known or name.isupper()


def _expanded(script: str, known: Collection[str]) -> str:
    """A script with the shell's variables where the cluster would have put values."""

    def replaced(match: re.Match[str]) -> str:
        name = match["name"]
        if name is None:
            return "$"
        return f"${{{name}}}" if _is_known(name, known) else match[0]

    return _REFERENCE.sub(replaced, script)


def _word(word: str, known: Collection[str]) -> str:
    """One word in quotes, variables outside of them."""
    parts: list[str] = []
    done = 0
    for match in _REFERENCE.finditer(word):
        name = match["name"]
        if name is not None and not _is_known(name, known):
            continue
        parts.append(word[done : match.start()])
        parts.append("$" if name is None else f'"${{{name}}}"')
        done = match.end()
    if not parts:
        return shlex.quote(word)
    parts.append(word[done:])
    return "".join(
        part if part.startswith('"${') and part.endswith('}"') else shlex.quote(part)
        for part in parts
        if part
    )

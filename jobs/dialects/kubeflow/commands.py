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


def join(command: Sequence[str], args: Sequence[str], known: Collection[str]) -> str:
    """Return the command line that does what `command` and `args` do; `known` are variables there."""
    words = [*command, *args]
    if len(words) == 3 and words[0] in _SHELLS and words[1] == "-c":
        return _expand(words[2], known)
    return " ".join(_quote(word, known) for word in words)


def split(command: str, known: Collection[str]) -> list[str]:
    """Return a container's command that runs the command line of a role."""

    def escape(match: re.Match[str]) -> str:
        name = match["name"]
        return "$$" if name is None or _is_known(name, known) else "$"

    return [*SHELL, _DOLLARS.sub(escape, command)]


def _is_known(name: str, known: Collection[str]) -> bool:
    """Tell whether the cluster replaces `$(name)`; the operators set variables of their own, in capitals."""
    return name in known or name.isupper()


def _expand(script: str, known: Collection[str]) -> str:
    """Return a script with the shell's variables where the cluster would have put values."""

    def replace(match: re.Match[str]) -> str:
        name = match["name"]
        if name is None:
            return "$"
        return f"${{{name}}}" if _is_known(name, known) else match[0]

    return _REFERENCE.sub(replace, script)


def _quote(word: str, known: Collection[str]) -> str:
    """Return one word in quotes, variables outside of them."""
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

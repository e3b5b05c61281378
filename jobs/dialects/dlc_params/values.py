"""Values of parameter files: lists, mounts and commands on one line, read and written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_BREAKS: Final = re.compile(r"[\r\n]+")
_CONSTRAINT: Final = re.compile(r"\s*(?:[<>=!~]|\[)")
_ENCODED: Final = re.compile(r"eval \"\$\(printf '%b' '(?P<text>.*)'\)\"", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_MEANS: Final = {"n": "\n", "r": "\r", "\\": "\\"}


def words(text: str) -> list[str]:
    """Words with commas between; a version's further bounds (`torch>=1,<2`) belong to the word before."""
    found: list[list[str]] = []
    for part in text.split(","):
        if found and _CONSTRAINT.match(part):
            found[-1].append(part)
        elif part.strip():
            found.append([part.strip()])
    return [",".join(parts) for parts in found]


def mounts(text: str) -> list[dict[str, object]]:
    """`uri::path,uri::path` as elements of DataSources."""
    found: list[dict[str, object]] = []
    for part in text.split(","):
        uri, _, path = part.strip().rpartition("::")
        if part.strip():
            found.append({"Uri": uri or path, **({"MountPath": path} if uri else {})})
    return found


def written_mounts(sources: Iterable[tuple[str, str]]) -> str:
    """(uri, path) pairs in one string."""
    return ",".join(f"{uri}::{path}" if path else uri for uri, path in sources)


def on_one_line(text: str) -> str:
    """`text` without line breaks, which no value can hold."""
    return _BREAKS.sub(" ", text)


def written_command(command: str, blanks: str) -> str:
    """A command on one line; one that has several is handed to the shell by `printf`, which any has."""
    if command == command.strip(blanks) and not _BREAKS.search(command) and not _ENCODED.fullmatch(command):
        return command
    escaped = command.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    quoted = escaped.replace("'", "'\\''")
    return f"eval \"$(printf '%b' '{quoted}')\""


def command(text: str) -> str:
    """The command that `written_command` wrote, or `text` itself."""
    match = _ENCODED.fullmatch(text)
    if not match:
        return text
    plain = match["text"].replace("'\\''", "'")
    if any(found[1] not in _MEANS for found in _ESCAPED.finditer(plain)):
        return text
    return _ESCAPED.sub(lambda found: _MEANS[found[1]], plain)

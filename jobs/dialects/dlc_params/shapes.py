"""Shapes of values in a parameter file, each read into a request's value and written on one line."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from jobs.dialects import pairs
from jobs.dialects.objects import as_list, as_object

BLANKS: Final = " \t\u00a0\u3000\ufeff"

_BREAKS: Final = re.compile(r"[\r\n]+")
_CONSTRAINT: Final = re.compile(r"\s*(?:[<>=!~]|\[)")
_ENCODED: Final = re.compile(r"eval \"\$\(printf '%b' '(?P<text>.*)'\)\"", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_TRUTH: Final = {"true": 1, "false": 0}
_MEANS: Final = {"n": "\n", "r": "\r", "\\": "\\"}


def _read_words(text: str) -> list[str]:
    """Return words with commas between; further bounds of a version (`torch>=1,<2`) belong to its word."""
    found: list[list[str]] = []
    for part in text.split(","):
        if found and _CONSTRAINT.match(part):
            found[-1].append(part)
        elif part.strip():
            found.append([part.strip()])
    return [",".join(parts) for parts in found]


def _read_mounts(text: str) -> list[dict[str, object]]:
    """Return `uri::path,uri::path` as elements of DataSources."""
    found: list[dict[str, object]] = []
    for part in text.split(","):
        uri, _, path = part.strip().rpartition("::")
        if part.strip():
            found.append({"Uri": uri or path, **({"MountPath": path} if uri else {})})
    return found


def write_command(command: str, blanks: str = BLANKS) -> str:
    """Return a command on one line; several lines are handed to the shell by `printf`, which any has."""
    if command == command.strip(blanks) and not _BREAKS.search(command) and not _ENCODED.fullmatch(command):
        return command
    escaped = command.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    quoted = escaped.replace("'", "'\\''")
    return f"eval \"$(printf '%b' '{quoted}')\""


def _read_command(text: str) -> str:
    """Return the command that `write_command` wrote, or `text` itself."""
    match = _ENCODED.fullmatch(text)
    if not match:
        return text
    plain = match["text"].replace("'\\''", "'")
    if any(found[1] not in _MEANS for found in _ESCAPED.finditer(plain)):
        return text
    return _ESCAPED.sub(lambda found: _MEANS[found[1]], plain)


def write_text(value: object) -> str:
    """Return a value without line breaks, which no value can hold, and blanks around it; "" for nothing."""
    return _BREAKS.sub(" ", str(value)).strip(BLANKS) if value else ""


def _read_number(text: str) -> object:
    """Return a number; any other text stays, and is told by the request's rules."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else text


def _write_mounts(sources: object) -> str:
    direct = [each for each in as_list(sources) if "DataSourceId" not in each]
    places = (
        f"{each['Uri']}::{each['MountPath']}" if "MountPath" in each else each["Uri"] for each in direct
    )
    return write_text(",".join(places))


@dataclass(frozen=True, slots=True, eq=False)
class ValueShape:
    """A way to write values; `write` returns "" for nothing.  Each is known by its identity.

    A `scalar` is the text of one value, which a fix may replace.
    """

    read: Callable[[str], Any]
    write: Callable[[Any], str] = write_text
    scalar: bool = False


TEXT: Final = ValueShape(str, scalar=True)
NUMBER: Final = ValueShape(
    _read_number, lambda value: str(value) if isinstance(value, int) and value else "", True
)
FLAG: Final = ValueShape(lambda text: _TRUTH.get(text.lower(), _read_number(text)), lambda _value: "true")
"""The number of a role of which there is at most one."""

LIST: Final = ValueShape(_read_words, lambda value: write_text(",".join(map(str, as_list(value)))))
PAIRS: Final = ValueShape(
    pairs.parse,
    lambda value: write_text(
        pairs.to_text({str(name): str(each) for name, each in as_object(value).items()})
    ),
)
"""`k=v,k=v`."""

IDS: Final = ValueShape(
    lambda text: [{"DataSourceId": name} for name in _read_words(text)],
    lambda value: write_text(
        ",".join(each["DataSourceId"] for each in value or () if "DataSourceId" in each)
    ),
)
"""Ids of datasets, with commas between."""

MOUNTS: Final = ValueShape(_read_mounts, _write_mounts)
"""`uri::path`, with commas between."""

COMMAND: Final = ValueShape(_read_command, lambda value: write_command(str(value)) if value else "", True)
"""A shell command on one line."""

AIMASTER: Final = ValueShape(str, scalar=True)
"""Arguments; having them switches the AIMaster on."""

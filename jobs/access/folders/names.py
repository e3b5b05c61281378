"""Names of files: bytes that may be no text, on their way through addresses, forms, pages and headers.

Inside, a name is a string with lone surrogates for what is no UTF-8; in an address and a form it is
percent-encoded; on a page whatever would deceive or disturb is spelled out.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final
from urllib.parse import parse_qsl, quote, unquote

_SPELLED: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_PLAIN: Final = re.compile(r"[^A-Za-z0-9._-]")


def quote_name(name: str) -> str:
    """A name for an address or a form."""
    return quote(name, safe="", errors="surrogateescape")


def unquote_name(text: str) -> str:
    """The name that `quoted` made this of."""
    return unquote(text, errors="surrogateescape")


def way(names: Sequence[str]) -> str:
    """Names on the way, for the parameter `path` of an address."""
    return "/".join(map(quote_name, names))


def query(text: str) -> dict[str, list[str]]:
    """The parameters of an address, with their bytes: Django's own reading loses what is no UTF-8."""
    found: dict[str, list[str]] = {}
    pairs = parse_qsl(text, keep_blank_values=True, errors="surrogateescape", max_num_fields=10_000)
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def parts(path: str) -> list[str]:
    """The names of a path below a root; what is no name among them is refused where it is used."""
    return [part for part in path.split("/") if part]


def legible(name: str) -> str:
    """A name for people: characters that nobody sees, or that turn others around, are spelled out."""
    return "".join(_spell_out(char) for char in name)


def _spell_out(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return rf"\x{code - 0xDC00:02x}"
    category = unicodedata.category(char)
    if category[0] != "C" and category not in {"Zl", "Zp"}:
        return char
    return _SPELLED.get(char) or (rf"\x{code:02x}" if code < 0x100 else rf"\u{code:04x}")


def attachment(name: str) -> str:
    """The header `Content-Disposition` under which a browser keeps a file of that name."""
    safe = legible(name).replace("/", "_").replace("\\", "_") or "file"
    plain = _PLAIN.sub("_", safe)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(safe, safe='')}"

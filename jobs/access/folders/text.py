"""A piece of a file as text to look at, whatever its bytes are and whatever they would do to a terminal."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import Final

PIECE: Final = 64 * 1024
ENCODINGS: Final = ("utf-8", "gb18030", "shift_jis", "euc_jp", "utf-16-le", "utf-16-be", "latin-1")
"""What a person may say it is, where it is taken for something else."""

_DUMPED: Final = 512
_ROW: Final = 16
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_MARK: Final = "\ufeff"
_SEQUENCE: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Text to show; of a binary file (`encoding` empty) a dump.  The next piece begins at `after`."""

    text: str
    encoding: str
    after: int


def piece(data: bytes, first: int, size: int, encoding: str = "") -> TextPiece:
    """`data` from the place `first` of a file of `size` bytes; a line that is cut belongs to the next one."""
    known = encoding if encoding in ENCODINGS else _encoding_of(data)
    if not known:
        return TextPiece(_dump(data[:_DUMPED], first), "", size)
    data = data[:PIECE]
    if first + len(data) < size and not known.startswith("utf-16"):
        line = data.rfind(b"\n") + 1
        data = data[:line] if line else data
    decoder = codecs.getincrementaldecoder(known)("replace")
    last = first + len(data) >= size
    text = decoder.decode(data, last)
    text = text.removeprefix(_MARK) if first == 0 else text
    rest = 0 if last else len(decoder.getstate()[0])
    return TextPiece(harmless(text), known, first + len(data) - rest)


def _encoding_of(data: bytes) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    if b"\0" in data:
        return ""
    for encoding in ("utf-8", "gb18030"):
        try:
            codecs.getincrementaldecoder(encoding)("strict").decode(data)
        except UnicodeDecodeError:
            continue
        return encoding
    return "latin-1"


def harmless(text: str) -> str:
    """Without colours and orders for a terminal; every other control character as a picture of itself."""
    text = _SEQUENCE.sub("", text.replace("\r\n", "\n")).replace("\r", "\n")
    return _CONTROL.sub(_replace_control, text)


def _replace_control(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"\\u{code:04x}"


def _dump(data: bytes, first: int) -> str:
    rows = []
    for at in range(0, len(data), _ROW):
        row = data[at : at + _ROW]
        shown = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        rows.append(f"{first + at:08x}  {row.hex(' '):<47}  {shown}")
    return "\n".join(rows)

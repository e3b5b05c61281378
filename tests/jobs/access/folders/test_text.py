"""Files as text to look at."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.access.folders import text


def read(data: bytes, encoding: str = "") -> str:
    """All of it, piece by piece, as the page asks."""
    shown, at = "", 0
    while True:
        piece = text.piece(data[at : at + text.PIECE], at, len(data), encoding)
        assert piece.after > at or not data
        shown, at, encoding = shown + piece.text, piece.after, piece.encoding
        if at >= len(data):
            return shown


@pytest.mark.parametrize(
    ("written", "encoding"),
    [("utf-8", ""), ("utf-8-sig", ""), ("gb18030", ""), ("utf-16", ""), ("shift_jis", "shift_jis")],
)
def test_text_pieces_joined_equal_the_whole_text(written: str, encoding: str) -> None:
    said = "".join(f"第{number}行 日本語\n" for number in range(20_000))
    assert read(said.encode(written), encoding) == said


def test_text_line_without_end_is_cut_between_characters() -> None:
    said = "中文" * 60_000
    assert read(said.encode()) == said


def test_binary_bytes_show_as_a_few_hex_rows() -> None:
    piece = text.piece(bytes(range(256)) * 300, 0, 76_800)
    assert (piece.encoding, piece.after) == ("", 76_800)
    assert piece.text.splitlines()[0].startswith("00000000  00 01 02")
    assert len(piece.text.splitlines()) == 32


@given(st.text())
def test_harmless_text_contains_no_terminal_control_sequence(said: str) -> None:
    shown = text.harmless(said)
    assert all(char >= " " or char in "\n\t" for char in shown)
    assert not set("\x7f\x9b\u202e\u2066") & set(shown)


def test_harmless_text_drops_colours_and_keeps_the_rest() -> None:
    said = "\x1b[1;31mred\x1b[0m \x1b]0;title\x07\x1b[2Jend\r\n50%\r100%\x07"
    assert text.harmless(said) == "red end\n50%\n100%␇"

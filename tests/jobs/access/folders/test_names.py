"""Names on their way: nothing is lost, and nothing deceives."""

from __future__ import annotations

import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.access.folders import names

BYTES = st.binary(min_size=1, max_size=40).filter(lambda raw: b"\0" not in raw and b"/" not in raw)


@given(st.lists(BYTES, min_size=1, max_size=4))
def test_file_names_survive_the_round_trip_through_an_address(parts: list[bytes]) -> None:
    way = [raw.decode("utf-8", "surrogateescape") for raw in parts]
    query = names.query(f"root=work&path={names.way(way)}&sort=name")
    assert names.parts(query["path"][0]) == way
    assert [names.unquote_name(names.quote_name(name)) for name in way] == way
    assert names.way(way).isascii()


@given(BYTES)
def test_legible_name_is_encodable_and_has_no_control_characters(raw: bytes) -> None:
    shown = names.legible(raw.decode("utf-8", "surrogateescape"))
    assert shown.encode()
    assert not re.search("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", shown)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("模型 1.pt", "模型 1.pt"),
        ("a\nb", r"a\nb"),
        ("\udcff", r"\xff"),
        ("\u202egpj.exe", r"\u202egpj.exe"),
        ("\x1b[31m", r"\x1b[31m"),
    ],
)
def test_legible_name_shows_the_expected_text(name: str, shown: str) -> None:
    assert names.legible(name) == shown


@given(BYTES)
def test_attachment_header_has_one_file_name_and_no_line_break(raw: bytes) -> None:
    header = names.attachment(os.fsdecode(raw))
    assert re.fullmatch(
        r"attachment; filename=\"[A-Za-z0-9._-]+\"; filename\*=UTF-8''[A-Za-z0-9._~%-]+", header
    )

"""Reading JSON as people bring it."""

import json
import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.dialects.base import MAX_BYTES, Problem, Refused
from jobs.dialects.document import Document
from jobs.dialects.source import MAX_DEPTH, MAX_VALUES, decode, read
from jobs.dialects.spans import split, walk
from tests.jobs.dialects.strategies import untidy, values


def refused(text: str) -> Problem:
    with pytest.raises(Refused) as caught:
        read(Document(text))
    return caught.value.problems[0]


def at(value: Any, pointer: str) -> Any:
    for token in split(pointer):
        value = value[int(token)] if isinstance(value, list) else value[token]
    return value


@given(values, st.sampled_from([None, 1, 2]), st.booleans())
def test_json_reader_matches_standard_library(value: Any, indent: int | None, ascii_: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_)
    source = read(Document(text))
    assert source.value == json.loads(text)
    assert source.notes == ()


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), values, min_size=1), st.data())
def test_json_reader_reads_untidy_json_as_same_value(value: Any, data: st.DataObject) -> None:
    text = data.draw(st.composite(lambda draw: untidy(json.dumps(value, indent=2), draw))())
    assert read(Document(text)).value == value


@given(values)
def test_json_reader_locates_every_value(value: Any) -> None:
    source = read(Document(json.dumps(value, indent=1)))
    for pointer, node in walk(source.tree):
        assert json.loads(source.text[node.start : node.end]) == at(value, pointer)


def test_json_positions_count_lines_and_code_points() -> None:
    source = read(Document('{\r\n"名称": "x",\r"b": [1,\n 2]}'))
    assert source.position("/名称") == (2, 7)
    assert source.position("/名称", key=True) == (2, 1)
    assert source.position("/b/1") == (4, 2)
    assert source.position("/b/7") == (3, 6), "what is missing is shown at what should hold it"
    assert read(Document('\ufeff{"a": 1}')).position("/a") == (1, 7), "a byte order mark is no column"
    assert read(Document('{"😀": 1}')).position("/😀") == (1, 7), "an emoji is one column"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('\ufeff{"a": 1}', "tolerated_bom"),
        ('{"a": 1} // the end', "tolerated_comments"),
        ('{"a": /* one */ 1}', "tolerated_comments"),
        ('{"a": 1,}', "tolerated_trailing_commas"),
        ('{"a":\u00a01}', "tolerated_spaces"),
        ('1{\n2 "a": 1\n3}', "tolerated_line_numbers"),
    ],
)
def test_json_reader_accepts_unambiguous_flaws_with_a_note(text: str, code: str) -> None:
    source = read(Document(text))
    assert source.value == {"a": 1}
    assert [note.code for note in source.notes] == [code]


def test_json_reader_reads_listing_with_blank_lines_and_touching_numbers() -> None:
    listing = '7{\n8 "a": [\n95,\n1010\n\n11 ],\n12 "b": "c"\n13}'
    assert read(Document(listing)).value == {"a": [5, 10], "b": "c"}
    assert read(Document(listing)).position("/b") == (7, 9)


def test_json_reader_rejects_listing_with_wrong_line_numbers() -> None:
    assert refused('1{\n3 "a": 1\n4}').code == "extra_text"


def test_json_reader_keeps_slashes_and_commas_inside_strings() -> None:
    value = {"url": "http://a/*b*/", "c": ",]", "d": 'a\\"//,}'}
    assert read(Document(json.dumps(value)[:-1] + ",} // x")).value == value


def test_json_reader_keeps_tabs_inside_strings_and_notes_them() -> None:
    source = read(Document('{\t"a": "x\ty"}'))
    assert source.value == {"a": "x\ty"}
    assert [note.code for note in source.notes] == ["tolerated_tabs"]


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("", "empty_text", (1, 1)),
        ('{"a": 1', "unclosed_bracket", (1, 8)),
        ('{"a": [1, 2}', "wrong_bracket", (1, 12)),
        ('{"a": 1}}', "extra_text", (1, 9)),
        ('{"a": 1\n"b": 2}', "missing_comma", (2, 1)),
        ('{"a": 1,, "b": 2}', "extra_comma", (1, 9)),
        ('{"a" 1}', "missing_colon", (1, 6)),
        ('{"a"：1}', "fullwidth_mark", (1, 5)),
        ('{"a": }', "missing_value", (1, 7)),
        ("{'a': 1}", "single_quotes", (1, 2)),
        ("{“a”: 1}", "typographic_quotes", (1, 2)),
        ("{a: 1}", "unquoted_key", (1, 2)),
        ('{"a": True}', "wrong_literal", (1, 7)),
        ('{"a": None}', "wrong_literal", (1, 7)),
        ('{"a": String}', "unquoted_text", (1, 7)),
        ('{"a": 01}', "bad_number", (1, 7)),
        ('{"a": +1}', "bad_number", (1, 7)),
        ('{"a": 1.}', "bad_number", (1, 7)),
        ('{"a": "x\n"}', "unterminated_string", (1, 7)),
        ('{"a": "x', "unterminated_string", (1, 7)),
        ('{"a": "\\d"}', "bad_escape", (1, 8)),
        ('{"a": "\x01"}', "control_character", (1, 8)),
        ('{"a": "\t\x01"}', "control_character", (1, 9)),
        ("# x\n{}", "hash_comment", (1, 1)),
        ("{} /* x", "unclosed_comment", (1, 4)),
        ('{"a": @}', "unexpected_character", (1, 7)),
        ('{"a": NaN}', "not_a_number", (1, 7)),
        ('{"a": -Infinity}', "not_a_number", (1, 7)),
        ('{"a": 1e999}', "number_too_big", (1, 7)),
        ('{"a": "\\u0000"}', "null_character", (1, 7)),
        ('{"a": "\\ud800"}', "lone_surrogate", (1, 7)),
        ('{"\\udc00": 1}', "lone_surrogate", (1, 2)),
        ('{"job\u200bName": 1}', "invisible_key", (1, 2)),
        ('{"job\\u200bName": 1}', "invisible_key", (1, 2)),
        ('{"a": 1,\n "a": 2}', "duplicate_key", (2, 2)),
    ],
)
def test_json_problem_names_cause_and_position(text: str, code: str, place: tuple[int, int]) -> None:
    problem = refused(text)
    assert (problem.code, (problem.line, problem.column)) == (code, place)


def test_json_problem_of_open_bracket_names_its_opening_line() -> None:
    params = refused('{\n "a": [\n 1,\n 2\n').params
    assert (params["bracket"], params["closing"], params["opened_line"]) == ("[", "]", 2)


def test_json_reader_reports_all_repeated_keys_and_bad_numbers_together() -> None:
    with pytest.raises(Refused) as caught:
        read(Document('{"a": {"x": 1, "x": 2}, "b": NaN, "c": 99999999999999999999, "a": 3}'))
    assert [(problem.code, problem.pointer) for problem in caught.value.problems] == [
        ("duplicate_key", "/a"),
        ("not_a_number", "/b"),
        ("number_too_big", "/c"),
    ]


def test_json_reader_joins_surrogate_pair_into_one_character() -> None:
    assert read(Document('{"a": "\\ud83d\\ude00"}')).value == {"a": "😀"}


HOSTILE = {
    "over 1 MiB": "x" * (MAX_BYTES + 1),
    "over 1 MiB of three-byte characters": "作" * (MAX_BYTES // 3 + 1),
    "10,000 lists": "[" * 10_000 + "]" * 10_000,
    "10,000 objects": '{"a":' * 10_000 + "1" + "}" * 10_000,
    "a MiB of brackets": "[" * MAX_BYTES,
    "a MiB of empty lists": "[" + "[]," * 300_000 + "1]",
    "a MiB of comments": "/**/" * 260_000,
    "a MiB of comments and numbers": "/**/1" * 200_000,
    "comments that never end": '{"a": 1, ' + "/* " * 300_000,
    "a MiB of slashes": "/" * MAX_BYTES,
    "a MiB of quotes": '"' * MAX_BYTES,
    "escaped quotes without end": '{"a": "' + '\\"' * 500_000,
    "a MiB of blanks": " " * MAX_BYTES,
    "a MiB of commas": "," * MAX_BYTES,
    "hard spaces": "1\u00a0" * 300_000,
    "an integer of 400 digits": '{"a": ' + "1" * 400 + "}",
    "an integer of a million digits": "1" * MAX_BYTES,
    "a decimal of a million digits": '{"a": 0.' + "1" * 1_000_000 + "e999}",
    "numbered lines": "\n".join(map(str, range(1, 150_000))),
    "repeated keys": "{" + ",".join(['"a": 1'] * (MAX_VALUES - 2)) + "}",
    "tabs and quotes": '{"a":' + '\t"' * 300_000,
    "invisible keys": "{" + ",".join(f'"\u200b{n}": 1' for n in range(20_000)) + "}",
    "half a character": '{"a": "\ud800"}',
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_json_reader_rejects_hostile_text_fast_in_little_memory(text: str) -> None:
    best = min(_seconds(text) for _attempt in range(3))
    tracemalloc.start()
    try:
        refused(text)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert best < 5
    assert most < 50 * 1024 * 1024


def _seconds(text: str) -> float:
    begun = time.process_time()
    refused(text)
    return time.process_time() - begun


def test_json_reader_accepts_text_just_within_limits() -> None:
    assert read(Document("[" * MAX_DEPTH + "]" * MAX_DEPTH)).value
    assert read(Document(json.dumps(list(range(MAX_VALUES - 2))))).value


def test_decode_accepts_only_unicode_within_size_limit() -> None:
    assert decode("作业".encode()) == "作业"
    assert decode("作业".encode("utf-16")) == "作业"
    with pytest.raises(Refused) as caught:
        decode(b'{\n"a": "' + "作业".encode("gb18030"))
    problem = caught.value.problems[0]
    assert (problem.code, problem.line, problem.column) == ("not_unicode", 2, 7)
    with pytest.raises(Refused):
        decode(b"x" * (MAX_BYTES + 1))

"""Reading YAML as people bring it."""

import time
import tracemalloc
from collections.abc import Sequence
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from jobs.dialects.base import MAX_BYTES, Problem, Refused
from jobs.dialects.source import MAX_DEPTH, MAX_VALUES
from jobs.dialects.spans import split, walk
from jobs.dialects.yaml_text.rules import JS_YAML, KUBERNETES
from jobs.dialects.yaml_text.source import read
from tests.jobs.dialects.strategies import values


def value(text: str) -> Any:
    return read(text, JS_YAML).value


def listed(held: object) -> list[object]:
    assert isinstance(held, list)
    return held


def refused(text: str) -> Problem:
    with pytest.raises(Refused) as caught:
        read(text, JS_YAML)
    return caught.value.problems[0]


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), values, min_size=1), st.booleans())
def test_yaml_reader_reads_library_output(held: Any, flow: bool) -> None:
    text = yaml.safe_dump(held, allow_unicode=True, default_flow_style=flow, width=10**6)
    if not any(character in text for character in "\x85\xa0\u2028\u2029\u3000\ufeff"):
        assert value(text) == held


@pytest.mark.parametrize(
    ("word", "to_js_yaml", "to_kubernetes"),
    [
        ("yes", "yes", True),
        ("Off", "Off", False),
        ("n", "n", False),
        ("True", True, True),
        ("~", None, None),
        ("Null", None, None),
        ("010", 8, 8),
        ("08", "08", 8.0),
        ("0o10", "0o10", 8),
        ("0x1F", 31, 31),
        ("-0b11", -3, -3),
        ("1_000", 1000, 1000),
        ("1:30", 90, "1:30"),
        ("1.0", 1.0, 1.0),
        ("1.0-r1.4", "1.0-r1.4", "1.0-r1.4"),
        ("1e3", 1000.0, 1000.0),
        (".5", 0.5, 0.5),
        ("2020-01-01", "2020-01-01", "2020-01-01"),
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
        ("<% $parameters.x %>", "<% $parameters.x %>", "<% $parameters.x %>"),
        ("!!str 12", "12", "12"),
        ('!!int "12"', 12, 12),
        ("'12'", "12", "12"),
    ],
)
def test_yaml_words_mean_the_same_as_in_vendor_parser(
    word: str, to_js_yaml: object, to_kubernetes: object
) -> None:
    for rules, expected in ((JS_YAML, to_js_yaml), (KUBERNETES, to_kubernetes)):
        (held,) = listed(read(f"- {word}", rules).value)
        assert (held, type(held)) == (expected, type(expected))


def test_yaml_keys_are_strings() -> None:
    assert value("1: a\ntrue: b\n~: c\n0x10: d\n'2': e") == {
        "1": "a",
        "true": "b",
        "null": "c",
        "16": "d",
        "2": "e",
    }
    assert read("on: a", KUBERNETES).value == {"true": "a"}


def test_yaml_aliases_are_copied_and_merges_yield_to_own_keys() -> None:
    held = value("a: &x {p: 1, q: [2]}\nb: *x\nc:\n  <<: *x\n  p: 3\nd:\n  q: 0\n  <<: [*x, {r: 4}]\n")
    assert held["b"] == {"p": 1, "q": [2]}
    assert held["b"]["q"] is not held["a"]["q"]
    assert held["c"] == {"p": 3, "q": [2]}
    assert held["d"] == {"q": 0, "p": 1, "r": 4}


@given(values)
def test_yaml_reader_locates_every_value(held: Any) -> None:
    text = yaml.safe_dump({"a": held}, allow_unicode=False, width=10**6)
    source = read(text, JS_YAML)
    for pointer, node in walk(source.tree):
        found: Any = source.value
        for token in split(pointer):
            found = found[int(token)] if isinstance(found, list) else found[token]
        piece = text[node.start : node.end]
        if not isinstance(found, (dict, list)):
            assert value("- " + piece + "\n") == [found]


def test_yaml_positions_count_lines_and_code_points() -> None:
    source = read('名称: x\r\nb:\r\n  - 1\r\n  -   c: "😀"\r\n      d: e # f\r\n', JS_YAML)
    assert source.position("/名称") == (1, 5)
    assert source.position("/名称", key=True) == (1, 1)
    assert source.position("/b/1/d") == (5, 10)
    assert source.position("/b/1", key=True) == (4, 3), "an element begins at its dash"
    assert source.position("/b/7") == (3, 3), "what is missing is shown at what should hold it"
    assert read("\ufeffa: 1\nb: 2", JS_YAML).position("/a") == (1, 4), "a byte order mark is no column"
    assert read("a: &x {b: 1}\nc: *x\nd:\n  <<: *x\n", JS_YAML).position("/d/b") == (1, 11)


def test_yaml_reader_notes_byte_order_mark() -> None:
    assert [note.code for note in read("\ufeffa: 1", JS_YAML).notes] == ["tolerated_bom"]


def test_yaml_reader_of_several_documents_needs_one_picked() -> None:
    text = "# first\n---\na: 1\n---\nb: 2\n---\n"
    problem = refused(text)
    assert (problem.code, problem.line) == ("yaml_documents", 4)
    assert value("---\n---\na: 1\n...\n") == {"a": 1}, "empty ones do not count"

    def last(documents: Sequence[object]) -> int:
        return len(documents) - 1

    source = read(text, JS_YAML, last)
    assert source.value == {"b": 2}
    assert source.position("/b") == (5, 4)


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("", "empty_text", (1, 1)),
        ("# nothing\n", "empty_text", (1, 1)),
        ("a:\n\t- b", "yaml_tab", (2, 1)),
        ("a:\n  b: 1\n\tc: 2", "yaml_tab", (3, 1)),
        ("a: b: c", "yaml_colon", (1, 5)),
        ("a: - b", "yaml_dash", (1, 4)),
        ("a: 1\nb\nc: 2", "yaml_no_colon", (3, 1)),
        ("a:\n  b: 1\n c: 2", "yaml_indentation", (3, 2)),
        ("a:\n  - b\n  c: 2", "yaml_indentation", (3, 3)),
        ("a: [1, 2\nb: 3", "yaml_unclosed", (2, 2)),
        ("a: 'x\nb: 1", "yaml_unclosed_quote", (1, 4)),
        ('a: "\\q"', "yaml_escape", (1, 5)),
        ("a: @b", "yaml_character", (1, 4)),
        ("a: `b`", "yaml_character", (1, 4)),
        ("a: !!python/object:os.system x", "yaml_tag", (1, 4)),
        ("a: !!binary eA==", "yaml_tag", (1, 4)),
        ("a: !x {b: 1}", "yaml_tag", (1, 4)),
        ("a: *b", "yaml_unknown_alias", (1, 4)),
        ("a: &b [*b]", "yaml_alias_of_itself", (1, 8)),
        ("a:\n  <<: 1", "yaml_merge", (2, 7)),
        ("? [a]\n: b", "yaml_complex_key", (1, 3)),
        ("%TAG ! x\n--- a", "yaml_directive", (1, 1)),
        ("a: .nan", "not_a_number", (1, 4)),
        ("a: -.Inf", "not_a_number", (1, 4)),
        ("a: 1e999", "number_too_big", (1, 4)),
        ("a: 99999999999999999999", "number_too_big", (1, 4)),
        ("a: 1\nb: 2\na: 3", "duplicate_key", (3, 1)),
        ('a: "\\0"', "null_character", (1, 4)),
        ("a: \x01", "control_character", (1, 4)),
        ("job\u200bName: 1", "invisible_key", (1, 1)),
        ('"job\\u200bName": 1', "invisible_key", (1, 1)),
        ("a:\n\u00a0\u00a0b: 1", "invisible_key", (2, 1)),
        ("a: \ud800", "lone_surrogate", (1, 4)),
    ],
)
def test_yaml_problem_names_cause_and_position(text: str, code: str, place: tuple[int, int]) -> None:
    problem = refused(text)
    assert (problem.code, (problem.line, problem.column)) == (code, place)
    assert problem.source


def test_yaml_reader_reports_all_repeated_keys_and_bad_numbers_together() -> None:
    with pytest.raises(Refused) as caught:
        read("a: {x: 1, x: 2}\nb: [.nan]\na: 3", JS_YAML)
    assert [(problem.code, problem.pointer) for problem in caught.value.problems] == [
        ("duplicate_key", "/a/x"),
        ("not_a_number", "/b/0"),
        ("duplicate_key", "/a"),
    ]


def nested_aliases() -> str:
    """Each alias shows ten of the one before: ten to the power of ten values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    return "\n".join(lines)


HOSTILE = {
    "over 1 MiB": "x" * (MAX_BYTES + 1),
    "over 1 MiB of three-byte characters": "作" * (MAX_BYTES // 3 + 1),
    "10,000 lists": "a: " + "[" * 10_000 + "]" * 10_000,
    "10,000 dashes": "- " * 10_000 + "a",
    "10,000 objects": "{a: " * 10_000 + "1" + "}" * 10_000,
    "10,000 question marks": "? " * 10_000 + "a",
    "1,000 levels by indentation": "\n".join(" " * n + "a:" for n in range(1000)),
    "a MiB of brackets": "[" * MAX_BYTES,
    "a MiB of dashes": "-" * (MAX_BYTES - 1) + ": [",
    "a MiB of empty lists": "[" + "[]," * 300_000 + "1]",
    "a MiB of elements": "- a\n" * 250_000,
    "a MiB of quotes": '"' * MAX_BYTES,
    "a MiB of single quotes": "'" * (MAX_BYTES - 1),
    "a MiB of comments": "# a\n" * 260_000,
    "a MiB of blanks": " " * MAX_BYTES,
    "a MiB of line breaks": "\n" * MAX_BYTES,
    "a MiB of tabs": "\t" * MAX_BYTES,
    "a MiB of commas": "[" + "," * (MAX_BYTES - 1),
    "a MiB of colons": ":" * MAX_BYTES + " :",
    "a MiB of ampersands": "&a " * 340_000,
    "a MiB of documents": "--- a\n" * 170_000,
    "a MiB of tags": "".join(f"%TAG !a{n}! x\n" for n in range(60_000)),
    "exploding aliases": nested_aliases(),
    "aliases that nest": "\n".join(
        ["a0: &a0 []", *(f"a{n}: &a{n} {'[' * 30}*a{n - 1}{']' * 30}" for n in range(1, 300))]
    ),
    "20,000 anchors": "[" + ", ".join(f"&a{n} 1" for n in range(40_000)) + "]",
    "an integer of 400 digits": "a: " + "1" * 400,
    "an integer of a million digits": "a: " + "1" * 1_000_000,
    "a decimal of a million digits": "a: 0." + "1" * 1_000_000 + "e999",
    "an integer in base 60": "a: 1" + ":59" * 300_000,
    "repeated keys": "a: 1\n" * (MAX_VALUES - 2),
    "invisible keys": "\n".join(f"\u200b{n}: 1" for n in range(20_000)),
    "merges of merges": "a: &a {" + ", ".join(f"k{n}: 1" for n in range(1000)) + "}\n"
    + "\n".join(f"b{n}: {{<<: *a}}" for n in range(1000)),
    "a key of a MiB": "a" * 1_000_000 + ": 1",
    "half a character": "a: \ud800",
}  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_yaml_reader_rejects_hostile_text_fast_in_little_memory(text: str) -> None:
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


def test_yaml_reader_accepts_text_just_within_limits() -> None:
    assert value("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    assert value("- a\n" * (MAX_VALUES - 1))


@given(st.text() | st.text("ab:-?[]{}#&*!|>'\"%@`,\n \t0~<", max_size=40))
def test_yaml_reader_reads_or_rejects_any_text_with_position(text: str) -> None:
    try:
        source = read(text, JS_YAML)
    except Refused as refusal:
        problems = refusal.problems
    else:
        problems = ()
        assert all(source.position(pointer) for pointer, _node in walk(source.tree))
    assert all(problem.line and problem.column for problem in problems)

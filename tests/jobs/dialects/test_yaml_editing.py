"""Changing values of a YAML text and nothing else of it, and writing YAML that people like to read."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from jobs.dialects import documents
from jobs.dialects.base import Fix, Refused
from jobs.dialects.document import Document
from jobs.dialects.edit import RemoveValue, SetValue
from jobs.dialects.spans import escape, walk
from jobs.dialects.yaml_text import source
from jobs.dialects.yaml_text.editor import apply_changes
from jobs.dialects.yaml_text.editor import edit as edit_by
from jobs.dialects.yaml_text.emitter import write
from jobs.dialects.yaml_text.rules import JS_YAML, KUBERNETES
from jobs.dialects.yaml_text.source import read
from tests.jobs.dialects.strategies import json_keys, texts, values

TEXT = """\
# ours
name: a   # a comment
tasks:
  - cpu: 1
    command: 'x'
  # the second
  - cpu: 2
env: {}
flow: {a: 1, b: [x, "y"]}
none:
script: |   # keep
  one
  two

# about the last
last: true
"""


def edit(text: str, changes: list[SetValue | RemoveValue]) -> str:
    return edit_by(read(text, JS_YAML), changes)


@pytest.mark.parametrize(
    ("change", "old", "new"),
    [
        (SetValue("/name", "b"), "name: a ", "name: b "),
        (SetValue("/name", "x: y"), "name: a ", "name: 'x: y' "),
        (SetValue("/name", "yes"), "name: a ", "name: 'yes' "),
        (SetValue("/name", None), "name: a ", "name: null "),
        (SetValue("/name", "x\ny"), "name: a   # a comment\n", "name: |-   # a comment\n  x\n  y\n"),
        (SetValue("/name", ["x"]), "name: a   # a comment\n", "name:   # a comment\n  - x\n"),
        (SetValue("/tasks/0/cpu", 8), "cpu: 1", "cpu: 8"),
        (SetValue("/tasks/0/command", "y"), "'x'", "'y'"),
        (SetValue("/tasks/0/command", "a\nb\n"), "command: 'x'\n", "command: |\n      a\n      b\n"),
        (SetValue("/tasks/1/gpu", 1), "- cpu: 2\n", "- cpu: 2\n    gpu: 1\n"),
        (SetValue("/tasks/1", "z"), "- cpu: 2\n", "- z\n"),
        (SetValue("/new", "ü"), "last: true\n", "last: true\nnew: ü\n"),
        (
            SetValue("/new", {"a": [], "b": [{"c": 1, "d": 2}]}),
            "last: true\n",
            "last: true\nnew:\n  a: []\n  b:\n    - c: 1\n      d: 2\n",
        ),
        (SetValue("/env/A", "1"), "env: {}\n", "env:\n  A: '1'\n"),
        (SetValue("/none", "x"), "none:\n", "none: x\n"),
        (SetValue("/none", {"a": 1}), "none:\n", "none:\n  a: 1\n"),
        (SetValue("/flow/a", "x, y"), "a: 1", "a: 'x, y'"),
        (SetValue("/flow/c", 3), '"y"]}', '"y"], c: 3}'),
        (SetValue("/flow/b/-", {"k": "v"}), '"y"]', '"y", {k: v}]'),
        (SetValue("/script", "one"), "script: |   # keep\n  one\n  two\n", "script: one\n"),
        (SetValue("/tasks/-", {"cpu": 3}), "- cpu: 2\n", "- cpu: 2\n  - cpu: 3\n"),
        (SetValue("/tasks", [{"cpu": 1, "command": "x"}, {"cpu": 9}]), "- cpu: 2\n", "- cpu: 9\n"),
        (
            SetValue("/tasks", [{"cpu": 0}, {"cpu": 1, "command": "x"}, {"cpu": 2}]),
            "  - cpu: 1\n",
            "  - cpu: 0\n  - cpu: 1\n",
        ),
        (SetValue("/flow", {"a": 1, "b": ["z", "x", "y"]}), "b: [x", "b: [z, x"),
        (SetValue("/tasks", [{"cpu": 2}]), "tasks:\n  - cpu: 1\n    command: 'x'\n", "tasks:\n"),
        (RemoveValue("/name"), "name: a   # a comment\n", "# a comment\n"),
        (RemoveValue("/env"), "env: {}\n", ""),
        (RemoveValue("/tasks/0/cpu"), "cpu: 1\n    ", ""),
        (RemoveValue("/tasks/0/command"), "    command: 'x'\n", ""),
        (RemoveValue("/tasks/1"), "  - cpu: 2\n", ""),
        (RemoveValue("/flow/a"), "a: 1, ", ""),
        (RemoveValue("/flow/b"), ', b: [x, "y"]', ""),
        (RemoveValue("/last"), "last: true\n", ""),
        (RemoveValue("/none"), "none:\n", ""),
        (RemoveValue("/script"), "script: |   # keep\n  one\n  two\n", ""),
    ],
)
@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
def test_yaml_edit_changes_only_its_place(
    change: SetValue | RemoveValue, old: str, new: str, line_break: str
) -> None:
    assert TEXT.count(old) == 1
    before, after = (text.replace("\n", line_break) for text in (TEXT, TEXT.replace(old, new)))
    assert edit(before, [change]) == after


def test_yaml_edit_removes_all_list_elements() -> None:
    none = edit(TEXT, [RemoveValue("/tasks/0"), RemoveValue("/tasks/1")])
    assert "tasks: []\n" in none
    assert read(none, JS_YAML).value == {**_value(TEXT), "tasks": []}


def test_yaml_edit_ends_last_line_without_break() -> None:
    assert edit("a: 1", [SetValue("/b", 2)]) == "a: 1\nb: 2"


def test_yaml_edit_keeps_unindented_lists_unindented() -> None:
    assert edit("a:\n- x\nb: 1\n", [SetValue("/a/-", "z")]) == "a:\n- x\n- z\nb: 1\n"


def test_yaml_edit_of_alias_leaves_its_anchor_unchanged() -> None:
    text = "a: &a {x: 1}\nb: *a\nc:\n  <<: *a\n"
    assert _value(edit(text, [SetValue("/b/x", 2)])) == {"a": {"x": 1}, "b": {"x": 2}, "c": {"x": 1}}
    assert edit(text, [SetValue("/c/x", 2)]) == text + "  x: 2\n"
    assert _value(edit(text, [RemoveValue("/c/x")])) == {"a": {"x": 1}, "b": {"x": 1}, "c": {}}
    assert edit(text, [SetValue("/b", 1)]) == text.replace("*a\nc", "1\nc")


def test_yaml_edit_changes_only_picked_document() -> None:
    text = "a: 1\n---\nb: 2 # two\n---\nc: 3\n"
    assert edit_by(read(text, JS_YAML, lambda _all: 1), [SetValue("/b", 5)], lambda _all: 1) == text.replace(
        "2 #", "5 #"
    )


def test_yaml_edit_ignores_missing_places() -> None:
    assert (
        edit(TEXT, [SetValue("/no/such", 1), RemoveValue("/gone"), SetValue("/tasks/7", 1), SetValue("", 1)])
        == TEXT
    )


def test_apply_fixes_replaces_and_removes_with_last_fix_winning() -> None:
    fixes = [Fix("/name", "b"), Fix("/name", "c"), Fix("/last")]
    fixed = documents.apply_fixes(Document(TEXT), fixes, JS_YAML)
    assert fixed == TEXT.replace("name: a", "name: c").replace("last: true\n", "")
    assert documents.apply_fixes(Document('{"a": 1, }'), [Fix("/a", 2)], JS_YAML) == '{"a": 2, }'
    assert documents.apply_fixes(Document("{a: 1, b: 'x'}"), [Fix("/a", 2)], JS_YAML) == "{a: 2, b: 'x'}"


def test_rename_changes_keys_in_place() -> None:
    names = {"/name": "on", "/tasks/1/cpu": "cpus", "/flow/a": "x: y", "/gone": "b"}
    renamed = documents.rename(Document(TEXT), names, JS_YAML)
    expected = (
        TEXT.replace("name: a", '"on": a').replace("- cpu: 2", "- cpus: 2").replace("{a: 1", '{"x: y": 1')
    )
    assert renamed == expected
    assert documents.rename(Document('{"a": {"b": 1}, }'), {"/a/b": "ü"}, JS_YAML) == '{"a": {"ü": 1}, }'


def test_apply_fixes_rejects_unreadable_text() -> None:
    with pytest.raises(Refused):
        documents.apply_fixes(Document("a: ["), [Fix("/a", 1)], JS_YAML)


@st.composite
def yaml_texts(draw: st.DrawFn, held: Any) -> str:
    """`held` as people or libraries write it."""
    style = draw(st.sampled_from(["ours", "block", "flow", "mixed", "json"]))
    if style == "ours":
        return write(held)
    if style == "json":
        text = json.dumps(held, indent=draw(st.sampled_from([None, 2])), ensure_ascii=False)
    else:
        flow = {"block": False, "flow": True, "mixed": None}[style]
        text = yaml.safe_dump(
            held, allow_unicode=draw(st.booleans()), default_flow_style=flow, sort_keys=False
        )
    assume(source.forbidden(text) is None and not any(mark in text for mark in "\x85\xa0\u2028\u2029\u3000"))
    return text


@given(st.dictionaries(json_keys, values, min_size=1, max_size=5), st.data())
def test_yaml_edit_of_any_text_matches_edit_of_its_value(value: dict[str, Any], data: st.DataObject) -> None:
    text = data.draw(yaml_texts(value))
    source = read(text, JS_YAML)
    assume(source.value == value)
    pointers = [pointer for pointer, _node in walk(source.tree) if pointer]
    chosen = data.draw(st.lists(st.sampled_from(pointers), max_size=3, unique=True))
    changes = [
        data.draw(st.builds(RemoveValue, st.just(pointer)) | st.builds(SetValue, st.just(pointer), values))
        for pointer in chosen
    ]
    added = data.draw(st.dictionaries(json_keys.filter(lambda key: key not in value), values, max_size=2))
    changes += [SetValue(f"/{escape(key)}", new) for key, new in added.items()]
    assert read(edit(text, changes), JS_YAML).value == apply_changes(value, changes)


long_texts = st.lists(texts | st.sampled_from(["", " ", "  x", "# y", "- z", "a: b", "\t", "%x", "---"])).map(
    "\n".join
)


@given(st.dictionaries(json_keys, values | long_texts, min_size=1))
def test_yaml_writer_output_is_readable_by_every_parser(value: dict[str, Any]) -> None:
    text = write(value)
    assert read(text, JS_YAML).value == value
    assert read(text, KUBERNETES).value == value
    assert yaml.safe_load(text) == value


@given(long_texts)
def test_yaml_writer_round_trips_text_at_any_position(text: str) -> None:
    held = {"a": text, "b": [text, [text]], "c": {"d": [{"e": text}]}}
    assert read(write(held), JS_YAML).value == held
    assert read(edit("a: 1 # x\nb: []\n", [SetValue("/a", text), SetValue("/b", [text])]), JS_YAML).value == {
        "a": text,
        "b": [text],
    }


def test_yaml_writer_writes_scripts_as_blocks_and_words_unquoted() -> None:
    held = {
        "name": "train",
        "version": "1.0",
        "commands": ["echo a\nif b; then\n  c\nfi\n", "python x.py --lr 0.1", "a: b", "- x", ""],
        "roles": {"w": {"ports": {}, "on": None, "cpu": 1.5}},
    }
    assert write(held) == (
        "name: train\n"
        "version: '1.0'\n"
        "commands:\n"
        "  - |\n"
        "    echo a\n"
        "    if b; then\n"
        "      c\n"
        "    fi\n"
        "  - python x.py --lr 0.1\n"
        "  - 'a: b'\n"
        "  - '- x'\n"
        "  - ''\n"
        "roles:\n"
        "  w:\n"
        "    ports: {}\n"
        '    "on": null\n'
        "    cpu: 1.5\n"
    )


def _value(text: str) -> dict[str, Any]:
    value = read(text, JS_YAML).value
    assert isinstance(value, dict)
    return value

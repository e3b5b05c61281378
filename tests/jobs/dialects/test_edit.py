"""Changing values of a text and nothing else of it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.dialects.base import Fix, Refused
from jobs.dialects.document import Document
from jobs.dialects.edit import RemoveValue, SetValue, apply_fixes, edit
from jobs.dialects.source import read
from jobs.dialects.spans import escape, split, walk
from tests.jobs.dialects.strategies import json_keys, untidy, values

TEXT = """{
  // whose job this is
  "name": "a", // a comment
  "tasks": [
    {"cpu": 1, "command": "x"},
    {"cpu": 2}  /* the second */
  ],
  "env": {},
  "last": true,
}
"""


def test_edit_replaces_value_in_place() -> None:
    assert edit(Document(TEXT), [SetValue("/tasks/0/cpu", 8)]) == TEXT.replace('"cpu": 1', '"cpu": 8')


def test_edit_adds_missing_key_in_style_of_neighbours() -> None:
    assert edit(Document(TEXT), [SetValue("/tasks/1/gpu", 1)]) == TEXT.replace(
        '{"cpu": 2}', '{"cpu": 2, "gpu": 1}'
    )
    assert edit(Document(TEXT), [SetValue("/new", "ü")]) == TEXT.replace(
        '"last": true,', '"last": true,\n  "new": "ü",'
    )
    assert edit(Document(TEXT), [SetValue("/env/A", "1")]) == TEXT.replace(
        '"env": {}', '"env": {\n    "A": "1"\n  }'
    )


def test_edit_removes_key_with_line_and_comma_and_keeps_comments() -> None:
    assert edit(Document(TEXT), [RemoveValue("/env")]) == TEXT.replace('  "env": {},\n', "")
    assert edit(Document(TEXT), [RemoveValue("/tasks/0/command")]) == TEXT.replace(
        '{"cpu": 1, "command": "x"}', '{"cpu": 1}'
    )
    assert "// whose job" in edit(Document(TEXT), [RemoveValue("/name")])
    assert "// a comment" in edit(Document(TEXT), [RemoveValue("/name")])


def test_edit_adds_and_removes_elements() -> None:
    both = edit(Document(TEXT), [RemoveValue("/tasks/1"), SetValue("/tasks/-", {"cpu": 3})])
    assert _value(both)["tasks"] == [{"cpu": 1, "command": "x"}, {"cpu": 3}]
    assert "/* the second */" in both
    none = edit(Document(TEXT), [RemoveValue("/tasks/0"), RemoveValue("/tasks/1")])
    assert _value(none)["tasks"] == []


def test_edit_skips_changes_inside_removed_values() -> None:
    changed = edit(Document(TEXT), [SetValue("/tasks/0/cpu", 9), RemoveValue("/tasks")])
    assert read(Document(changed)).value == {"name": "a", "env": {}, "last": True}


def test_edit_ignores_missing_places() -> None:
    assert (
        edit(
            Document(TEXT),
            [SetValue("/no/such", 1), RemoveValue("/gone"), SetValue("/tasks/7", 1), SetValue("", 1)],
        )
        == TEXT
    )


def test_edit_adding_line_removes_listing_numbers() -> None:
    listing = '1{\n2 "a": 1\n3}'
    assert edit(Document(listing), []) == listing
    assert edit(Document(listing), [SetValue("/b", 2)]) == '{\n "a": 1,\n "b": 2\n}'


def test_apply_fixes_replaces_and_removes_and_last_fix_wins() -> None:
    fixes = [Fix("/name", "b"), Fix("/name", "c"), Fix("/last")]
    wanted = {**_value(TEXT), "name": "c"}
    del wanted["last"]
    assert _value(apply_fixes(Document(TEXT), fixes)) == wanted


def test_apply_fixes_refuses_unreadable_text() -> None:
    with pytest.raises(Refused):
        apply_fixes(Document("{"), [Fix("/a", 1)])


@given(st.dictionaries(json_keys, values, min_size=1, max_size=5), st.data())
def test_edit_of_any_text_matches_edit_of_its_value(value: dict[str, Any], data: st.DataObject) -> None:
    text = data.draw(st.composite(lambda draw: untidy(json.dumps(value, indent=2), draw))())
    pointers = [pointer for pointer, _node in walk(read(Document(text)).tree) if pointer]
    chosen = data.draw(st.lists(st.sampled_from(pointers), max_size=3, unique=True))
    changes = [
        data.draw(st.builds(RemoveValue, st.just(pointer)) | st.builds(SetValue, st.just(pointer), values))
        for pointer in chosen
    ]
    added = data.draw(st.dictionaries(json_keys.filter(lambda key: key not in value), values, max_size=2))
    changes += [SetValue(f"/{escape(key)}", new) for key, new in added.items()]
    assert read(Document(edit(Document(text), changes))).value == _changed(value, changes)


def _changed(value: Any, changes: list[SetValue | RemoveValue]) -> Any:
    """The same edits on the value: all places as they were before, outer ones before inner ones."""
    gone = object()
    value = json.loads(json.dumps(value))
    for change in sorted(changes, key=lambda each: each.pointer.count("/"), reverse=True):
        tokens = split(change.pointer)
        where = value
        for token in tokens[:-1]:
            where = where[int(token)] if isinstance(where, list) else where[token]
        last: Any = int(tokens[-1]) if isinstance(where, list) else tokens[-1]
        where[last] = gone if isinstance(change, RemoveValue) else change.value
    return _without(value, gone)


def _without(value: Any, gone: object) -> Any:
    if isinstance(value, dict):
        return {key: _without(each, gone) for key, each in value.items() if each is not gone}
    if isinstance(value, list):
        return [_without(each, gone) for each in value if each is not gone]
    return value


def _value(text: str) -> dict[str, Any]:
    value = read(Document(text)).value
    assert isinstance(value, dict)
    return value

"""Which keys lead to where a cursor is, in texts that are still being written.

In each text `|` is the cursor.
"""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page

from tests.static.pages import put
from tests.static.site import Site

pytestmark = pytest.mark.browser

ASK = """
async ([text, at, syntax]) => {
  const { placeIn } = await import("/static/console/editor-place.js");
  return placeIn(text, at, syntax);
}
"""

JSON: dict[str, tuple[str, list[str | int], list[str]] | None] = {
    "{|}": ("key", [], []),
    '{"na|': ("key", [], ["na"]),
    '{"a": 1, "na|me": 2}': ("key", [], ["a", "name"]),
    '{"a": 1, | "b": 2}': ("key", [], ["a", "b"]),
    '{"a": 1 |}': ("key", [], ["a"]),
    '{"a" |}': None,
    '{"a": |}': ("value", ["a"], ["a"]),
    '{"a": "x|y"}': ("value", ["a"], ["a"]),
    '{"a": tr|': ("value", ["a"], ["a"]),
    '{"a": "x"| , "b": 1}': ("key", [], ["a", "b"]),
    '{"roles": [{"n": 1}, {"m": 2, "|"': ("key", ["roles", 1], ["m", ""]),
    '{"roles": [1, |2]}': ("value", ["roles", 1], []),
    '{"roles": [{"ports": {"x": [|': ("value", ["roles", 0, "ports", "x", 0], []),
    '{"a": {"b": 1}, |}': ("key", [], ["a"]),
    '{ // "x": {\n "a": {|} }': ("key", ["a"], []),
    '{"a": "{[", "b": {|}}': ("key", ["b"], []),
    '{"a": "\\"{", |}': ("key", [], ["a"]),
    "// say|": None,
    "|": None,
}
YAML: dict[str, tuple[str, list[str | int], list[str]] | None] = {
    "|": ("key", [], []),
    "na|": ("key", [], []),
    "name: x\nty|": ("key", [], ["name"]),
    "na|me: x\ntype: y": ("key", [], ["name", "type"]),
    "name: |": ("value", ["name"], []),
    "name: jo|b # why": ("value", ["name"], []),
    "roles:\n  |": ("key", ["roles"], []),
    "roles:\n  worker:\n    instances: 1\n    |": ("key", ["roles", "worker"], ["instances"]),
    "roles:\n  worker:\n    instances: 1\n  |": ("key", ["roles"], ["worker"]),
    "roles:\n  worker:\n    instances: 1\n|": ("key", [], ["roles"]),
    "list:\n  - name: a\n    |": ("key", ["list", 0], ["name"]),
    "list:\n  - name: a\n  - na|": ("key", ["list", 1], []),
    "list:\n- name: a\n- name: b\n  ty|": ("key", ["list", 1], ["name"]),
    "list:\n- name: a\nty|": ("key", [], ["list"]),
    "list:\n  - a\n  - |": ("key", ["list", 1], []),
    "cmd: |2\n  not: a key\n  ~\nnext: |": ("value", ["next"], []),
    '"quoted key": "|"': ("value", ["quoted key"], []),
    "# a com|ment": None,
    "kind: A\n---\nki|": ("key", [], []),
}
OTHERS: dict[tuple[str, str], tuple[str, list[str | int], list[str]] | None] = {
    ("properties", "name=a\nwor|"): ("key", [], ["name"]),
    ("properties", "name=a\n|"): ("key", [], ["name"]),
    ("properties", "name=a|b"): ("value", ["name"], []),
    ("properties", "# na|"): None,
    ("shell", "#!/bin/bash\n#SBATCH |"): ("key", [], []),
    ("shell", "#!/bin/bash\n#SBATCH --no|"): ("key", [], ["--no"]),
    ("shell", "#SBATCH --nodes=2 --par|"): ("key", [], ["--nodes"]),
    ("shell", "#SBATCH --nodes=|2"): ("value", ["--nodes"], []),
    ("shell", "#SBATCH -N 2|"): ("value", ["-N"], []),
    ("shell", "echo --no|"): None,
}
CASES = [
    *(("json", text, found) for text, found in JSON.items()),
    *(("yaml", text, found) for text, found in YAML.items()),
    *((syntax, text, found) for (syntax, text), found in OTHERS.items()),
]


@pytest.fixture
def asking(page: Page, site: Site) -> Page:
    put(site, "<p>nothing</p>")
    page.goto("/")
    return page


def place(page: Page, syntax: str, text: str) -> Any:
    """Where the last `|` of `text` is; a `~` stands for a `|` that is text."""
    before, _cursor, after = text.rpartition("|")
    return page.evaluate(ASK, [(before + after).replace("~", "|"), len(before), syntax])


def test_editor_place_finds_keys_leading_to_the_cursor(asking: Page) -> None:
    wrong = {}
    for syntax, text, expected in CASES:
        found = place(asking, syntax, text)
        told = found and (found["kind"], found["path"], found["present"])
        if told != expected:
            wrong[syntax, text] = told
    assert wrong == {}


def test_editor_place_range_covers_the_typed_word(asking: Page) -> None:
    for syntax, text, typed in [
        ("json", '{"a": "x|y", "b": 1}', "xy"),
        ("json", '{"ab|', "ab"),
        ("json", '{"a": tr|ue}', "true"),
        ("yaml", "a:\n  - nam|e: x", "name"),
        ("yaml", "a: some wo|rds # and why", "some words"),
        ("properties", "  worker|s=3", "workers"),
        ("shell", "#SBATCH --nodes=1|2 -x", "12"),
    ]:
        found = place(asking, syntax, text)
        assert text.replace("|", "")[found["from"] : found["to"]] == typed, (syntax, text)


def test_editor_place_reads_a_long_text_quickly(asking: Page) -> None:
    text = '{"taskRoles": [' + '{"name": "a", "command": "b {[ c"}, ' * 20_000 + "{|"
    spent = asking.evaluate(
        f"""async ([text, at]) => {{
          const run = {ASK};
          await run(["", 0, "json"]);
          const began = performance.now();
          const place = await run([text, at, "json"]);
          return [performance.now() - began, place.path];
        }}""",
        [text.replace("|", ""), len(text) - 1],
    )
    assert spent[1] == ["taskRoles", 20_000]
    assert spent[0] < 1000

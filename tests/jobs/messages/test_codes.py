"""Every code of a problem or a note that the code base can produce has a sentence."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from jobs.dialects.base import Note, Problem
from jobs.form.rules import RULES
from jobs.messages.notes import note_message
from jobs.messages.problems import problem_message

JOBS = Path(__file__).parents[3] / "jobs"
NOTES = frozenset({"Note", "note"})
PROBLEMS = frozenset({"Problem", "problem", "_problem", "Cause", "_fault"})
REFUSALS = frozenset({"refusal"})
EITHER = frozenset({"_note", "_told"})
MENTIONED = re.compile(rf"\b({'|'.join(NOTES | PROBLEMS | REFUSALS | EITHER)})\(|\bcode = ")
"""A module without any of it has no code: nine of ten need not be parsed."""

Nodes = Mapping[Path, list[ast.Call | ast.Assign]]


@pytest.fixture(scope="module")
def nodes() -> Nodes:
    """The calls and assignments of each module, read when these tests run: collecting them reads none."""
    texts = ((path, path.read_text(encoding="utf-8")) for path in JOBS.rglob("*.py"))
    return {path: list(_nodes_of(text)) for path, text in texts if MENTIONED.search(text)}


def _nodes_of(text: str) -> Iterator[ast.Call | ast.Assign]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call | ast.Assign):
            yield node


def _of_dialects(nodes: Nodes) -> Nodes:
    return {path: found for path, found in nodes.items() if path.is_relative_to(JOBS / "dialects")}


def _name(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _constants(value: ast.expr) -> Iterator[str]:
    """The texts that an expression may be."""
    if isinstance(value, ast.IfExp):
        yield from _constants(value.body)
        yield from _constants(value.orelse)
    elif isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value


def _codes(names: frozenset[str], nodes: Nodes) -> set[str]:
    """The codes given to calls of `names`, wherever they stand among the first arguments."""
    every = (node for found in nodes.values() for node in found)
    calls = (node for node in every if isinstance(node, ast.Call) and node.args and _name(node) in names)
    codes = (code for call in calls for code in _constants(call.args[0]))
    return {code for code in codes if code.isidentifier() and code.islower()}


def _assigned(nodes: Nodes) -> set[str]:
    """The codes that variables called `code` hold in the dialects."""
    every = (node for found in _of_dialects(nodes).values() for node in found)
    assignments = (node for node in every if isinstance(node, ast.Assign))
    named = (node for node in assignments if any(getattr(each, "id", "") == "code" for each in node.targets))
    return {code for node in named for code in _constants(node.value)}


def _yielded(path: Path) -> set[str]:
    """The codes that a module hands on by `yield`, in front of what they are about."""
    tuples = (
        node.value
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple)
    )
    return {code for each in tuples for code in _constants(each.elts[0])}


def _conditions() -> set[str]:
    return _yielded(JOBS / "dialects" / "dlc" / "conditions.py")


def _codes_of_problems(nodes: Nodes) -> set[str]:
    return _codes(PROBLEMS, nodes) | _codes(REFUSALS, _of_dialects(nodes))


def test_note_codes_all_have_a_sentence(nodes: Nodes) -> None:
    codes = _codes(NOTES, nodes) | _conditions() | {rule.code for rule in RULES}
    assert {code for code in codes if note_message(Note(code)) == code} == set()


def test_problem_codes_all_have_a_sentence(nodes: Nodes) -> None:
    codes = _codes_of_problems(nodes)
    assert {code for code in codes if problem_message(Problem(code)) == code} == set()


def test_codes_of_either_kind_all_have_a_sentence(nodes: Nodes) -> None:
    codes = _assigned(nodes) | _codes(EITHER, nodes)
    without = {code for code in codes if {note_message(Note(code)), problem_message(Problem(code))} == {code}}
    assert without == set()


def test_code_scan_finds_known_codes(nodes: Nodes) -> None:
    assert {"master_port_listed", "not_a_port_list", "not_a_port_number"} <= _conditions()
    assert {"unknown_key", "kept_unused"} <= _codes(NOTES, nodes)
    assert {"required", "unknown_dialect", "duplicate_key"} <= _codes_of_problems(nodes) | {"duplicate_key"}
    assert _assigned(nodes)

"""Every code of a problem or a note that the code base can produce has a sentence."""

import ast
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
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in JOBS.rglob("*.py")}
DIALECTS = {path: tree for path, tree in TREES.items() if path.is_relative_to(JOBS / "dialects")}


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


def _codes(names: frozenset[str], trees: Mapping[Path, ast.AST] = TREES) -> set[str]:
    """The codes given to calls of `names`, wherever they stand among the first arguments."""
    nodes = (node for tree in trees.values() for node in ast.walk(tree))
    calls = (node for node in nodes if isinstance(node, ast.Call) and node.args and _name(node) in names)
    codes = (code for call in calls for code in _constants(call.args[0]))
    return {code for code in codes if code.isidentifier() and code.islower()}


def _assigned() -> set[str]:
    """The codes that variables called `code` hold in the dialects."""
    nodes = (node for tree in DIALECTS.values() for node in ast.walk(tree) if isinstance(node, ast.Assign))
    named = (node for node in nodes if any(getattr(each, "id", "") == "code" for each in node.targets))
    return {code for node in named for code in _constants(node.value)}


def _yielded(path: Path) -> set[str]:
    """The codes that a module hands on by `yield`, in front of what they are about."""
    tuples = (
        node.value
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple)
    )
    return {code for each in tuples for code in _constants(each.elts[0])}


ASSIGNED = _assigned()
CODES_OF_PROBLEMS = _codes(PROBLEMS) | _codes(frozenset({"refusal"}), DIALECTS)
CONDITIONS = _yielded(JOBS / "dialects" / "dlc" / "conditions.py")


@pytest.mark.parametrize("code", sorted(_codes(NOTES) | CONDITIONS | {rule.code for rule in RULES}))
def test_note_code_has_a_sentence(code: str) -> None:
    assert note_message(Note(code)) != code


@pytest.mark.parametrize("code", sorted(CODES_OF_PROBLEMS))
def test_problem_code_has_a_sentence(code: str) -> None:
    assert problem_message(Problem(code)) != code


@pytest.mark.parametrize("code", sorted(ASSIGNED | _codes(frozenset({"_note", "_told"}))))
def test_code_of_either_kind_has_a_sentence(code: str) -> None:
    assert {note_message(Note(code)), problem_message(Problem(code))} != {code}


def test_code_scan_finds_known_codes() -> None:
    assert {"master_port_listed", "not_a_port_list", "not_a_port_number"} <= CONDITIONS
    assert {"unknown_key", "kept_unused"} <= _codes(NOTES)
    assert {"required", "unknown_dialect", "duplicate_key"} <= CODES_OF_PROBLEMS | {"duplicate_key"}

"""Every code has a sentence, and no missing parameter breaks one."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from jobs import dialects, messages
from jobs.dialects.base import Note, Problem, Refused
from jobs.dialects.document import Document
from jobs.messages import notes, problems, reasons
from jobs.messages.sentences import needs, say
from jobs.states import Phase, ReasonCode, ReplicaState, State

ROOT = Path(__file__).parents[3]
PROBLEM_CALLS = {"Problem", "Cause", "problem", "_problem"}
NOTE_CALLS = {"Note", "note"}
GUESS_CALLS = {"Guess"}
MENTIONED = re.compile(rf"\b({'|'.join(PROBLEM_CALLS | NOTE_CALLS | GUESS_CALLS)})\(")
"""A module without any of these calls need not be parsed: nine of ten."""
OF_JOB_TYPES = {"comment", "default", "keys", "words"}
"""Why a file of parameters is taken for a type of job: told in a note of its own."""


Called = Mapping[str, set[str]]


@pytest.fixture(scope="module")
def called() -> Called:
    """The codes that the whole of `jobs` and `quotas` gives to these functions and classes, by their names.

    They are read when these tests run: collecting them reads nothing.
    """
    found: dict[str, set[str]] = {}
    for path in [*(ROOT / "jobs").rglob("*.py"), *(ROOT / "quotas").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if MENTIONED.search(text) else ():
            if isinstance(node, ast.Call):
                function = node.func
                name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
                found.setdefault(name, set()).update(codes(node))
    return found


def codes(call: ast.Call) -> Iterator[str]:
    """The literal codes among the first arguments of a call."""
    literals = (each.value for each in call.args[:2] if isinstance(each, ast.Constant))
    yield from (each for each in literals if isinstance(each, str) and each.replace("_", "").isalpha())


def given_to(names: set[str], called: Called) -> set[str]:
    """The codes given to any of these; there are some."""
    found = {code for name in names for code in called.get(name, ())}
    assert found
    return found


def test_problem_codes_all_have_a_sentence(called: Called) -> None:
    given = given_to(PROBLEM_CALLS, called)
    assert given - problems._SENTENCES.keys() == set()
    assert {code for code in given if not messages.problem_message(Problem(code))} == set()


def test_note_codes_all_have_a_sentence(called: Called) -> None:
    given = given_to(NOTE_CALLS, called) - {"command_mended"}
    assert given - notes._SENTENCES.keys() == set()
    assert {code for code in given if not messages.note_message(Note(code))} == set()


def test_guess_codes_all_have_a_sentence(called: Called) -> None:
    given = given_to(GUESS_CALLS, called) - OF_JOB_TYPES
    assert {code for code in given if not messages.why_message(code)} == set()


@pytest.mark.parametrize("code", ReasonCode)
def test_reason_code_has_a_sentence_without_parameters(code: ReasonCode) -> None:
    sentence = messages.reason_message(code, {})
    assert sentence.endswith(".")
    assert "…" not in sentence
    assert "%" not in sentence
    nothing = dict.fromkeys(("role", "index", "exit_code", "wanted", "free", "cluster", "error", "by"))
    assert messages.reason_message(code, nothing) == sentence


@pytest.mark.parametrize("code", ReasonCode)
def test_reason_message_survives_odd_parameters(code: ReasonCode) -> None:
    names = {name for each in reasons._SENTENCES.get(code, ()) for name in needs(each)}
    for odd in ("x", 0, -5, 10**12, "100%"):
        assert messages.reason_message(code, {**dict.fromkeys(names, odd), "kind": odd, "limit_s": odd})


def test_states_and_phases_all_have_a_label() -> None:
    assert all(messages.state_label(state) for state in State)
    assert all(messages.replica_state_label(state) for state in ReplicaState)
    assert all(messages.phase_label(phase) for phase in Phase)
    assert messages.state_label("RUNNING") == "Running"


def test_say_chooses_fullest_sentence() -> None:
    templates = ("%(a)s and %(b)s", "%(a)s", "none")
    assert say(templates, {"a": 1, "b": 0}) == "1 and 0"
    assert say(templates, {"a": 1, "b": None}) == "1"
    assert say(templates, {"b": ""}) == "none"
    assert say(("%(a)s!",), {}) == "…!"


def test_codes_of_later_version_are_shown_unchanged() -> None:
    assert messages.reason_message("struck_by_lightning", {}) == "struck_by_lightning"
    assert messages.problem_message(Problem("new_rule")) == "new_rule"
    assert messages.note_message(Note("new_note")) == "new_note"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            '{"jobName": "a b", "image": "i", "taskRoles": [{"name": "m", "command": "c"}]}',
            "jobName “a b” contains invalid characters. Allowed: A-Z a-z 0-9 - . _ ~.",
        ),
        (
            '{"jobName": "a", "image": 7, "taskRoles": [{"name": "m", "command": "c"}]}',
            "image must be a string, not a number.",
        ),
        (
            '{"jobName": "a", "image": "i", "taskRoles": [{"name": "m", "command": "c", "shmMB": 200}]}',
            "shmMB is 200; it must be at most memoryMB (100).",
        ),
        ('{"jobName": True "image": "i"}', "JSON uses true, not True."),
        ('{"a": 1\n"b": 2}', 'Missing comma before ".'),
    ],
)
def test_problem_message_names_the_correction(text: str, sentence: str) -> None:
    with pytest.raises(Refused) as caught:
        dialects.get("openpai-v1").parse(Document(text))
    assert messages.problem_message(caught.value.problems[0]) == sentence


def test_fixed_command_note_names_its_faults() -> None:
    note = Note("command_mended", params={"findings": "token_empty,any_origin"})
    assert messages.note_message(note) == (
        "Jupyter would have been accessible to others (no token, requests from any website allowed). The "
        "fixed command listens only where the console reaches it and requires a token, which is part of the "
        "link."
    )

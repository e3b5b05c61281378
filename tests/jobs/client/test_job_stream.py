"""The pieces of following a job that need no console."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.client.job_stream import Event, Screen, exit_code, parse_events
from jobs.live import sse


@given(st.lists(st.text(), max_size=5), st.integers(1, 7))
def test_events_are_read_however_they_are_cut_and_whatever_is_in_them(texts: list[str], size: int) -> None:
    """Line separators of every kind may stand in a log, and characters may be cut in two."""
    lone = [text.encode("utf-8", "replace").decode() for text in texts]
    sent = b"".join(sse.event("log", text, f"1.1.{number}") for number, text in enumerate(lone))
    pieces = [sent[at : at + size] for at in range(0, len(sent), size)]
    assert list(parse_events(iter(pieces))) == [
        Event("log", text, f"1.1.{number}") for number, text in enumerate(lone)
    ]


@pytest.mark.parametrize(
    ("job", "code"),
    [
        ({"state": "SUCCEEDED", "tasks": [{"exit_code": 1}]}, 0),
        ({"state": "FAILED", "tasks": [{"exit_code": 0}, {"exit_code": 137}]}, 137),
        ({"state": "FAILED", "tasks": [{"exit_code": None}]}, 1),
        ({"state": "STOPPED", "tasks": None}, 1),
    ],
)
def test_what_a_script_is_told_of_the_end(job: dict[str, Any], code: int) -> None:
    assert exit_code(job) == code


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_waits_has_one_line_on_a_terminal_and_the_log_stays_clean() -> None:
    out, err = io.StringIO(), Tty()
    screen = Screen(out, err)
    screen.now("waiting")
    screen.now("waiting")
    screen.now("still waiting")
    screen.log("first\n")
    screen.say("done")
    assert out.getvalue() == "first\n"
    assert err.getvalue() == "\r\x1b[Kwaiting\r\x1b[Kstill waiting\r\x1b[Kdone\n"


def test_elsewhere_each_state_is_a_line() -> None:
    err = io.StringIO()
    screen = Screen(io.StringIO(), err)
    for text in ("one", "one", "two", ""):
        screen.now(text)
    assert err.getvalue() == "one\ntwo\n"
    assert json.dumps(err.isatty()) == "false"

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
def test_event_parser_reads_events_across_any_chunks(texts: list[str], size: int) -> None:
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
def test_exit_code_reflects_how_job_ended(job: dict[str, Any], code: int) -> None:
    assert exit_code(job) == code


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_screen_on_terminal_has_one_status_line_and_clean_log() -> None:
    out, err = io.StringIO(), Tty()
    screen = Screen(out, err)
    screen.now("waiting")
    screen.now("waiting")
    screen.now("still waiting")
    screen.log("first\n")
    screen.say("done")
    assert out.getvalue() == "first\n"
    assert err.getvalue() == "\r\x1b[Kwaiting\r\x1b[Kstill waiting\r\x1b[Kdone\n"


def test_screen_off_terminal_prints_each_status_as_a_line() -> None:
    err = io.StringIO()
    screen = Screen(io.StringIO(), err)
    for text in ("one", "one", "two", ""):
        screen.now(text)
    assert err.getvalue() == "one\ntwo\n"
    assert json.dumps(err.isatty()) == "false"

"""Log lines: one stream, whoever speaks, with what is bound to the moment."""

import json
import subprocess
import sys

import pytest

from console.home import CHECKOUT

SCRIPT = """
import logging, structlog
from console.configuration.logging import configure
configure({{"style": {style!r}, "level": {level!r}}})
with structlog.contextvars.bound_contextvars(request_id="r1", task_id="t1", job="j1"):
    structlog.stdlib.get_logger("jobs").info("job.submitted", handle=7)
    logging.getLogger("kombu").warning("away for %s s", 3)
    logging.getLogger("x").debug("not worth a line")
try:
    1 / 0
except ZeroDivisionError:
    logging.getLogger("x").exception("failed")
"""


def _lines(style: str, level: str = "INFO") -> list[str]:
    script = SCRIPT.format(style=style, level=level)
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert done.stdout == ""
    return done.stderr.splitlines()


def test_json_log_lines_carry_request_task_and_job() -> None:
    submitted, away, failed = (json.loads(line) for line in _lines("json"))
    bound = {"request_id": "r1", "task_id": "t1", "job": "j1"}
    assert (
        submitted.items()
        >= {"event": "job.submitted", "handle": 7, "level": "info", "logger": "jobs", **bound}.items()
    )
    assert away.items() >= {"event": "away for 3 s", "level": "warning", "logger": "kombu", **bound}.items()
    assert "job" not in failed
    assert failed["exception"][0]["exc_type"] == "ZeroDivisionError"
    assert all(line["timestamp"].endswith("Z") for line in (submitted, away, failed))


def test_console_log_lines_carry_the_same_fields() -> None:
    lines = _lines("console")
    assert "job.submitted" in lines[0]
    assert "job=j1" in lines[0]
    assert "request_id=r1" in lines[0]
    assert "away for 3 s" in lines[1]
    assert lines[-1] == "ZeroDivisionError: division by zero"
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize(("level", "count"), [("DEBUG", 4), ("INFO", 3), ("WARNING", 2), ("ERROR", 1)])
def test_log_level_filters_lines(level: str, count: int) -> None:
    assert len(_lines("json", level)) == count

"""The turn to write, between processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.home import CHECKOUT
from console.sqlite import turns
from console.sqlite.turns import WriteTurn
from tests.waiting import wait_for

pytestmark = pytest.mark.sqlite

OTHER = """
import sys
from console.sqlite.turns import WriteTurn

turn = WriteTurn()
for line in sys.stdin:
    print(turn.take(sys.argv[1], 60) if line == "take\\n" else turn.give(sys.argv[1]), flush=True)
"""


class OtherProcess:
    """Another process that takes and gives the turn."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self.child = child

    def send(self, what: str) -> None:
        """Ask for the turn, or have it given back."""
        assert self.child.stdin is not None
        self.child.stdin.write(f"{what}\n")
        self.child.stdin.flush()

    def answer(self) -> str:
        """Wait until it was done."""
        assert self.child.stdout is not None
        return self.child.stdout.readline().strip()


@pytest.fixture
def database(tmp_path: Path) -> str:
    """The path of a database."""
    return str(tmp_path / "db")


@pytest.fixture
def other(database: str) -> Iterator[OtherProcess]:
    """A process that shares it."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", OTHER, database]
    with subprocess.Popen(command, cwd=CHECKOUT, stdin=pipe, stdout=pipe, text=True) as child:
        yield OtherProcess(child)
        child.kill()


def _is_awaited(turn: WriteTurn, database: str) -> bool:
    file = turn._open(database)
    if turns._lock(file, turns._NEXT, 0):
        turns._unlock(file, turns._NEXT)
        return False
    return True


def test_write_turn_of_another_process_ends_with_its_transaction_or_with_it(
    database: str, other: OtherProcess
) -> None:
    turn = WriteTurn()
    other.send("take")
    assert other.answer() == "True"
    assert not turn.take(database, 0.01)
    assert not turn.is_taken()
    other.send("give")
    other.answer()
    assert turn.take(database, 60)
    turn.give(database)
    other.send("take")
    assert other.answer() == "True"
    other.child.kill()
    assert turn.take(database, 60)
    turn.give(database)


def test_process_that_has_just_written_comes_after_one_that_waits(database: str, other: OtherProcess) -> None:
    turn = WriteTurn()
    assert turn.take(database, 60)
    other.send("take")
    wait_for(lambda: _is_awaited(turn, database), 60)
    turn.give(database)
    assert not turn.take(database, 0.01)
    assert other.answer() == "True"
    other.send("give")
    other.answer()
    assert turn.take(database, 60)
    turn.give(database)

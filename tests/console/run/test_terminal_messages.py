"""What the person at the terminal hears."""

import json
import time
from pathlib import Path

import pytest

from console.run import terminal_messages
from console.run.terminal_messages import TROUBLE, TerminalMessages
from tests.ports import free_port


@pytest.fixture
def listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TerminalMessages:
    monkeypatch.setattr(terminal_messages, "LOOK_SECONDS", 0.0)
    return TerminalMessages(tmp_path, f"http://127.0.0.1:{free_port()}", ["localhost"], "First admin: …\n")


def _lives(folder: Path, name: str, short: int) -> None:
    record = {"pid": 1, "started": time.time(), "short_lives": short}
    (folder / f"{name}.process").write_text(json.dumps(record))


def test_program_ending_repeatedly_is_named_once(
    listener: TerminalMessages, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _lives(tmp_path, "web", 0)
    _lives(tmp_path, "watch", TROUBLE - 1)
    listener.each_step()
    assert capsys.readouterr().out == ""
    _lives(tmp_path, "watch", TROUBLE)
    listener.each_step()
    listener.each_step()
    told = f"watch keeps ending and is started again; {tmp_path}/watch.log says why.\n"
    assert capsys.readouterr().out == told


def test_slow_start_names_the_log_file_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(terminal_messages, "SLOW_START", -1.0)
    slow = TerminalMessages(tmp_path, f"http://127.0.0.1:{free_port()}", ["localhost"], "")
    slow.each_step()
    slow.each_step()
    assert capsys.readouterr().out == f"Still starting; {tmp_path}/web.log may say why.\n"

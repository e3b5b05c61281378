"""supervisord in a process of its own, with other programs than the console's."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from console.home import CHECKOUT
from console.run.child import read_record
from console.run.programs import Program, Rotation, supervisord_config
from tests.waiting import wait_for

SUPERVISE = """
import sys
from pathlib import Path
from console.run.supervise import supervise
supervise(Path(sys.argv[1]), lambda: None)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_single_signal_ends_all_programs_and_lowest_stage_last(
    number: signal.Signals, tmp_path: Path
) -> None:
    sleep = [shutil.which("sleep") or "sleep", "600"]
    listed = [Program(name, stage, sleep, 5) for name, stage in (("redis", 1), ("web", 2), ("beat", 2))]
    text = supervisord_config(
        listed, checkout=CHECKOUT, root=os.geteuid() == 0, rotation=Rotation(mib=1, files=1)
    )
    config = tmp_path / "supervisord.conf"
    config.write_text(text)
    command = [sys.executable, "-c", SUPERVISE, str(config)]
    with subprocess.Popen(command, cwd=CHECKOUT, stdin=subprocess.DEVNULL) as supervisor:
        records = [
            wait_for(lambda name=each.name: read_record(tmp_path / f"{name}.process"))  # type: ignore[misc]
            for each in listed
        ]
        supervisor.send_signal(number)
        assert supervisor.wait(60) == 0
    assert not any(psutil.pid_exists(record.pid) for record in records)
    log = (tmp_path / "supervisord.log").read_text()
    stopped = re.findall(r"stopped: (\S+) ", log)
    assert sorted(stopped[:2]) == ["beat", "web"]
    assert stopped[2:] == ["redis"]

"""Jobs that an earlier release of the console started are this one's after an upgrade."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from jobs.backends.base import Handle, Observation
from jobs.states import State
from tests import releases
from tests.jobs.backends.benches import LocalBench, as_told, log_of, replica, role, wait_until_over
from tests.waiting import wait_for

RELEASE = "37546ee"
"""The local backend of that commit, and what it imports."""

SUBMIT = """
import json, sys
from pathlib import Path
from jobs.backends.base import Person, Submission
from jobs.backends.local.backend import LocalBackend
from jobs.backends.local.config import LocalConfig
from jobs.spec import JobSpec
told = json.loads(sys.argv[1])
fields = {**told["submission"], "spec": JobSpec.model_validate_json(told["submission"]["spec"])}
fields["person"] = Person(**fields["person"])
config = LocalConfig(
    root=Path(told["root"]), hide=Path(told["hide"]), show=(Path(told["show"]),), cpu_milli=told["cpu_milli"]
)
print(LocalBackend(config).submit(Submission(**fields)))
"""


@dataclass(frozen=True)
class Upgrade:
    """A bench whose jobs the earlier release, which lies in `folder`, starts."""

    bench: LocalBench
    folder: Path

    def start(self, command: str) -> Handle:
        """Have it start a job, and wait until that is seen to run."""
        submission = self.bench.submission(role(f"echo first; {command}"))
        fields = {**as_told(submission), "spec": submission.spec.model_dump_json(exclude_defaults=True)}
        config = self.bench.config
        told = {"root": str(config.root), "hide": str(config.hide), "show": str(self.bench.judge)}
        told_all = json.dumps({**told, "cpu_milli": config.cpu_milli, "submission": fields})
        done = subprocess.run(
            [sys.executable, "-c", SUBMIT, told_all],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        handle = Handle(done.stdout.strip())
        wait_for(lambda: log_of(self.bench.backend, handle) == "first\n")
        wait_for(lambda: self.observe(handle).state is State.RUNNING)
        return handle

    def observe(self, handle: Handle) -> Observation:
        """Return what this release sees of it."""
        seen = self.bench.backend.observe([handle])[handle]
        assert isinstance(seen, Observation)
        return seen


@pytest.fixture
def upgrade(tmp_path: Path, bench_of: Callable[..., LocalBench]) -> Upgrade:
    """A bench, and the earlier release."""
    return Upgrade(bench_of(), releases.unpack(RELEASE, tmp_path / "earlier"))


def test_job_from_earlier_release_is_followed_to_end(upgrade: Upgrade) -> None:
    bench = upgrade.bench
    handle = upgrade.start(f"until [ -e {bench.judge}/go ]; do sleep 0.02; done; echo last")
    (bench.judge / "go").touch()
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED
    assert log_of(bench.backend, handle) == "first\nlast\n"


def test_job_from_earlier_release_is_stopped(upgrade: Upgrade) -> None:
    handle = upgrade.start("exec sleep 600")
    upgrade.bench.backend.stop(handle, grace_s=5, signal="TERM")
    assert wait_until_over(upgrade.bench.backend, handle).state is State.STOPPED


def test_job_from_earlier_release_with_killed_supervisor_gets_agent(upgrade: Upgrade) -> None:
    bench = upgrade.bench
    handle = upgrade.start(f"until [ -e {bench.judge}/go ]; do sleep 0.02; done; echo last; exit 3")
    earlier = bench.processes("jc-supervisor")
    assert earlier
    for pid in earlier:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: _writer(bench, handle) in bench.agents())
    (bench.judge / "go").touch()
    seen = wait_until_over(bench.backend, handle)
    assert seen.state is State.FAILED
    assert replica(seen).exit_code == 3
    assert log_of(bench.backend, handle) == "first\nlast\n"


def _writer(bench: LocalBench, handle: Handle) -> int:
    """Return the process that wrote the attempt's state last."""
    bench.backend.observe([handle])
    return int(json.loads((bench.attempt(handle) / "status.json").read_text())["supervisor"]["pid"])

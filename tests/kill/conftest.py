"""One console for all kill cases, with fault points, and a judge outside of it."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from jobs.faults import POINTS
from tests.ports import free_port
from tests.stack import Stack
from tests.waiting import wait_for

LINES = 400
"""What each job writes: enough for its log to be growing while something is killed."""


@dataclass
class Arena:
    """A running console, the folder of its fault points, and the folder of the judge.

    Webhooks may lead to `hook_port` of this machine.
    """

    stack: Stack
    faults: Path
    judge: Path
    token: str
    hook_port: int

    def arm(self, point: str, what: str) -> None:
        """The next process that passes `point` is killed, or stopped."""
        assert point in POINTS
        (self.faults / point).write_text(what)

    def taken(self, point: str) -> int | None:
        """The process that fell at `point`, once one did."""
        found = list(self.faults.glob(f"{point}.taken.*"))
        return int(found[0].suffix[1:]) if found else None

    def disarm(self) -> None:
        """Forget every point."""
        for path in self.faults.iterdir():
            path.unlink()

    def api(self) -> httpx.Client:
        """The native API, as a script uses it."""
        return httpx.Client(
            base_url=f"{self.stack.base_url}/api/console/v1/",
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=5,
            trust_env=False,
        )

    def file(self, name: str, *, lines: int = LINES, tail: str = "") -> str:
        """A job file whose job tells the judge that it ran, and then counts into its log."""
        count = f"for i in $(seq 1 {lines}); do echo line $i; sleep 0.002; done"
        command = f"echo started >> {self.judge}/{name}; {count}; {tail or 'exit 0'}"
        role = {"name": "w", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 256, "gpuNumber": 0}
        return json.dumps({"jobName": name, "image": "any", "taskRoles": [role | {"command": command}]})

    def submit(self, name: str, *, lines: int = LINES, tail: str = "") -> str:
        """Submit until the console answers, as a client with an Idempotency-Key may; the job's id."""
        text = self.file(name, lines=lines, tail=tail)

        def sent() -> str:
            try:
                with self.api() as api:
                    answer = api.post("jobs", json={"file": text}, headers={"Idempotency-Key": name})
            except httpx.HTTPError:
                return ""
            assert answer.status_code in {200, 201, 500, 502, 503}, answer.text
            return str(answer.json()["id"]) if answer.is_success else ""

        return wait_for(sent)

    def job(self, public_id: str) -> dict[str, Any]:
        """The job as the API tells it, or nothing while it does not answer."""
        try:
            with self.api() as api:
                answer = api.get(f"jobs/{public_id}")
        except httpx.HTTPError:
            return {}
        return dict(answer.json()) if answer.is_success else {}

    def log(self, public_id: str) -> bytes:
        """The whole log of the only replica."""
        where: dict[str, str | int] = {"role": "w", "index": 0, "limit": 1_000_000}
        with self.api() as api:
            return api.get(f"jobs/{public_id}/logs", params=where).content

    def starts(self, name: str) -> int:
        """How often the job ran, as the judge knows."""
        path = self.judge / name
        return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.fixture(scope="session")
def arena() -> Iterator[Arena]:
    faults = Path(tempfile.mkdtemp(prefix="jc-faults-"))
    judge = Path(tempfile.mkdtemp(prefix="jc-judge-", dir="/var/tmp"))
    judge.chmod(0o777)
    local = {"engine": "none", "allow_plain": True, "cpu_milli": 64_000, "show": [str(judge)]}
    hook_port = free_port()
    environ = {
        "CONSOLE_FAULTS": str(faults),
        "CONSOLE_LOCAL": json.dumps(local),
        "CONSOLE_EGRESS_HOSTS": f"http://127.0.0.1:{hook_port}",
        "CONSOLE_NOTICE_GAP_SECONDS": "0",
        "CONSOLE_FAULT_SECONDS": "2",
    }
    stack = Stack(environ)
    try:
        stack.start()
        token = json.loads(stack.manage("issue_token", "admin"))["token"]
        yield Arena(stack, faults, judge, token, hook_port)
    finally:
        stack.remove()
        shutil.rmtree(faults, ignore_errors=True)
        shutil.rmtree(judge, ignore_errors=True)


@pytest.fixture(autouse=True)
def _nothing_armed(arena: Arena) -> Iterator[None]:
    arena.disarm()
    yield
    for process in arena.stack.processes():  # whatever a failed test left frozen
        with suppress(psutil.NoSuchProcess):
            process.resume()
    arena.disarm()

"""Runs one job as an ordinary user would: started as root by the tests, it becomes nobody first."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any, Final

from jobs.backends.base import Handle, ReplicaRef
from jobs.backends.sessions import SessionKind, SessionRequest
from jobs.node.sandbox.folders import SharedFolderRule
from jobs.spec import JobSpec, Resources
from tests.jobs.backends.benches import LocalBench, log_of, role, wait_until_over
from tests.waiting import wait_for

NOBODY: Final = 65534
ROOM: Final = Resources(cpu_milli=1000, memory_mib=512)


def main(folder: Path, told: dict[str, Any]) -> None:
    """Run `told["command"]` and print how it went."""
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    os.environ["HOME"] = str(folder)
    folders = tuple(
        SharedFolderRule.from_settings(path, said) for path, said in told.get("folders", {}).items()
    )
    settings = {"python": find_python(), "gpus": {}, "folders": folders, **told.get("settings", {})}
    bench = LocalBench(folder, settings)
    for name, text in told.get("files", {}).items():
        path = bench.home / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    more = JobSpec.model_validate_json(
        json.dumps({"name": "x", "roles": [{"name": "x", "command": "x"}], **told.get("spec", {})})
    )
    given = {name: getattr(more, name) for name in told.get("spec", {})}
    handle = bench.backend.submit(bench.submission(role(told["command"], resources=ROOM), **given))
    said = asyncio.run(_beside(bench, handle, told["beside"])) if "beside" in told else ""
    seen = wait_until_over(bench.backend, handle)
    answer = {
        "isolation": bench.backend.isolation(),
        "state": seen.state,
        "why": [seen.reason.code, dict(seen.reason.params)],
        "said": said,
        "log": log_of(bench.backend, handle),
        "limits": seen.replicas[0].limits,
        "diary": (bench.attempt(handle) / "supervisor.log").read_text(),
    }
    bench.close()
    sys.stdout.write(json.dumps(answer))


async def _beside(bench: LocalBench, handle: Handle, line: str) -> str:
    """What a command says that is run beside the job once that has said something itself."""
    wait_for(lambda: log_of(bench.backend, handle))
    session = await bench.backend.exec(
        handle, ReplicaRef("worker", 0), SessionRequest(SessionKind.LINE, line=line)
    )
    said = b""
    while more := await session.read(1 << 16):
        said += more
    await session.close()
    return said.decode()


def find_python() -> str:
    """An interpreter that nobody may run: the one of the tests may lie in somebody's home."""
    if os.access(os.path.realpath(sys.executable), os.X_OK):
        return sys.executable
    return shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin") or sys.executable


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))

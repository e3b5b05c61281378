"""Programs that a measurement starts: one in a console's home of its own, and bare ASGI applications."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from console.configuration import keys
from console.home import CHECKOUT
from tests.ports import free_port


def run_alone(module: str, *arguments: str) -> dict[str, float]:
    """Run a module on an empty home, SQLite and no Redis; return the JSON of its last line."""
    with tempfile.TemporaryDirectory(prefix="jc-") as home:
        keys.ensure(Path(home))
        own = {"CONSOLE_HOME": home, "DATABASE_URL": "", "REDIS_URL": "redis://127.0.0.1:1/0"}
        run = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=CHECKOUT,
            env={**os.environ, **own},
            capture_output=True,
            text=True,
            check=True,
        )
    said: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return said


@contextmanager
def serve_bare(application: str, **environ: str) -> Iterator[str]:
    """Serve an ASGI application, `MODULE:NAME`; give its address."""
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "--port", str(port), "--no-access-log", application]
    with subprocess.Popen(
        command, env={**os.environ, **environ}, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        try:
            next(line for line in server.stderr if re.search("running on", line))
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()

"""`python -m tests.bench.searched`: search 1 GB of log, by the console and by grep; print seconds as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Final

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
django.setup()

from jobs.logs import log_store, pattern_search  # noqa: E402  # settings come first
from jobs.models import Attempt, LogStream  # noqa: E402

SIZE: Final = 1_000_000_000
BLOCK_LINES: Final = 100_000
PATTERN: Final = r"step=[0-9]+ loss=(nan|inf)"
LAST: Final = b"step=1 loss=nan\n"


def main() -> None:
    """Measure both, each on a file that was read before."""
    stream = LogStream(attempt=Attempt(), live_path="log", state=LogStream.State.COMPLETE)
    path = log_store.jobs_root() / stream.live_path
    path.parent.mkdir()
    _write(path)
    command = ["grep", "--extended-regexp", "--text", "--ignore-case", "--count", PATTERN, str(path)]
    environ = {**os.environ, "LC_ALL": "C.UTF-8"}
    subprocess.run(command, env=environ, check=True, capture_output=True)
    began = time.monotonic()
    subprocess.run(command, env=environ, check=True, capture_output=True)
    grep_s = time.monotonic() - began
    began, found, at = time.monotonic(), 0, 0
    while True:  # as a page does, which shows its progress and may stop
        matches = pattern_search.search(stream, PATTERN, at, 1000)
        found += len(matches.found)
        if matches.next_offset is None:
            break
        at = matches.next_offset
    assert found == 1
    print(json.dumps({"search_s": time.monotonic() - began, "grep_s": grep_s}))


def _write(path: Path) -> None:
    lines = (
        f"2026-11-26 22:40:13 step={step} loss={1 / (step + 1):.6f} lr=1e-4" for step in range(BLOCK_LINES)
    )
    block = ("\n".join(lines) + "\n").encode()
    with path.open("wb") as file:
        while file.tell() < SIZE - len(block):
            file.write(block)
        file.write(LAST)


if __name__ == "__main__":
    main()

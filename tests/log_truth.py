"""`python -m tests.log_truth [--bytes 1G]`: hostile output at full speed, and kills of the console's parts.

A job writes numbered lines, with lines of 100,000 characters, NUL bytes, broken UTF-8, sequences that steer
terminals, and markup in between.  A viewer follows it by the stream and goes on after each loss where it was.
At the end the stored bytes are those that were written, and the viewer had each of them once.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count as count_up
from itertools import islice
from pathlib import Path
from typing import Final

import httpx

from jobs.client.job_stream import parse_events
from tests.stack import Stack
from tests.waiting import wait_for

HOSTILE: Final = (
    b"x" * 100_000,
    b"\0" * 50,
    b"\xff\xfe broken \xe2\x82 \xf0\x9f\x92",
    b"\x1b]52;c;cm0gLXJm\x07\x1b[2J\x1b[31;1mred\x1b[0m\x1b]0;title\x07\x9b5n\x1bP+q\x1b\\",
    b"<script>alert(1)</script><img src=x onerror=alert(2)>",
    b"10 %\r20 %\r30 %",
    "\u202eright to left \U0001f600".encode(),
)
EACH: Final = 997
"""One of so many lines is hostile."""

KILLED: Final = ("web", "worker-logs", "redis", "worker-control", "web")
"""What is killed while a part of the output is on its way; each time the viewer's connection is cut too."""

PATIENCE_S: Final = 600.0


def write_parts(folder: Path, size: int, count: int) -> list[Path]:
    """Write what the job will write: about `size` bytes, in `count` files."""
    paths, lines = [], _lines()
    for part in range(count):
        path = folder / f"part-{part}"
        with path.open("wb") as file:
            while file.tell() < size // count:
                file.write(b"".join(islice(lines, EACH)))
        paths.append(path)
    return paths


def _lines() -> Iterator[bytes]:
    for number in count_up():
        if number % EACH:
            yield b"%d some words of a program that writes quickly\n" % number
        else:
            yield b"%d %b\n" % (number, HOSTILE[number // EACH % len(HOSTILE)])


def command(folder: Path, count: int) -> str:
    """Return the job's command: it writes each part at full speed, once it may."""
    return (
        f"for i in $(seq 0 {count - 1}); do until [ -e {folder}/go-$i ]; do sleep 0.05; done; "
        f"cat {folder}/part-$i; done"
    )


@dataclass
class Viewer:
    """A stream's client that checks each event against what was written."""

    base_url: str
    token: str
    job: str
    parts: Sequence[Path]
    offset: int = 0
    connections: int = 0
    error: str = ""
    is_over: bool = False
    _last: str = ""
    _response: httpx.Response | None = field(default=None, repr=False)

    def run(self) -> None:
        """Follow to the end of the log, through every loss of the connection."""
        expected = _Expected(self.parts)
        while not self.is_over and not self.error:
            with suppress(httpx.HTTPError, httpx.StreamError, OSError):
                self._follow(expected)
            time.sleep(0.05)  # as every client that comes back

    def cut(self) -> None:
        """Lose the connection, with whatever is in it."""
        response = self._response
        if response is not None:
            with suppress(Exception):
                response.extensions["network_stream"].get_extra_info("socket").shutdown(2)

    def _follow(self, expected: _Expected) -> None:
        headers = {"Authorization": f"Bearer {self.token}"} | (
            {"Last-Event-ID": self._last} if self._last else {}
        )
        url = f"{self.base_url}/api/console/v1/jobs/{self.job}/stream"
        with (
            httpx.Client(trust_env=False, timeout=20) as client,
            client.stream("GET", url, params={"log": "w/0", "offset": 0}, headers=headers) as response,
        ):
            response.raise_for_status()
            self._response, self.connections = response, self.connections + 1
            for event in parse_events(response.iter_raw()):
                if event.name == "log":
                    self._take(event.identity, event.data, expected)
                elif event.name == "end":
                    self.is_over = True
                if self.is_over or self.error:
                    return

    def _take(self, identity: str, text: str, expected: _Expected) -> None:
        end = int(identity.rpartition(".")[2])
        wanted = expected.take(end - self.offset).decode("utf-8", "replace")
        if text != wanted:
            self.error = f"at byte {self.offset}: {text[:80]!r} instead of {wanted[:80]!r}"
        self.offset, self._last = end, identity


class _Expected:
    """The bytes of the parts, one after the other."""

    def __init__(self, parts: Sequence[Path]) -> None:
        self._blocks = _read(parts)
        self._rest = b""

    def take(self, count: int) -> bytes:
        while len(self._rest) < count and (block := next(self._blocks, b"")):
            self._rest += block
        taken, self._rest = self._rest[:count], self._rest[count:]
        return taken


def _read(parts: Sequence[Path]) -> Iterator[bytes]:
    for path in parts:
        with path.open("rb") as file:
            while block := file.read(1 << 16):
                yield block


def run(
    stack: Stack, token: str, folder: Path, size: int, killed: Sequence[str] = KILLED
) -> dict[str, float]:
    """Run the job and the kills; return what was counted.  Raises AssertionError."""
    parts = write_parts(folder, size, len(killed) + 1)
    whole = sum(path.stat().st_size for path in parts)
    role = {"name": "w", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 256, "gpuNumber": 0}
    text = json.dumps(
        {
            "jobName": f"truth-{size}",
            "image": "any",
            "taskRoles": [role | {"command": command(folder, len(parts))}],
        }
    )
    api = f"{stack.base_url}/api/console/v1/jobs"
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(headers=headers, trust_env=False, timeout=60) as client:
        job = client.post(api, json={"file": text}).raise_for_status().json()["id"]
        viewer = Viewer(stack.base_url, token, job, parts)
        thread = threading.Thread(target=viewer.run, daemon=True)
        began = time.monotonic()
        thread.start()
        for part, program in enumerate(killed):
            before = viewer.offset
            (folder / f"go-{part}").touch()
            wait_for(lambda before=before: viewer.offset > before or viewer.error, PATIENCE_S)  # type: ignore[misc]
            viewer.cut()
            stack.kill(program, signal.SIGKILL)
        (folder / f"go-{len(killed)}").touch()
        wait_for(lambda: viewer.is_over or viewer.error, PATIENCE_S)
        took = time.monotonic() - began
        thread.join()
        assert not viewer.error, viewer.error
        assert viewer.offset == whole, f"the viewer had {viewer.offset} of {whole} bytes"
        stack.wait_until("/healthz")
        _compare(client, f"{api}/{job}/logs", parts)
        wait_for(lambda: client.get(f"{api}/{job}").json()["state"] == "SUCCEEDED", 60)
    return {"bytes": whole, "seconds": took, "connections": viewer.connections}


def _compare(client: httpx.Client, url: str, parts: Sequence[Path]) -> None:
    expected, at = _Expected(parts), 0
    with client.stream("GET", url, params={"role": "w", "index": 0, "download": "true"}) as response:
        for piece in response.raise_for_status().iter_raw():
            assert piece == expected.take(len(piece)), f"the stored log differs behind byte {at}"
            at += len(piece)
    assert not expected.take(1), f"the stored log ends at byte {at}"


def main() -> None:
    """Start a console for it, and print what was counted."""
    parser = argparse.ArgumentParser(prog="python -m tests.log_truth", description=__doc__)
    parser.add_argument("--bytes", default="1G", help="how much is written: 20M, 1G …")
    wanted = parser.parse_args().bytes
    size = int(wanted.rstrip("MG")) * {"M": 10**6, "G": 10**9}.get(wanted[-1], 1)
    folder = Path(tempfile.mkdtemp(prefix="jc-truth-", dir="/var/tmp"))
    folder.chmod(0o755)
    local = {"engine": "none", "allow_plain": True, "show": [str(folder)], "log_mib": 8192, "log_mib_s": 0}
    stack = Stack({"CONSOLE_LOCAL": json.dumps(local), "CONSOLE_LOG_CAP_MIB": "8192"})
    try:
        stack.start()
        token = json.loads(stack.manage("issue_token", "admin"))["token"]
        found = run(stack, token, folder, size)
        print(
            f"{found['bytes']:,.0f} bytes in {found['seconds']:.0f} s, {len(KILLED)} kills, "
            f"{found['connections']:.0f} connections: stored bytes equal, each shown once"
        )
    finally:
        stack.remove()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()

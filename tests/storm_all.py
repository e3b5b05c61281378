"""`make storm-all`: everything of a whole console breaks while jobs run, and what came of them.

For some minutes people submit jobs, and stop some of them, while web, workers, beat, watch, broker, agent and
PostgreSQL are killed or frozen (which is how a broken network looks from the other end), the console crashes
as a whole, and its disk is full for a while.  Then all of it may heal.  The judge is a folder to which each
start of a job appends a line.  In the end each accepted job has ended as it should, was started once, and has
its whole log, but for what was dropped while the disk was full.

`python -m tests.storm_all --minutes 20 --seed 1` as root: the same seed does the same in the same order.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP
from typing import Any, Final

import httpx
import psutil

from console.run.child import read_record
from tests import postgres, prepared
from tests.jobs.backends.benches import AGENT
from tests.stack import Stack
from tests.waiting import wait_for

PROGRAMS: Final = ("web", "worker-control", "worker-logs", "worker-notices", "beat", "watch", "redis")
DISK: Final = 1 << 30
"""Bytes of the file system on which the console's folder lies."""

SUBMIT_EVERY_S: Final = 2.0
BREAK_EVERY_S: Final = (2.0, 6.0)
FROZEN_S: Final = (3.0, 12.0)
SAMPLE_EVERY_S: Final = 10.0
HEAL_S: Final = 300.0
GRACE_S: Final = 5.0
NOTICE: Final = re.compile(rb"\n\[[^\n]* dropped here: [^\n]*\]\n")
"""What the console writes into a log in place of what it dropped."""
ENDED: Final = frozenset({"SUCCEEDED", "FAILED", "STOPPED"})


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of job: the lines that it writes, 10 ms apart, how it ends by itself, and in which state.

    Its owner stops it `stopped_after_s` seconds after it was accepted, or never.
    """

    name: str
    lines: int
    end: str
    state: str
    stopped_after_s: float | None = None

    def command(self, name: str, judge: Path) -> str:
        """Return what it runs."""
        # Bash waits by itself: a hundred programs a second for each job would be most of the load.
        pause = "read -r -t 0.01 <&3 || true"
        count = f"exec 3<> <(:); for i in $(seq 1 {self.lines}); do echo line $i; {pause}; done; exec 3>&-"
        return f"echo started >> {judge}/{name}; {count}; {self.end}"

    @property
    def log(self) -> bytes:
        """Return its whole log."""
        return b"".join(b"line %d\n" % number for number in range(1, self.lines + 1))


KINDS: Final = (
    Kind("short", 100, "exit 0", "SUCCEEDED"),
    Kind("long", 2000, "exit 0", "SUCCEEDED"),
    Kind("failing", 50, "exit 3", "FAILED"),
    Kind("stopped", 20, "exec sleep 3600", "STOPPED", 8.0),
)


@dataclass
class Accepted:
    """A job that the console has accepted."""

    name: str
    kind: Kind
    id: str


@dataclass
class Storm:
    """A console, its database and its disk, what was asked of it, and how it was broken."""

    stack: Stack
    database: postgres.Server
    judge: Path
    token: str
    accepted: list[Accepted] = field(default_factory=list)
    acts: Counter[str] = field(default_factory=Counter)
    full: list[tuple[float, float]] = field(default_factory=list)
    samples: list[tuple[float, float, float, float]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def api(self) -> httpx.Client:
        """Return a client of the native API."""
        return httpx.Client(
            base_url=f"{self.stack.base_url}/api/console/v1/",
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=20,
            trust_env=False,
        )

    def ask(self, method: str, path: str, **arguments: Any) -> httpx.Response | None:
        """Ask once; None where the console does not answer, or not now."""
        try:
            with self.api() as api:
                answer = api.request(method, path, **arguments)
        except httpx.HTTPError:
            return None
        if answer.status_code >= 500 or answer.status_code == 429:
            return None
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer

    # --- load -------------------------------------------------------------------------------------------

    def submit_all(self, until: float, order: random.Random) -> None:
        """Submit one job after the other, each until it is accepted; stop those that are to be stopped."""
        number = 0
        while time.monotonic() < until:
            number += 1
            kind = order.choice(KINDS)
            name = f"{kind.name}-{number}"
            role = {"name": "w", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 64, "gpuNumber": 0}
            role["command"] = kind.command(name, self.judge)
            body = {"file": json.dumps({"jobName": name, "image": "any", "taskRoles": [role]})}
            send = partial(self.ask, "POST", "jobs", json=body, headers={"Idempotency-Key": name})
            answer = wait_for(send, 240, 0.2)
            job = Accepted(name, kind, answer.json()["id"])
            self.accepted.append(job)
            if kind.stopped_after_s is not None:
                threading.Timer(kind.stopped_after_s, self.stop, [job]).start()
            self.over.wait(SUBMIT_EVERY_S)

    def stop(self, job: Accepted) -> None:
        """Stop a job once its log is there, as a person who looks at it does."""
        wait_for((self.judge / job.name).exists, 600, 0.2)
        time.sleep(job.kind.lines * 0.05)
        wait_for(lambda: self.ask("POST", f"jobs/{job.id}/stop"), 240, 0.2)

    # --- what breaks ------------------------------------------------------------------------------------

    def break_all(self, until: float, order: random.Random) -> None:
        """Break one thing after the other."""
        acts = {
            "kill": self.kill,
            "freeze": self.freeze,
            "agent killed": self.kill_agent,
            "console crashed": self.crash,
            "database killed": self.kill_database,
            "disk full": self.fill_disk,
        }
        while time.monotonic() < until:
            name = order.choices(list(acts), weights=(8, 5, 3, 1, 2, 1))[0]
            self.acts[acts[name](order) or name] += 1
            self.over.wait(order.uniform(*BREAK_EVERY_S))

    def family(self, program: str) -> list[psutil.Process]:
        """Return the processes of a program that run now."""
        record = read_record(self.stack.home / "run" / f"{program}.process")
        try:
            head = psutil.Process(record.pid) if record else None
            return [head, *head.children(recursive=True)] if head else []
        except psutil.NoSuchProcess:
            return []

    def signal(self, processes: list[psutil.Process], number: int) -> None:
        """Send a signal to those that are still there."""
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def kill(self, order: random.Random) -> str:
        """Kill a program with what it forked."""
        program = order.choice(PROGRAMS)
        self.signal(self.family(program), SIGKILL)
        return f"{program} killed"

    def freeze(self, order: random.Random) -> str:
        """Freeze a program for some seconds."""
        program, seconds = order.choice(PROGRAMS), order.uniform(*FROZEN_S)
        frozen = self.family(program)
        self.signal(frozen, SIGSTOP)
        self.over.wait(seconds)
        self.signal(frozen, SIGCONT)
        return f"{program} frozen"

    def kill_agent(self, _order: random.Random) -> None:
        """Kill the agent of the local cluster."""
        agents = [each for each in self.stack.processes() if _name_of(each) == AGENT]
        self.signal(agents, SIGKILL)

    def crash(self, _order: random.Random) -> None:
        """Kill the console's first process, and start it again."""
        self.stack.crash()
        self.stack.start(healthy=False)

    def kill_database(self, order: random.Random) -> None:
        """Kill the database server, and start it again after some seconds."""
        self.database.kill()
        self.over.wait(order.uniform(0.5, 5))
        self.database.start()

    def fill_disk(self, order: random.Random) -> None:
        """Leave no byte on the console's disk for some seconds."""
        began, ballast = time.time(), self.stack.home / "ballast"
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(b"\0" * (1 << 16))
        self.over.wait(order.uniform(*FROZEN_S))
        ballast.unlink()
        self.full.append((began, time.time()))

    # --- what is measured -------------------------------------------------------------------------------

    def sample_all(self, until: float) -> None:
        """Note the console's memory (PSS, MiB), open files and disk (MiB), by the hour."""
        began = time.monotonic()
        while time.monotonic() < until:
            memory = files = 0.0
            for process in [each for program in PROGRAMS for each in self.family(program)]:
                with suppress(psutil.Error):
                    memory += process.memory_full_info().pss / (1 << 20)
                    files += process.num_fds()
            used = shutil.disk_usage(self.stack.home).used / (1 << 20)
            self.samples.append(((time.monotonic() - began) / 3600, memory, files, used))
            self.over.wait(SAMPLE_EVERY_S)

    # --- the verdict ------------------------------------------------------------------------------------

    def state(self, job: Accepted) -> str:
        """Return the state in which a job has ended; "" before."""
        answer = self.ask("GET", f"jobs/{job.id}")
        state = str(answer.json()["state"]) if answer else ""
        return state if state in ENDED else ""

    def reason(self, job: Accepted) -> str:
        """Return why a job has ended as it has."""
        answer = self.ask("GET", f"jobs/{job.id}")
        return str(answer.json()["reason"]) if answer else ""

    def log(self, job: Accepted) -> bytes | None:
        """Return the whole log of a job."""
        params = {"role": "w", "index": "0", "limit": "1000000"}
        answer = self.ask("GET", f"jobs/{job.id}/logs", params=params)
        return answer.content if answer else None

    def find_faults(self) -> list[str]:
        """Return what is wrong with the accepted jobs once all is healed."""
        wait_for(lambda: all(self.state(job) for job in self.accepted), HEAL_S, 1)
        return [fault for job in self.accepted for fault in self._faults_of(job)]

    def _faults_of(self, job: Accepted) -> Iterator[str]:
        state = self.state(job)
        if state != job.kind.state:
            yield f"{job.name} ({job.id}) ended as {state}: {self.reason(job)}"
        path = self.judge / job.name
        starts = len(path.read_text().splitlines()) if path.exists() else 0
        if starts != 1:
            yield f"{job.name} ({job.id}) was started {starts} times"
        (found,) = wait_for(lambda: None if (log := self.log(job)) is None else (log,), 60)
        pieces = NOTICE.split(found)  # what was dropped between two of them may begin in the middle of a line
        if not _stand_in_order(pieces, job.kind.log):
            yield f"{job.name} ({job.id}) has something in its log that it did not write"
        elif sum(map(len, pieces)) < len(job.kind.log) and not self._had_full_disk(job):
            yield f"{job.name} ({job.id}): {len(found)} bytes of log, not {len(job.kind.log)}"

    def _had_full_disk(self, job: Accepted) -> bool:
        """Tell whether the disk was full while a job ran: what does not fit then is dropped, and said so."""
        answer = wait_for(lambda: self.ask("GET", f"jobs/{job.id}"), 60).json()
        began, ended = (
            datetime.fromisoformat(answer[name]).timestamp() for name in ("created_at", "ended_at")
        )
        return any(first <= ended + GRACE_S and began <= last for first, last in self.full)


def _stand_in_order(pieces: Sequence[bytes], whole: bytes) -> bool:
    """Tell whether the pieces stand in the whole one after the other."""
    end = 0
    for piece in pieces:
        start = whole.find(piece, end)
        if start < 0:
            return False
        end = start + len(piece)
    return True


def _name_of(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.Error:
        return ""


@contextmanager
def make_storm() -> Iterator[Storm]:
    """A console on a database server and a small disk of its own; nothing of it is left."""
    programs = postgres.find_programs()
    assert programs is not None, "there is no PostgreSQL"
    judge = Path(tempfile.mkdtemp(prefix="jc-judge-", dir="/var/tmp"))
    judge.chmod(0o777)
    local = {"engine": "none", "allow_plain": True, "cpu_milli": 64_000, "show": [str(judge)]}
    database = postgres.Server(programs, settings=("max_connections=200", "jit=off"))
    database.start()
    stack = Stack(
        {"CONSOLE_LOCAL": json.dumps(local), "CONSOLE_DISK_FLOOR_MIB": "64", "DATABASE_URL": database.url}
    )
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=700", "storm", str(stack.home)]
    subprocess.run(mount, check=True)
    try:
        prepared.copy_home(stack.home)
        stack.start()
        token = json.loads(stack.manage("issue_token", "admin"))["token"]
        yield Storm(stack, database, judge, token)
    finally:
        del stack.environ["DATABASE_URL"]  # which goes as a whole
        with suppress(AssertionError):
            stack.stop()
        for process in stack.processes():
            with suppress(psutil.NoSuchProcess):
                process.kill()
        subprocess.run(["umount", "--lazy", str(stack.home)], check=False)
        stack.remove()
        database.remove()
        shutil.rmtree(judge, ignore_errors=True)


def slope(samples: list[tuple[float, float, float, float]], column: int) -> float:
    """Return the change an hour of a column, by least squares."""
    if len(samples) < 2:
        return 0.0
    hours, values = [each[0] for each in samples], [each[column] for each in samples]
    middle, mean = sum(hours) / len(hours), sum(values) / len(values)
    spread = sum((hour - middle) ** 2 for hour in hours)
    return sum((h - middle) * (v - mean) for h, v in zip(hours, values, strict=True)) / spread


def run(minutes: float, seed: int) -> int:
    """Let it storm, print what came out, and return the number of faults."""
    with make_storm() as storm:
        until = time.monotonic() + 60 * minutes
        parts = [
            threading.Thread(target=storm.submit_all, args=[until, random.Random(seed)]),
            threading.Thread(target=storm.break_all, args=[until, random.Random(seed + 1)]),
            threading.Thread(target=storm.sample_all, args=[until]),
        ]
        for part in parts:
            part.start()
        for part in parts:
            part.join()
        faults = storm.find_faults()
        print(f"seed {seed}, {minutes:g} min: {len(storm.accepted)} jobs accepted")
        print(f"broken {storm.acts.total()} times: {dict(sorted(storm.acts.items()))}")
        for name, column, unit in (("memory (PSS)", 1, "MiB"), ("open files", 2, ""), ("disk", 3, "MiB")):
            values = [each[column] for each in storm.samples]
            change = slope(storm.samples, column)
            print(f"{name}: {min(values):.0f} to {max(values):.0f} {unit}, {change:+.0f} {unit} an hour")
        print("\n".join([f"{len(faults)} faults", *faults]))
        return len(faults)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="make storm-all", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("needs root: the console's folder lies on a small disk of its own")
    sys.exit(1 if run(options.minutes, options.seed) else 0)


if __name__ == "__main__":
    main()

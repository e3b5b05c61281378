"""How fast jobs are accepted and checked, and by how much CPU, beside the console of an earlier commit.

Both consoles run at a time, with what goes on with jobs frozen, and are called in turn, so that other work on
the machine slows both.  Each round gives one ratio; shown is the 95 % interval of their geometric mean.  The
CPU of the web program depends least on what else the machine does.
"""

from __future__ import annotations

import json
import math
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Final

import psutil

from console.home import CHECKOUT
from tests.bench.accept import AT_ONCE, ROUND_S, UNLIMITED, freeze_workers
from tests.bench.figures import Figure
from tests.bench.load import Call, rate
from tests.scenes import MACHINE, job_file
from tests.stack import running
from tests.waiting import wait_for

ROUNDS: Final = 7
STUDENT: Final = 2.447
"""Student's t for 95 % of 7 values."""

WHAT: Final = {"jobs accepted": ("jobs", 201), "job files checked": ("check", 200)}
"""The figures: the operation of the API, and the status of its answer."""


@dataclass(frozen=True, slots=True)
class Side:
    """A console with its workers frozen: its web program, and the call of each figure."""

    web: psutil.Process
    calls: Mapping[str, Call]

    def measure(self, what: str) -> tuple[float, float]:
        """Return the calls a second of one round, and the CPU of each in milliseconds."""
        began, used = time.perf_counter(), self._cpu_s()
        answers = rate(self.calls[what], seconds=ROUND_S, at_once=AT_ONCE)
        busy = (self._cpu_s() - used) / (time.perf_counter() - began)
        return answers, 1000 * busy / answers

    def _cpu_s(self) -> float:
        processes = [self.web, *self.web.children(recursive=True)]
        return sum(sum(process.cpu_times()[:2]) for process in processes)


def measure(commit: str) -> list[Figure]:
    """Both consoles in turn, `ROUNDS` times; raises CalledProcessError where the commit is not known."""
    with _checkout(commit) as earlier, ExitStack() as stacks:
        before, now = (stacks.enter_context(_side(folder)) for folder in (earlier, CHECKOUT))
        rounds = [_round(before, now, is_odd=bool(number % 2)) for number in range(ROUNDS)]
    return [figure for what in WHAT for figure in _figures(what, [each[what] for each in rounds], commit)]


Pair = tuple[tuple[float, float], tuple[float, float]]
"""A rate and a CPU time of the earlier console, and those of this one."""


def _round(before: Side, now: Side, *, is_odd: bool) -> dict[str, Pair]:
    """Measure both, in another order every other time."""
    pairs = {}
    for what in WHAT:
        values = {side.web.pid: side.measure(what) for side in ((now, before) if is_odd else (before, now))}
        pairs[what] = values[before.web.pid], values[now.web.pid]
    return pairs


def _figures(what: str, pairs: Sequence[Pair], commit: str) -> Iterator[Figure]:
    for number, (name, unit, target) in enumerate(
        ((what, "/s", "≥ 1×"), (f"{what}, CPU of each", "ms", "≤ 1×"))
    ):
        before, now = ([pair[side][number] for pair in pairs] for side in (0, 1))
        low, high = interval([new / old for old, new in zip(before, now, strict=True)])
        told = f"{name}: {low:.2f}–{high:.2f}×"
        yield Figure(told, median(now), unit, median(before), commit, target)


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the geometric mean of `ROUNDS` ratios."""
    logarithms = [math.log(ratio) for ratio in ratios]
    middle, half = fmean(logarithms), STUDENT * stdev(logarithms) / math.sqrt(len(logarithms))
    return math.exp(middle - half), math.exp(middle + half)


@contextmanager
def _checkout(commit: str) -> Iterator[Path]:
    """The files of a commit in a folder of their own."""
    with tempfile.TemporaryDirectory(prefix="before-") as name:
        folder = Path(name) / "checkout"
        git = ("git", "-C", str(CHECKOUT), "worktree")
        subprocess.run([*git, "add", "--quiet", "--detach", str(folder), commit], check=True)
        try:
            yield folder
        finally:
            subprocess.run([*git, "remove", "--force", str(folder)], check=True)


@contextmanager
def _side(checkout: Path) -> Iterator[Side]:
    """A console of the checkout."""
    with running({**MACHINE, **UNLIMITED}, checkout) as stack:
        token = json.loads(stack.manage("issue_token", "admin"))["token"]
        body = json.dumps({"file": job_file("bench")}).encode()
        calls = {
            what: Call(f"{stack.base_url}/api/console/v1/{path}", token, body, status)
            for what, (path, status) in WHAT.items()
        }
        wait_for(lambda: freeze_workers(stack, calls["jobs accepted"]), timeout=120)
        yield Side(psutil.Process(stack.pid("web")), calls)
        stack.crash()

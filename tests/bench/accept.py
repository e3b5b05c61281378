"""How fast jobs are accepted, beside the barest view on the same database.

The programs that would go on with the jobs are frozen meanwhile, so that both sides have the machine to
themselves.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Final

import httpx

from console.home import CHECKOUT
from tests.bench.figures import Figure, percentile
from tests.bench.load import Call, durations, per_second
from tests.ports import free_port
from tests.scenes import MACHINE, job_file
from tests.stack import Stack, running
from tests.waiting import wait_for

ROUNDS: Final = 3
ROUND_S: Final = 3.0
AT_ONCE: Final = 8
CALLERS: Final = (1, AT_ONCE, 32)
PROCESSES: Final = (1, 2)
BESIDE: Final = "the barest view"
PACE: Final = 50.0
PACED_S: Final = 10.0
UNLIMITED: Final = {"CONSOLE_API_REQUESTS_PER_MINUTE": "0"}
"""One token sends everything here."""

WORKING: Final = ("worker-control", "worker-logs", "worker-notices", "beat", "watch")


def measure() -> list[Figure]:
    """With one web process and with two; the paced calls with one alone."""
    return [figure for processes in PROCESSES for figure in _measure(processes)]


def _measure(processes: int) -> Iterator[Figure]:
    web = f"{processes} web process" + ("es" if processes > 1 else "")
    environ = {**MACHINE, **UNLIMITED, "CONSOLE_WEB_PROCESSES": str(processes)}
    with running(environ) as stack, _bare(stack) as bare_url:
        token = json.loads(stack.manage("issue_token", "admin"))["token"]
        body = json.dumps({"file": job_file("bench")}).encode()
        ours = Call(f"{stack.base_url}/api/console/v1/jobs", token, body)
        bare = Call(bare_url, token, body)
        wait_for(lambda: freeze_workers(stack, ours), timeout=120)
        for callers in CALLERS:
            yield from _compare(ours, bare, callers, web)
        if processes == 1:
            paced = durations(ours, per_second=PACE, seconds=PACED_S)
            what = f"jobs accepted at {PACE:g}/s"
            yield Figure(f"{what}, p50", 1000 * percentile(paced, 50), "ms")
            yield Figure(f"{what}, p99", 1000 * percentile(paced, 99), "ms", target="≤ 250 ms")
        stack.crash()


def _compare(ours: Call, bare: Call, callers: int, web: str) -> Iterator[Figure]:
    """Call both sides in turn, `ROUNDS` times."""
    sides: tuple[list[float], list[float]] = ([], [])
    taken: tuple[list[float], list[float]] = ([], [])
    for _round in range(ROUNDS):
        for side, call in enumerate((ours, bare)):
            answers, durations_s = per_second(call, seconds=ROUND_S, at_once=callers)
            sides[side].append(answers)
            taken[side].extend(durations_s)
    what = f"jobs accepted, {callers} caller{'s' if callers > 1 else ''}, {web}"
    yield Figure(what, median(sides[0]), "/s", median(sides[1]), BESIDE, "≥ 0.6×")
    console, barest = (1000 * percentile(each, 99) for each in taken)
    target = "≤ 400 ms" if callers == max(CALLERS) else ""
    yield Figure(f"{what}, p99", console, "ms", barest, BESIDE, target)


def freeze_workers(stack: Stack, call: Call) -> bool:
    """Freeze what goes on with jobs; return whether `call` is answered then.

    It is not where a program was frozen in the middle of a transaction, which holds up all others.
    """
    for program in WORKING:
        stack.kill(program, signal.SIGSTOP)
    try:
        answer = httpx.post(call.url, content=call.body, headers=call.headers, timeout=3, trust_env=False)
        if answer.status_code == httpx.codes.CREATED:
            return True
    except httpx.HTTPError:
        pass
    for program in WORKING:
        stack.kill(program, signal.SIGCONT)
    return False


@contextmanager
def _bare(stack: Stack) -> Iterator[str]:
    """The barest view in a uvicorn of its own, on the console's database."""
    port = free_port()
    options = ("--port", str(port), "--loop", "uvloop", "--http", "httptools", "--lifespan", "off")
    serving = subprocess.Popen(
        [
            *(sys.executable, "-m", "uvicorn", "--factory", "django.core.asgi:get_asgi_application"),
            *(*options, "--no-access-log", "--log-level", "warning"),
        ],
        cwd=CHECKOUT,
        env={**stack.environ, "DJANGO_SETTINGS_MODULE": "tests.bench.bare_settings"},
    )
    try:
        wait_for(lambda: _answers(port), timeout=60, interval=0.1)
        yield f"http://127.0.0.1:{port}/jobs"
    finally:
        serving.kill()
        serving.wait()


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/", trust_env=False).status_code == 404
    except httpx.HTTPError:
        return False

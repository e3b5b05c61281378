"""PAI-DLC's API as its clients call it: signed CreateJob beside the native API, ListJobs with many jobs.

Everything that a request costs is measured, the console's own check of the signature included.
"""

from __future__ import annotations

import json
import time
from statistics import median
from typing import Final

import httpx

from tests.bench.accept import AT_ONCE, ROUND_S, ROUNDS, UNLIMITED, freeze_workers
from tests.bench.figures import Figure, percentile
from tests.bench.load import Call, SignedCall, rate
from tests.scenes import MACHINE
from tests.signed import Key, acs3_headers
from tests.stack import Stack, running
from tests.waiting import wait_for

FEW: Final = 1_000
MANY: Final = 1_000_000
PAGES: Final = 60
MAKING_S: Final = 1800
"""Seconds that it may take to make so many jobs."""

FILE: Final = {
    "DisplayName": "bench",
    "JobType": "PyTorchJob",
    "JobSpecs": [
        {"Type": "Worker", "PodCount": 1, "ResourceConfig": {"CPU": "1", "Memory": "256Mi"}, "Image": ""}
    ],
    "UserCommand": "true",
}


def measure() -> list[Figure]:
    """Both sides in turn, `ROUNDS` times, with the workers frozen."""
    body = json.dumps(FILE).encode()
    with running({**MACHINE, **UNLIMITED}) as stack:
        token = json.loads(stack.manage("issue_token", "admin"))["token"]
        native = Call(
            f"{stack.base_url}/api/console/v1/jobs", token, json.dumps({"file": body.decode()}).encode()
        )
        signed = SignedCall(f"{stack.base_url}/api/v1/jobs", "", body, 200, key=_issue_key(stack))
        wait_for(lambda: freeze_workers(stack, native), timeout=120)
        rates = [
            [rate(call, seconds=ROUND_S, at_once=AT_ONCE) for call in (native, signed)]
            for _round in range(ROUNDS)
        ]
        stack.crash()
    by_native, by_signed = (median(side) for side in zip(*rates, strict=True))
    return [Figure("signed CreateJob", by_signed, "/s", by_native, "the native API")]


def measure_lists() -> list[Figure]:
    """The first pages of ListJobs with many jobs, beside the same with few."""
    few, many = (_list_durations(number) for number in (FEW, MANY))
    what = f"ListJobs of {MANY:,} jobs, p95"
    return [
        Figure(
            what,
            1000 * percentile(many, 95),
            "ms",
            1000 * percentile(few, 95),
            f"of {FEW:,}",
            "≤ 1.5×, ≤ 150 ms",
        )
    ]


def _list_durations(number: int) -> list[float]:
    """Return the seconds that pages of ListJobs take among so many jobs."""
    with running(MACHINE) as stack, httpx.Client(trust_env=False, timeout=120) as client:
        stack.manage("demo", "--yes", "--jobs", str(number), timeout=MAKING_S)
        key = _issue_key(stack)
        durations = []
        for turn in range(PAGES + 5):
            url = f"{stack.base_url}/api/v1/jobs?PageNumber={turn % 5 + 1}&PageSize=20"
            began = time.perf_counter()
            answer = client.get(url, headers=acs3_headers(key, "GET", url))
            durations.append(time.perf_counter() - began)
            assert answer.status_code == httpx.codes.OK, answer.text
        return durations[5:]


def _issue_key(stack: Stack) -> Key:
    issued = json.loads(stack.manage("issue_access_key", "admin"))
    return Key(issued["access_key_id"], issued["access_key_secret"])

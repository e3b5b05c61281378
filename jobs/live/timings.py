"""How long things take, and how many streams are open: figures to which all processes of a console add.

`console.run` names the folder in which they share them (PROMETHEUS_MULTIPROC_DIR); a program that was started
otherwise keeps its own.  They begin anew with each start of the console, as Prometheus expects of counters.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final, Literal

from prometheus_client import CollectorRegistry, Gauge, Histogram

registry = CollectorRegistry(auto_describe=False)

Call = Literal["submit", "observe", "stop", "inventory"]

HTTP_S: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
ENGINE_S: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
START_S: Final = (0.5, 1, 2, 5, 10, 30, 60, 300, 1800, 3600, 4 * 3600, 24 * 3600)
"""Bounds in seconds: from what a person does not notice to what an admin has to look at."""

http_requests = Histogram(
    "console_http_request_duration_seconds",
    "Time from a request to the beginning of its answer.",
    ("method", "route", "status"),
    buckets=HTTP_S,
    registry=registry,
)
_engine_calls = Histogram(
    "console_engine_call_duration_seconds",
    "Time that a cluster's engine takes to answer, refusals and failures included.",
    ("cluster", "call"),
    buckets=ENGINE_S,
    registry=registry,
)
_starts = Histogram(
    "console_submit_to_start_seconds",
    "Time from a job's submission to its first start.",
    ("cluster",),
    buckets=START_S,
    registry=registry,
)


@cache
def open_streams() -> Gauge:
    """Return the gauge of open streams, made when it is first asked for.

    Its file is that of one process: it must not be open before the web processes are forked.
    """
    return Gauge(
        "console_open_streams",
        "Live streams of all web processes.",
        multiprocess_mode="livesum",
        registry=registry,
    )


@contextmanager
def engine_call(cluster: str, call: Call) -> Iterator[None]:
    """Time a call to the engine of a cluster, named by its short name."""
    began = time.monotonic()
    try:
        yield
    finally:
        _engine_calls.labels(cluster, call).observe(time.monotonic() - began)


def record_start(cluster: str, seconds: float) -> None:
    """Record that a job of a cluster started for the first time, `seconds` after it was submitted."""
    _starts.labels(cluster).observe(max(0.0, seconds))

"""Usage of replicas by a site's Prometheus: one query a metric, whatever the number of jobs.

https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from jobs import egress
from jobs.addresses import AddressError
from jobs.backends.base import Handle, Unreachable
from jobs.backends.measures import MeasuredElsewhere, Transferred, Use
from jobs.backends.metrics_source import MetricsSource
from jobs.models import Attempt, Replica
from jobs.states import ReplicaState

MOST_BYTES: Final = 16 << 20
"""Of one answer: some 100,000 series."""

_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}

Values = Mapping[tuple[str, str], float]
"""By the engine's number for the job and the node's short name."""


def measure(
    source: MetricsSource, backend: MeasuredElsewhere, attempts: Sequence[Attempt]
) -> dict[Handle, list[Use]]:
    """Return the usage of the running replicas of each attempt, as `Measuring.measure` does.

    A series has no replica, so that of several replicas of a job on one node none is told apart: these are
    left out, as is what has no series.  Raises Unreachable.
    """
    values = {metric: ask(source, query) for metric, query in source.list_queries().items()}
    numbers = {attempt.pk: backend.engine_number(Handle(attempt.handle)) for attempt in attempts}
    runs = {attempt.pk: attempt.job.run_number for attempt in attempts}
    rows = Replica.objects.filter(attempt__in=numbers, state=ReplicaState.RUNNING).exclude(node="")
    replicas = [row for row in rows if row.run == runs[row.attempt_id]]
    on_node = Counter((row.attempt_id, row.node) for row in replicas)
    handles = {attempt.pk: Handle(attempt.handle) for attempt in attempts}
    found: dict[Handle, list[Use]] = defaultdict(list)
    for row in replicas:
        key = numbers[row.attempt_id], _short(row.node)
        known = {metric: series[key] for metric, series in values.items() if key in series}
        if known and on_node[row.attempt_id, row.node] == 1:
            found[handles[row.attempt_id]].append(_use(row, known))
    return dict(found)


def ask(source: MetricsSource, query: str) -> Values:
    """Return the values of a query.  Raises Unreachable."""
    body = urlencode({"query": query}).encode()
    try:
        answer = egress.request(
            "POST", f"{source.prometheus}/api/v1/query", headers=_FORM, body=body, most=MOST_BYTES
        )
    except AddressError as error:
        raise Unreachable(f"{source.prometheus}: {error}") from error
    try:
        found = json.loads(answer.body)
        if found["status"] != "success":
            raise Unreachable(f"{source.prometheus}: {found['error']}")
        return dict(_read(source, found["data"]["result"]))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        status = f"{source.prometheus}: answers {answer.status}, which can't be read"
        raise Unreachable(status) from error


def _read(
    source: MetricsSource, series: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[tuple[str, str], float]]:
    for each in series:
        labels = each["metric"]
        job = next((labels[name] for name in source.job_labels if labels.get(name)), "")
        node = next((labels[name] for name in source.node_labels if labels.get(name)), "")
        value = float(each["value"][1])
        if job and node and math.isfinite(value):
            yield (job, _short(node)), value


def _short(node: str) -> str:
    """Return a node's name without its domain, and without the port of an exporter."""
    return node.partition(":")[0].partition(".")[0]


def _use(replica: Replica, known: Mapping[str, float]) -> Use:
    def count(metric: str) -> int | None:
        return round(known[metric]) if metric in known else None

    gpu, memory = count("gpu_percent"), count("memory_bytes")
    return Use(
        role=replica.role,
        index=replica.index,
        cpu_s=known.get("cpu_seconds"),
        memory_mib=None if memory is None else memory >> 20,
        gpu_percents=None if gpu is None else (gpu,),
        transferred=Transferred(
            count("disk_read_bytes"),
            count("disk_written_bytes"),
            count("received_bytes"),
            count("sent_bytes"),
        ),
    )

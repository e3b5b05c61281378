"""Usage of replicas by a site's Prometheus: one query a metric, whatever the number of jobs.

https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode, urlsplit

from jobs.backends.base import Handle, Unreachable
from jobs.backends.measures import MeasuredElsewhere, Transferred, Use
from jobs.backends.metrics_source import MetricsSource
from jobs.messages.deliveries import delivery_message
from jobs.messages.metrics_source import metrics_source_message
from jobs.models import Attempt, Replica
from jobs.outbound import egress
from jobs.outbound.addresses import PORTS, AddressError, Refused
from jobs.states import ReplicaState

MOST_BYTES: Final = 16 << 20
"""Of one answer: some 100,000 series."""

_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}

_CODES: Final[Mapping[int, str]] = {401: "credentials", 403: "credentials", 404: "not_found"}
"""By the status of an answer that is not Prometheus' own."""

Values = Mapping[tuple[str, str], float]
"""By the engine's number for the job and the node's short name."""


class Unanswered(Unreachable):
    """Prometheus did not answer a query; `code` and `params` are of `jobs.messages.metrics_source`."""

    def __init__(self, code: str, params: Mapping[str, object]) -> None:
        super().__init__(metrics_source_message(code, params))
        self.code, self.params = code, params


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
    """Return the values of a query.  Raises Unanswered."""
    return {
        (job, _short(node)): value
        for job, node, value in (_read(source, *each) for each in _fetch(source, query))
        if job and node and math.isfinite(value)
    }


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The result of a query of a metric; `code` and `params` are of `jobs.messages.metrics_source`."""

    code: str
    params: Mapping[str, object]

    @property
    def is_good(self) -> bool:
        """Tell whether it found series of jobs."""
        return self.code == "ok"

    def __str__(self) -> str:
        return metrics_source_message(self.code, self.params)


def check_queries(source: MetricsSource) -> list[QueryResult]:
    """Return the result of each query, or of the connection alone where there is no answer at all."""
    try:
        _fetch(source, "vector(1)")
    except Unanswered as error:
        return [QueryResult(error.code, error.params)]
    return [_check_query(source, metric, query) for metric, query in source.list_queries().items()]


def _check_query(source: MetricsSource, metric: str, query: str) -> QueryResult:
    params: dict[str, object] = {"metric": metric}
    try:
        series = _fetch(source, query)
    except Unanswered as error:
        return QueryResult(error.code, {**params, **error.params})
    if not series:
        return QueryResult("no_series", params)
    found = [_read(source, *each) for each in series]
    names = sorted({name for labels, _value in series for name in labels})
    for code, at, expected in (("no_job", 0, source.job_labels), ("no_node", 1, source.node_labels)):
        if not any(each[at] for each in found):
            told = {"expected": ", ".join(expected), "labels": ", ".join(names) or "–"}
            return QueryResult(code, {**params, **told})
    return QueryResult("ok", {**params, "count": sum(bool(job and node) for job, node, _value in found)})


def _fetch(source: MetricsSource, query: str) -> list[tuple[Mapping[str, str], float]]:
    """Return the labels and the value of each series of a query.  Raises Unanswered."""
    body = urlencode({"query": query}).encode()
    address = source.prometheus
    try:
        answer = egress.request("POST", f"{address}/api/v1/query", headers=_FORM, body=body, most=MOST_BYTES)
    except Refused as error:
        raise Unanswered("refused", {"entry": _egress_entry(address)}) from error
    except AddressError as error:
        detail = delivery_message(error.code, error.detail)
        raise Unanswered("away", {"address": address, "detail": detail}) from error
    params: dict[str, object] = {"address": address, "status": answer.status}
    if answer.status in _CODES:
        raise Unanswered(_CODES[answer.status], params)
    try:
        found = json.loads(answer.body)
        if found["status"] != "success":
            raise Unanswered("query", {"detail": str(found["error"])})
        return [(each["metric"], float(each["value"][1])) for each in found["data"]["result"]]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise Unanswered("unreadable", params) from error


def _egress_entry(address: str) -> str:
    """Return what CONSOLE_EGRESS_HOSTS would have to name."""
    parts = urlsplit(address)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    if parts.scheme == "http":
        return f"http://{host}:{parts.port or PORTS['http']}"
    return f"{host}:{parts.port or PORTS['https']}"


def _read(source: MetricsSource, labels: Mapping[str, str], value: float) -> tuple[str, str, float]:
    """Return the job, the node and the value of a series, "" for a label that it does not have."""
    job = next((labels[name] for name in source.job_labels if labels.get(name)), "")
    node = next((labels[name] for name in source.node_labels if labels.get(name)), "")
    return job, node, value


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

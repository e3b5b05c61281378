"""GET /metrics, in Prometheus' text format.

What one process counts is of little use where there are several, so most figures are read from the database
when somebody asks: another part adds its own with `measure` and `count`. Only how long things take is
recorded as it happens, for all processes together: `jobs.live.timings`.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from console.monitoring.probes import operators_only
from jobs.live import timings

Reading = Mapping[tuple[str, ...], float]

registry = CollectorRegistry(auto_describe=False)
ProcessCollector(registry=registry)
PlatformCollector(registry=registry)


Family = type[GaugeMetricFamily] | type[CounterMetricFamily]


@dataclass(frozen=True, slots=True)
class _Figure(Collector):
    family: Family
    name: str
    about: str
    labels: tuple[str, ...]
    read: Callable[[], Reading]

    def collect(self) -> Iterable[GaugeMetricFamily | CounterMetricFamily]:
        family = self.family(self.name, self.about, labels=self.labels)
        for values, number in self.read().items():
            family.add_metric(values, number)
        yield family

    def describe(self) -> Iterable[GaugeMetricFamily | CounterMetricFamily]:
        """Names only: registering reads nothing."""
        yield self.family(self.name, self.about, labels=self.labels)


def measure(name: str, about: str, labels: tuple[str, ...], read: Callable[[], Reading]) -> None:
    """Add a gauge: `read` is called at each request and answers a number for each tuple of label values.

    Raises `ValueError` when the name is taken.
    """
    registry.register(_Figure(GaugeMetricFamily, name, about, labels, read))


def count(name: str, about: str, labels: tuple[str, ...], read: Callable[[], Reading]) -> None:
    """Add a counter, whose numbers only grow; its name ends with `_total`.  Otherwise like `measure`."""
    registry.register(_Figure(CounterMetricFamily, name, about, labels, read))


def _timings() -> CollectorRegistry:
    """Return the histograms of all processes, or of this one where they share no folder."""
    if not (folder := os.environ.get("PROMETHEUS_MULTIPROC_DIR")):
        return timings.registry
    for path in Path(folder).glob("gauge_live*_*.db"):  # of processes that ended without a word
        if not psutil.pid_exists(pid := int(path.stem.rpartition("_")[2])):
            mark_process_dead(pid)  # type: ignore[no-untyped-call]
    together = CollectorRegistry(auto_describe=False)
    MultiProcessCollector(together)  # type: ignore[no-untyped-call]
    return together


@require_safe
@never_cache
@operators_only
def metrics(request: HttpRequest) -> HttpResponse:
    """All figures, and this process's memory, CPU time and open files."""
    timings.open_streams()  # is there before the first stream
    text = generate_latest(registry) + generate_latest(_timings())
    return HttpResponse(text, content_type=CONTENT_TYPE_LATEST)

"""GET /metrics, in Prometheus' text format.

What one process counts is of little use where there are several, so the figures here are read from the
database when somebody asks. Another part adds its own with `measure`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from console.monitoring.probes import operators_only

Reading = Mapping[tuple[str, ...], float]

registry = CollectorRegistry(auto_describe=False)
ProcessCollector(registry=registry)
PlatformCollector(registry=registry)


@dataclass(frozen=True, slots=True)
class _Gauge(Collector):
    name: str
    about: str
    labels: tuple[str, ...]
    read: Callable[[], Reading]

    def collect(self) -> Iterable[GaugeMetricFamily]:
        family = GaugeMetricFamily(self.name, self.about, labels=self.labels)
        for values, number in self.read().items():
            family.add_metric(values, number)
        yield family

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Names only: registering reads nothing."""
        yield GaugeMetricFamily(self.name, self.about, labels=self.labels)


def measure(name: str, about: str, labels: tuple[str, ...], read: Callable[[], Reading]) -> None:
    """Add a gauge: `read` is called at each request and answers a number for each tuple of label values.

    Raises `ValueError` when the name is taken.
    """
    registry.register(_Gauge(name, about, labels, read))


@require_safe
@never_cache
@operators_only
def metrics(request: HttpRequest) -> HttpResponse:
    """All gauges, and this process's memory, CPU time and open files."""
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)

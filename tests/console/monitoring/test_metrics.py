"""GET /metrics."""

import pytest
from django.test import Client
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from console.monitoring import metrics
from jobs.live import timings


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> CollectorRegistry:
    fresh = CollectorRegistry(auto_describe=False)
    monkeypatch.setattr(metrics, "registry", fresh)
    monkeypatch.setattr(timings, "registry", CollectorRegistry(auto_describe=False))
    return fresh


def test_gauge_is_read_at_each_request(client: Client, settings: Settings) -> None:
    settings.CONSOLE_METRICS_TOKEN = "t0ken"
    figures = iter([3, 5])
    metrics.measure(
        "console_jobs", "Jobs by state.", ("state",), lambda: {("RUNNING",): next(figures), ('odd "one"',): 1}
    )
    for expected in (3, 5):
        answer = client.get("/metrics", headers={"Authorization": "Bearer t0ken"})
        assert answer["Content-Type"].startswith("text/plain; version=")
        (family,) = text_string_to_metric_families(answer.content.decode())
        assert family.documentation == "Jobs by state."
        assert {sample.labels["state"]: sample.value for sample in family.samples} == {
            "RUNNING": expected,
            'odd "one"': 1,
        }


def test_gauge_registration_reads_nothing_and_refuses_a_duplicate_name() -> None:
    def read() -> metrics.Reading:
        raise AssertionError("read too early")

    metrics.measure("console_a", "", (), read)
    with pytest.raises(ValueError, match="Duplicated timeseries"):
        metrics.measure("console_a", "", (), read)

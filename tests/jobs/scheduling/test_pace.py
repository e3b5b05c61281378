"""A cluster whose controller others wait for too is looked at the more rarely the slower it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from jobs.backends.base import Gone, Handle, Observation, Unseen
from jobs.scheduling import reconcile
from quotas.clusters import poll_interval
from quotas.models import Cluster
from tests.jobs.conftest import Place, queued
from tests.jobs.engine import MemoryEngine


@pytest.fixture
def controller(engine: MemoryEngine) -> MemoryEngine:
    """The engine, scheduling by itself."""
    engine.has_scheduler = True
    return engine


def slow(engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let every look take so long, by the clock that it is measured with."""
    clock = [0.0]
    observe = engine.observe

    def late(handles: Sequence[Handle]) -> Mapping[Handle, Observation | Gone | Unseen]:
        clock[0] += seconds
        return observe(handles)

    monkeypatch.setattr(engine, "observe", late)
    monkeypatch.setattr("jobs.scheduling.reconcile.time.monotonic", lambda: clock[0])


def test_poll_interval_follows_last_duration_up_to_maximum() -> None:
    assert [poll_interval.interval_s(look) for look in (0.01, 0.5, 3.0, 40.0)] == [2.0, 5.0, 30.0, 60.0]


def test_slow_controller_is_polled_less_often(
    place: Place, controller: MemoryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    queued(place)
    reconcile.drain(place.cluster.pk)
    slow(controller, monkeypatch, 3.0)
    assert reconcile.due_clusters()["observe"] == [place.cluster.pk]
    reconcile.observe(place.cluster.pk)
    cluster = Cluster.objects.get()
    assert cluster.look_ms == 3000
    assert cluster.next_look_at is not None
    assert timedelta(seconds=25) < cluster.next_look_at - timezone.now() <= timedelta(seconds=30)
    assert reconcile.due_clusters()["observe"] == []
    Cluster.objects.update(next_look_at=timezone.now())
    assert reconcile.due_clusters()["observe"] == [place.cluster.pk]


def test_unreachable_controller_is_not_polled_for_some_time(place: Place, controller: MemoryEngine) -> None:
    queued(place)
    reconcile.drain(place.cluster.pk)
    controller.away = True
    reconcile.observe(place.cluster.pk)
    assert reconcile.due_clusters()["observe"] == []
    assert Cluster.objects.get().look_ms is None


def test_own_engine_is_polled_without_delay(place: Place, engine: MemoryEngine) -> None:
    queued(place)
    reconcile.drain(place.cluster.pk)
    reconcile.observe(place.cluster.pk)
    assert Cluster.objects.get().next_look_at is None


def test_cluster_admin_page_shows_poll_interval_and_reason(place: Place, admin_client: Client) -> None:
    page = reverse("admin:quotas_cluster_change", args=[place.cluster.pk])
    assert "Whenever an update is due." in admin_client.get(page).content.decode()
    poll_interval.record_poll(place.cluster.pk, 3.0)
    assert "Every 30 s; the last poll took 3.00 s." in admin_client.get(page).content.decode()

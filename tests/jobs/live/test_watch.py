"""`manage.py watch`: a bell that moves rings for its cluster, soon and not too often."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connections

from console.home import CHECKOUT
from jobs import clusters
from jobs.backends.base import Watching
from jobs.clusters import backend_for
from jobs.live import bus, triggers
from jobs.management.commands import watch as command
from quotas.models import Cluster
from tests.factories import make_cluster
from tests.serving import RedisServer
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("redis_server")


Rung = Callable[[Cluster], bool]


@pytest.fixture
def cluster(transactional_db: None) -> Cluster:
    return make_cluster("local")


@pytest.fixture
def bell(cluster: Cluster) -> Path:
    backend = backend_for(cluster)
    assert isinstance(backend, Watching)
    path = backend.bell()
    assert path is not None
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    return path


@pytest.fixture
def rung(monkeypatch: pytest.MonkeyPatch) -> Rung:
    """Whether a worker was asked to look at the cluster since this was last called; it has begun to look."""
    sent: set[int] = set()

    def send(_task: str, arguments: list[int], _queue: str) -> None:
        [cluster_id] = arguments
        sent.add(cluster_id)
        triggers.mark_started("observe", cluster_id)

    def was_rung(cluster: Cluster) -> bool:
        heard = cluster.pk in sent
        sent.discard(cluster.pk)
        return heard

    monkeypatch.setattr(triggers, "_send", send)
    return was_rung


@pytest.fixture
def watching(
    redis_server: RedisServer, cluster: Cluster, bell: Path, rung: Rung, monkeypatch: pytest.MonkeyPatch
) -> Iterator[threading.Thread]:
    monkeypatch.setattr(command, "CLUSTERS_S", 0.05)
    ended = threading.Event()

    def run() -> None:
        try:
            command.watch(ended)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    yield thread
    ended.set()
    thread.join()


def ring(bell: Path) -> None:
    """As a job's supervisor does; twice within a tick of the clock would be once."""
    before = bell.stat().st_mtime_ns if bell.exists() else 0

    def moved() -> bool:
        bell.touch()
        return bell.stat().st_mtime_ns != before

    wait_for(moved)


@pytest.mark.usefixtures("watching")
def test_watch_passes_on_each_ring(cluster: Cluster, bell: Path, rung: Rung) -> None:
    for _time in range(3):
        ring(bell)
        wait_for(lambda: rung(cluster))
    assert not rung(cluster)


@pytest.mark.usefixtures("watching")
def test_watch_adds_later_cluster_and_tolerates_broken_one(cluster: Cluster, bell: Path, rung: Rung) -> None:
    make_cluster("broken", config={"no": "such setting"})
    make_cluster("foreign", backend="klingon")
    later = make_cluster("later")

    def both() -> bool:
        ring(bell)
        return rung(later) and rung(cluster)

    wait_for(both)


@pytest.mark.usefixtures("watching")
def test_watch_ignores_disabled_cluster(cluster: Cluster, bell: Path, rung: Rung) -> None:
    other = make_cluster("other")
    Cluster.objects.filter(pk=cluster.pk).update(enabled=False)

    def only_the_other() -> bool:
        ring(bell)
        return rung(other) and not rung(cluster)

    wait_for(only_the_other)


def test_watch_survives_redis_restart(
    cluster: Cluster, bell: Path, watching: threading.Thread, rung: Rung, redis_server: RedisServer
) -> None:
    redis_server.stop()
    ring(bell)
    wait_for(lambda: not bus.is_reachable())
    redis_server.start()

    def heard() -> bool:
        ring(bell)
        return bus.is_reachable() and rung(cluster)

    wait_for(heard)
    assert watching.is_alive()


def test_watch_limits_endless_bell_to_ten_rings_a_second(
    cluster: Cluster, bell: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    class Ended(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout or 0.0)
            if len(waits) == 5:
                self.set()
            ring(bell)
            return True

    ring(bell)
    command.watch(Ended())
    assert waits == [command.REST_S] * 5
    assert command.REST_S >= 0.1


class Engine:
    """A stand-in for a backend that is followed: each call to `follow`, and how to tell of changes."""

    def __init__(self) -> None:
        self.calls: list[tuple[threading.Event, Callable[[], None]]] = []

    def follow(self, ended: threading.Event, changed: Callable[[], None]) -> None:
        self.calls.append((ended, changed))
        if len(self.calls) == 1:
            raise RuntimeError("a fault")
        ended.wait()


@pytest.mark.usefixtures("watching")
def test_watch_follows_a_cluster_until_its_settings_change(
    cluster: Cluster, rung: Rung, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine()
    monkeypatch.setattr(
        clusters, "backend_for", lambda each: engine if each.slug == "far" else backend_for(each)
    )
    far = make_cluster("far")
    wait_for(lambda: len(engine.calls) == 2)
    ended, changed = engine.calls[1]
    changed()
    wait_for(lambda: rung(far))
    assert not rung(cluster)
    Cluster.objects.filter(pk=far.pk).update(config={"other": "settings"}, enabled=False)
    wait_for(ended.is_set)
    wait_for(lambda: len(engine.calls) == 3)
    far.delete()
    wait_for(engine.calls[2][0].is_set)


def test_watch_without_database_waits_and_ends_on_sigterm(tmp_path: Path) -> None:
    home = tmp_path / "home"
    environ = {**os.environ, "CONSOLE_HOME": str(home)}
    environ.pop("DATABASE_URL", None)
    subprocess.run(
        [sys.executable, "-m", "console.configuration.keys"], cwd=CHECKOUT, env=environ, check=True
    )
    process = subprocess.Popen(
        [sys.executable, "manage.py", "watch"],
        cwd=CHECKOUT,
        env=environ,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        said = next(line for line in process.stderr if "watch_without_clusters" in line)
        assert str(settings.CONSOLE_HOME) not in said
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()

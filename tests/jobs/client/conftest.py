"""A console in this process: its pages and API on a port, a Redis, and a worker that goes round and round."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.db import connections

from jobs.live import bus, triggers
from jobs.models import Job
from jobs.scheduling import cleanup, reconcile, role_credentials
from quotas.models import Cluster, Role, User
from tests.factories import make_cluster, make_quota, make_user, make_workspace
from tests.jobs.access.terminal_gateway.conftest import shells
from tests.serving import RedisServer, web_server
from tests.waiting import wait_for


@pytest.fixture
def redis_server(settings: LazySettings) -> Iterator[RedisServer]:
    server = RedisServer()
    server.start()
    settings.REDIS_URL = server.url
    bus.client.cache_clear()
    bus._away_until = 0.0
    yield server
    server.remove()
    bus.client.cache_clear()


@pytest.fixture
def cluster(transactional_db: None, settings: LazySettings) -> Cluster:
    settings.CONSOLE_LOCAL = {"cpu_milli": 8000, "memory_mib": 65536, "gpus": {}, "engine": "none"}
    return make_cluster("local")


@pytest.fixture
def person(cluster: Cluster) -> User:
    made = make_user("olga")
    make_quota(make_workspace("vision", members={made: Role.DEVELOPER}), cluster, "default")
    return made


@pytest.fixture
def worker(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Everything that workers do for the clusters that there are, one step after the other."""
    clusters = list(Cluster.objects.values_list("pk", flat=True))
    monkeypatch.setattr(triggers, "_send", lambda *_arguments: None)
    over = threading.Event()

    def work() -> None:
        try:
            for pk in clusters:
                reconcile.take_inventory(pk)
            while not over.wait(0.1):
                for pk in clusters:
                    reconcile.drain(pk)
                    reconcile.observe(pk)
                    role_credentials.renew(pk)
                for attempt in reconcile.sealable():
                    cleanup.seal(attempt)
        finally:
            connections.close_all()

    thread = threading.Thread(target=work, name="worker")
    thread.start()
    yield
    try:
        wait_for(lambda: not Job.objects.filter(state="RUNNING").exists())  # a test ends what it began
    finally:
        over.set()
        thread.join()


@pytest.fixture
def console(redis_server: RedisServer, worker: None) -> Iterator[str]:
    with web_server() as url:
        yield url


@pytest.fixture
def file_gateway(transactional_db: None, settings: LazySettings) -> Iterator[None]:
    """The process that reads the files of jobs, in a thread of this one."""
    settings.CONSOLE_SSH_PORT = 0
    with shells():
        yield


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder, and a home for what is remembered."""
    made = tmp_path / "训练 project"
    made.mkdir()
    (made / "train.sh").write_text("cat word.txt; exit $1\n")
    (made / "word.txt").write_text("hello\n")
    return made

"""A web server, a Redis, people, and a job with a log that a test may write to."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from django.conf import LazySettings
from django.test import Client

from jobs.live import bus, triggers
from jobs.logs import log_store
from jobs.models import Job, LogStream
from jobs.states import State
from quotas.models import Role, User
from tests.factories import attempt_of, make_job, make_quota, make_user, make_workspace
from tests.serving import RedisServer, web_server


@pytest.fixture(autouse=True)
def no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a Redis and no worker here: one that can't be rung would be taken for a Redis that is away."""
    monkeypatch.setattr(triggers, "_send", lambda *_arguments: None)


@pytest.fixture(scope="session")
def redis_process() -> Iterator[RedisServer]:
    server = RedisServer()
    server.start()
    yield server
    server.remove()


@pytest.fixture
def redis_server(redis_process: RedisServer, settings: LazySettings) -> Iterator[RedisServer]:
    settings.REDIS_URL = redis_process.url
    _forget_client()
    bus.client().flushall()
    yield redis_process
    if not redis_process.answers():
        redis_process.start()
    _forget_client()


def _forget_client() -> None:
    bus.client.cache_clear()
    bus._away_until = 0.0


@pytest.fixture
def base_url(redis_server: RedisServer, transactional_db: None) -> Iterator[str]:
    with web_server() as url:
        yield url


@dataclass
class People:
    """Owner, member and admin of one workspace, and somebody from another."""

    owner: User
    member: User
    operator: User
    stranger: User


@pytest.fixture
def people(transactional_db: None) -> People:
    return People(*(make_user(name) for name in ("olga", "mei", "otto", "sam")))


@pytest.fixture
def job(people: People) -> Job:
    """A running job of `owner`, without a log yet."""
    roles = {people.owner: Role.DEVELOPER, people.member: Role.DEVELOPER, people.operator: Role.OPERATOR}
    workspace = make_workspace("vision", members=roles)
    make_workspace("speech", members={people.stranger: Role.ADMIN})
    return make_job(State.RUNNING, owner=people.owner, quota=make_quota(workspace))


@pytest.fixture
def sign_in(base_url: str) -> Iterator[Callable[[User], httpx.Client]]:
    """A client with the session of somebody."""
    made: list[httpx.Client] = []

    def signed_in(user: User) -> httpx.Client:
        django = Client()
        django.force_login(user)
        cookies = {name: morsel.value for name, morsel in django.cookies.items()}
        made.append(httpx.Client(base_url=base_url, cookies=cookies, trust_env=False))
        return made[-1]

    yield signed_in
    for client in made:
        client.close()


class WrittenLog:
    """The live log of a job's first replica, as its wrapper would write it."""

    def __init__(self, job: Job, run: int = 1) -> None:
        self._stream = LogStream.objects.get(attempt=attempt_of(job), run=run, role="main", index=0)
        self._relative = Path(job.public_id) / str(job.attempt_number) / f"{run}.log"
        self.path = log_store.jobs_root() / self._relative
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.touch()
        LogStream.objects.filter(pk=self._stream.pk).update(live_path=str(self._relative))

    @property
    def stream(self) -> LogStream:
        """Its row, as it is now."""
        self._stream.refresh_from_db()
        return self._stream

    def write(self, data: str | bytes) -> None:
        """Append to it."""
        with self.path.open("ab") as file:
            file.write(data.encode() if isinstance(data, str) else data)

    def finish(self) -> None:
        """Its replica has ended."""
        log_store.finish(self.stream)


@pytest.fixture
def written(job: Job) -> Iterator[WrittenLog]:
    yield WrittenLog(job)
    shutil.rmtree(log_store.jobs_root(), ignore_errors=True)

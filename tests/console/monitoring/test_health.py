"""What probes and operators are told."""

from collections.abc import Iterator

import pytest
from django.db import DatabaseError, connection
from django.test import AsyncClient, Client
from pytest_django import Settings

from console.monitoring import health
from jobs.access import sshhost
from jobs.live import bus, heartbeats
from tests.factories import make_user
from tests.serving import RedisServer

LOCAL = "127.0.0.1"
ELSEWHERE = "192.0.2.7"
OPERATORS_ONLY = ["/healthz", "/metrics"]
TOKEN = {"Authorization": "Bearer t0ken"}


def test_a_living_process_says_so_without_a_database(client: Client) -> None:
    answer = client.get("/livez")
    assert (answer.status_code, answer.content) == (200, b"ok")
    assert "no-cache" in answer["Cache-Control"]


@pytest.mark.django_db
def test_ready_when_the_database_has_this_releases_tables(client: Client) -> None:
    assert client.get("/readyz").content == b"ok"


@pytest.mark.django_db
def test_not_ready_when_a_migration_is_missing(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_schema", health._Schema())
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'quotas'")
    answer = client.get("/readyz")
    assert (answer.status_code, answer.content) == (503, b"migrations are missing")


@pytest.mark.django_db
@pytest.mark.parametrize("known", [True, False])
def test_not_ready_without_the_database_and_no_detail_is_given_away(
    client: Client, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise DatabaseError("password of db.example is wrong")

    if known:
        assert client.get("/readyz").status_code == 200
    monkeypatch.setattr(connection, "cursor", refuse)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.content) == (503, b"no answer")


@pytest.mark.django_db
def test_health_names_every_part_and_which_does_not_answer(client: Client, settings: Settings) -> None:
    settings.CONSOLE_METRICS_TOKEN = "t0ken"
    settings.CONSOLE_DISK_FLOOR_MIB = 0
    answer = client.get("/healthz", headers=TOKEN)
    assert answer.status_code == 503
    assert answer.json() == {
        "healthy": False,
        "parts": {
            "web": "ok",
            "database": "ok",
            "broker": "no answer",
            "beat": "no answer",
            "watch": "no answer",
            "ssh": "no answer",
            "disk": "ok",
            "worker-control": "no answer",
            "worker-logs": "no answer",
            "worker-notices": "no answer",
        },
    }


@pytest.mark.django_db
def test_health_tells_everybody_whether_and_operators_what(client: Client, settings: Settings) -> None:
    settings.CONSOLE_METRICS_TOKEN = "t0ken"
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"X-Forwarded-For": "127.0.0.1"}):
        answer = client.get("/healthz", headers=headers, REMOTE_ADDR=LOCAL)
        assert (answer.status_code, answer.json()) == (503, {"healthy": False})
    assert "parts" in client.get("/healthz", headers=TOKEN, REMOTE_ADDR=ELSEWHERE).json()


@pytest.mark.django_db
def test_metrics_are_for_the_token_and_for_admins_and_not_for_this_machine(
    client: Client, settings: Settings
) -> None:
    assert client.get("/metrics", REMOTE_ADDR=LOCAL).status_code == 403, "jobs are here too"
    assert client.get("/metrics", headers={"Authorization": "Bearer "}).status_code == 403
    client.force_login(make_user())
    assert client.get("/metrics").status_code == 403
    client.force_login(make_user(admin=True))
    assert client.get("/metrics").status_code == 200
    settings.CONSOLE_METRICS_TOKEN = "t0ken"
    assert Client().get("/metrics", headers={"Authorization": "Bearer wrong"}).status_code == 403
    assert Client().get("/metrics", headers=TOKEN, REMOTE_ADDR=ELSEWHERE).status_code == 200


@pytest.mark.django_db
def test_health_is_red_where_a_part_gives_no_sign_and_where_something_is_away(
    client: Client, settings: Settings, live_redis: RedisServer
) -> None:
    settings.REDIS_URL = live_redis.url
    settings.CONSOLE_METRICS_TOKEN = "t0ken"
    settings.CONSOLE_MAIL, settings.CONSOLE_LDAP = "smtp://mail.example", {"url": "ldaps://x", "people": "y"}
    for part in ("beat", "watch", "ssh"):
        heartbeats.beat(part)
    heartbeats.set_trouble("mail", "the mail server does not answer")
    (settings.CONSOLE_HOME / "run").mkdir(exist_ok=True)
    sshhost.note_trouble(settings.CONSOLE_HOME, "Address already in use")
    told = health.parts()
    assert {name: told[name] for name in ("beat", "watch", "directory", "mail", "ssh")} == {
        "beat": "ok",
        "watch": "ok",
        "directory": "ok",
        "mail": "the mail server does not answer",
        "ssh": "the port can't be used: Address already in use",
    }
    sshhost.note_trouble(settings.CONSOLE_HOME, "")
    heartbeats.clear_trouble("mail")
    bus.client().delete("vitals:alive:watch", "vitals:alive:ssh")
    settings.CONSOLE_DISK_FLOOR_MIB = 10**12
    told = health.parts()
    assert (told["watch"], told["ssh"], told["mail"]) == ("no sign of life", "no sign of life", "ok")
    assert told["disk"] == "nearly full"


@pytest.fixture
def live_redis() -> Iterator[RedisServer]:
    server = RedisServer()
    server.start()
    bus.client.cache_clear()
    bus._away_until = 0.0
    yield server
    bus.client.cache_clear()
    server.remove()


@pytest.mark.parametrize("path", ["/livez", "/readyz", *OPERATORS_ONLY])
def test_they_are_read_only(client: Client, path: str) -> None:
    assert client.post(path, headers=TOKEN).status_code == 405


@pytest.mark.django_db
async def test_they_are_served_under_asgi_too(async_client: AsyncClient) -> None:
    answer = await async_client.get("/livez")
    assert answer.status_code == 200

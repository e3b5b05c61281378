"""What probes and operators are told."""

from collections.abc import Iterator

import pytest
from django.db import DatabaseError, connection
from django.test import AsyncClient, Client
from pytest_django import Settings

from console.monitoring import health
from jobs.access import sshhost
from jobs.client.wheel_builder import version
from jobs.live import bus, heartbeats
from tests.factories import make_user
from tests.serving import RedisServer

LOCAL = "127.0.0.1"
ELSEWHERE = "192.0.2.7"
OPERATORS_ONLY = ["/healthz", "/metrics"]
TOKEN = {"Authorization": "Bearer t0ken"}


def test_livez_answers_without_a_database(client: Client) -> None:
    answer = client.get("/livez")
    assert (answer.status_code, answer.content) == (200, b"ok")
    assert "no-cache" in answer["Cache-Control"]


@pytest.mark.django_db
def test_readyz_answers_when_database_schema_is_current(client: Client) -> None:
    assert client.get("/readyz").content == b"ok"


@pytest.mark.django_db
def test_readyz_fails_when_a_migration_is_missing(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_schema", health._Schema())
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'quotas'")
    answer = client.get("/readyz")
    assert (answer.status_code, answer.content) == (503, b"migrations are missing")


@pytest.mark.django_db
@pytest.mark.parametrize("known", [True, False])
def test_readyz_without_database_fails_and_reveals_no_detail(
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
def test_healthz_names_each_part_without_an_answer(client: Client, settings: Settings) -> None:
    settings.CONSOLE_METRICS_TOKEN = "t0ken"
    settings.CONSOLE_DISK_FLOOR_MIB = 0
    answer = client.get("/healthz", headers=TOKEN)
    assert answer.status_code == 503
    assert answer.json() == {
        "healthy": False,
        "version": version(),
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
def test_healthz_shows_parts_to_token_holders_only(client: Client, settings: Settings) -> None:
    settings.CONSOLE_METRICS_TOKEN = "t0ken"
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"X-Forwarded-For": "127.0.0.1"}):
        answer = client.get("/healthz", headers=headers, REMOTE_ADDR=LOCAL)
        assert (answer.status_code, answer.json()) == (503, {"healthy": False})
    assert "parts" in client.get("/healthz", headers=TOKEN, REMOTE_ADDR=ELSEWHERE).json()


@pytest.mark.django_db
def test_metrics_require_token_or_admin_even_from_localhost(client: Client, settings: Settings) -> None:
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
def test_healthz_fails_when_a_part_or_a_service_is_away(
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
def test_health_and_metrics_endpoints_refuse_post(client: Client, path: str) -> None:
    assert client.post(path, headers=TOKEN).status_code == 405


@pytest.mark.django_db
async def test_livez_is_served_under_asgi(async_client: AsyncClient) -> None:
    answer = await async_client.get("/livez")
    assert answer.status_code == 200

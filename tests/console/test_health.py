"""What probes and operators are told."""

import pytest
from django.db import DatabaseError, connection
from django.test import AsyncClient, Client
from pytest_django import Settings

from console import health

LOCAL = "127.0.0.1"
ELSEWHERE = "192.0.2.7"
OPERATORS_ONLY = ["/healthz", "/metrics"]


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
def test_health_names_every_part_and_which_does_not_answer(client: Client) -> None:
    answer = client.get("/healthz", REMOTE_ADDR=LOCAL)
    assert answer.status_code == 503
    assert answer.json() == {
        "healthy": False,
        "parts": {
            "web": "ok",
            "database": "ok",
            "broker": "no answer",
            "worker-control": "no answer",
            "worker-logs": "no answer",
            "worker-notices": "no answer",
        },
    }


@pytest.mark.django_db
@pytest.mark.parametrize("path", OPERATORS_ONLY)
def test_without_a_token_only_this_machine_is_answered(client: Client, path: str) -> None:
    assert client.get(path, REMOTE_ADDR=LOCAL).status_code != 403
    assert client.get(path, REMOTE_ADDR="::1").status_code != 403
    assert client.get(path, REMOTE_ADDR=ELSEWHERE).status_code == 403
    assert client.get(path, REMOTE_ADDR="").status_code == 403


@pytest.mark.django_db
@pytest.mark.parametrize("path", OPERATORS_ONLY)
@pytest.mark.parametrize("name", ["X-Forwarded-For", "Forwarded", "X-Real-IP"])
def test_whoever_was_forwarded_is_not_local(client: Client, path: str, name: str) -> None:
    assert client.get(path, headers={name: "192.0.2.7"}, REMOTE_ADDR=LOCAL).status_code == 403


@pytest.mark.django_db
@pytest.mark.parametrize("path", OPERATORS_ONLY)
def test_with_a_token_everybody_needs_it(client: Client, settings: Settings, path: str) -> None:
    settings.CONSOLE_METRICS_TOKEN = "t0ken"
    assert client.get(path, REMOTE_ADDR=LOCAL).status_code == 403
    assert client.get(path, headers={"Authorization": "Bearer wrong"}, REMOTE_ADDR=LOCAL).status_code == 403
    assert (
        client.get(path, headers={"Authorization": "Bearer t0ken"}, REMOTE_ADDR=ELSEWHERE).status_code != 403
    )


@pytest.mark.parametrize("path", ["/livez", "/readyz", *OPERATORS_ONLY])
def test_they_are_read_only(client: Client, path: str) -> None:
    assert client.post(path, REMOTE_ADDR=LOCAL).status_code == 405


@pytest.mark.django_db
async def test_they_are_served_under_asgi_too(async_client: AsyncClient) -> None:
    answer = await async_client.get("/livez")
    assert answer.status_code == 200

"""When the database is busy or away: tried again later, and never half done."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from django.db import InterfaceError, OperationalError, connection
from django.test import Client

from jobs import submission
from jobs.models import Attempt, Event, Job, JobFile, outage
from jobs.models.jobs import JobQuerySet
from quotas.models import Request
from tests.jobs.api.conftest import People, api, body_of, file, problem


@pytest.fixture
def busy(transactional_db: None, people: People) -> Iterator[sqlite3.Connection]:
    """Somebody else writes for longer than anybody waits (20 s, without the last line)."""
    connection.ensure_connection()
    connection.connection.execute("PRAGMA busy_timeout = 10")
    with closing(sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other
    connection.close()


@pytest.mark.sqlite
def test_job_submission_during_a_locked_database_stores_nothing(
    busy: sqlite3.Connection, people: People
) -> None:
    busy.execute("ROLLBACK")
    client = api(people.owner)
    body_of(client.get("jobs"))  # whose token was used just now is written down once a minute
    busy.execute("BEGIN IMMEDIATE")
    answer = client.submit(file(), key="once")
    assert problem(answer)["status"] == 503
    assert int(answer.headers["Retry-After"]) == outage.RETRY_AFTER_S
    for kept in (Job, JobFile, Attempt, Request, Event):
        assert not kept.objects.exists()
    busy.execute("ROLLBACK")
    body_of(client.submit(file(), key="once"), 201)
    body_of(client.submit(file(), key="once"), 200)


@pytest.mark.sqlite
def test_token_during_a_locked_database_is_not_refused(busy: sqlite3.Connection, people: People) -> None:
    busy.execute("ROLLBACK")
    client = api(people.owner)
    busy.execute("BEGIN IMMEDIATE")
    assert problem(client.submit(file()))["status"] == 503


def test_page_during_a_database_outage_answers_503(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(*_arguments: object, **_options: object) -> None:
        raise OperationalError("database is locked")

    client = Client(raise_request_exception=False)
    client.force_login(people.owner)
    monkeypatch.setattr(JobQuerySet, "visible_to", locked)
    answer = client.get("/jobs/nowhere/")
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == str(outage.RETRY_AFTER_S)
    assert "The database is busy or unavailable" in answer.content.decode()


def test_api_error_other_than_an_outage_answers_500(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    def mistaken(*_arguments: object, **_options: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(submission, "submit", mistaken)
    answer = api(people.owner).submit(file())
    assert problem(answer)["status"] == 500
    assert "Retry-After" not in answer.headers


def test_outage_check_ignores_a_wrong_sql_statement(db: None) -> None:
    with pytest.raises(Exception, match="nowhere") as wrong, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM nowhere")
    assert not outage.is_outage(wrong.value)
    assert outage.is_outage(InterfaceError())
    assert not outage.is_outage(None)

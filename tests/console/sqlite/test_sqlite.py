"""Of all threads and processes one writes at a time; the others wait for it in turn."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial

import pytest
from django.db import OperationalError, connection, transaction
from django.db.backends.sqlite3 import base as django_base

from console.sqlite import base
from quotas.models import Workspace
from tests.waiting import wait_for

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sqlite]


@pytest.fixture(autouse=True)
def sqlite_alone() -> Iterator[None]:
    yield
    connection.close()  # with whatever a test has set on it


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The threads that have asked SQLite for a transaction."""
    asked: list[str] = []
    really = django_base.DatabaseWrapper.set_autocommit

    def begin(self: django_base.DatabaseWrapper, autocommit: bool, *options: bool) -> None:
        if not autocommit:
            asked.append(threading.current_thread().name)
        really(self, autocommit, *options)

    monkeypatch.setattr(django_base.DatabaseWrapper, "set_autocommit", begin)
    return asked


def _in_thread(name: str, work: Callable[[], object]) -> threading.Thread:
    def run() -> None:
        try:
            with suppress(OperationalError):
                work()
        finally:
            connection.close()

    thread = threading.Thread(target=run, name=name)
    thread.start()
    return thread


def _write() -> None:
    with transaction.atomic():
        Workspace.objects.create(slug="second", name="Second")


def test_second_writer_waits_without_calling_sqlite(begun: list[str]) -> None:
    waiting = threading.Event()
    with transaction.atomic():
        Workspace.objects.create(slug="first", name="First")

        def write() -> None:
            waiting.set()
            _write()

        second = _in_thread("second", write)
        assert waiting.wait(60)
        second.join(0.1)
        assert begun == [threading.current_thread().name]
    second.join(60)
    assert begun[1:] == ["second"]
    assert Workspace.objects.count() == 2


def test_writer_waiting_too_long_gets_database_locked_error(begun: list[str]) -> None:
    told: list[str] = []

    def write() -> None:
        connection.settings_dict["OPTIONS"]["timeout"] = 0.01
        try:
            _write()
        except OperationalError as error:
            told.append(str(error))
        finally:
            connection.settings_dict["OPTIONS"]["timeout"] = patience

    patience = connection.settings_dict["OPTIONS"]["timeout"]
    with transaction.atomic():
        _in_thread("second", write).join(60)
    assert told == ["database is locked"]
    assert begun == [threading.current_thread().name]


class Oops(Exception):
    """Something fails in the middle."""


def _rolled_back() -> None:
    with suppress(Oops), transaction.atomic():
        raise Oops


def _closed_in_the_middle() -> None:
    with transaction.atomic():
        connection.close()


def _nested() -> None:
    with transaction.atomic():
        _rolled_back()
        assert base.turn.is_taken()


def _never_begun() -> None:
    connection.ensure_connection()
    connection.connection.execute("PRAGMA busy_timeout = 1")
    with closing(sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OperationalError, match="locked"):
            _write()


@pytest.mark.parametrize("how", [_write, _rolled_back, _closed_in_the_middle, _nested, _never_begun])
def test_write_lock_is_released_after_any_end_of_transaction(how: Callable[[], None]) -> None:
    how()
    assert not base.turn.is_taken()


def test_write_lock_is_released_after_a_failed_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: django_base.DatabaseWrapper) -> None:
        raise OperationalError("disk I/O error")

    with monkeypatch.context() as patched:
        patched.setattr(django_base.DatabaseWrapper, "commit", fail)
        with pytest.raises(OperationalError, match="disk"):
            _write()
    assert not base.turn.is_taken()
    assert not Workspace.objects.exists()


def test_many_writers_all_get_their_turn() -> None:
    def write(number: int) -> None:
        with transaction.atomic():
            Workspace.objects.create(slug=f"w{number}", name=f"W{number}")

    threads = [_in_thread(f"w{number}", partial(write, number)) for number in range(20)]
    for thread in threads:
        thread.join(60)
    wait_for(lambda: Workspace.objects.count() == 20)

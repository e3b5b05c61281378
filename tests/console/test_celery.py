"""The doorbell: what may be on it, and that a broken one holds nobody up."""

import time

import pytest
from celery import Celery
from celery.fixups.django import DjangoWorkerFixup  # type: ignore[attr-defined]  # not in celery-types
from celery.signals import task_postrun
from django.conf import settings
from django.db import connection
from kombu.exceptions import OperationalError

from console import beat
from console.celery import app
from console.configuration.servers import celery_broker
from jobs import tasks


@pytest.mark.parametrize(
    "url", ["unix:///nowhere/redis.sock", "redis://127.0.0.1:1/0", "redis://192.0.2.1/0"]
)
def test_send_task_fails_fast_when_the_broker_is_away(url: str) -> None:
    away = Celery("away")
    away.config_from_object(settings, namespace="CELERY")
    away.conf.update(broker_url=celery_broker(url))
    began = time.monotonic()
    with pytest.raises(OperationalError):
        away.send_task("jobs.tasks.sweep")
    assert time.monotonic() - began < 30  # instead of trying again for ever


def test_celery_reads_and_writes_only_json() -> None:
    assert app.conf.accept_content == ["json"]
    assert app.conf.task_serializer == "json"


@pytest.mark.django_db(transaction=True)
def test_worker_keeps_its_connection_between_tasks() -> None:
    worker = DjangoWorkerFixup(app)
    connection.ensure_connection()
    kept = connection.connection
    worker.on_task_prerun(tasks.sweep)
    worker.on_task_postrun(tasks.sweep)
    assert connection.connection is kept


@pytest.mark.django_db(transaction=True)
def test_worker_closes_an_unusable_connection_behind_a_task() -> None:
    connection.ensure_connection()
    connection.errors_occurred = True
    connection.close_at = 0.0
    task_postrun.send(tasks.sweep)
    assert connection.connection is None


def test_celery_stores_no_results() -> None:
    assert not app.conf.result_backend
    assert app.conf.task_ignore_result


def test_scheduled_tasks_exist_and_use_served_queues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CELERY_SKIP_CHECKS", "1")
    app.loader.import_default_modules()
    assert beat.app.conf.beat_schedule
    for entry in beat.app.conf.beat_schedule.values():
        task = app.tasks[entry["task"]]
        options = entry.get("options", {})
        queue = app.amqp.router.route(options, task.name)["queue"].name
        assert queue in settings.CONSOLE_WORKERS


def test_scheduled_entries_expire_so_unserved_queues_stay_short() -> None:
    for entry in beat.app.conf.beat_schedule.values():
        assert entry["options"]["expires"] / entry["schedule"] <= 20

"""The doorbell: what may be on it, and that a broken one holds nobody up."""

import time

import pytest
from celery import Celery
from django.conf import settings
from kombu.exceptions import OperationalError

from console import beat
from console.celery import app
from console.configuration.servers import celery_broker


@pytest.mark.parametrize(
    "url", ["unix:///nowhere/redis.sock", "redis://127.0.0.1:1/0", "redis://192.0.2.1/0"]
)
def test_a_broker_that_is_away_fails_a_kick_at_once(url: str) -> None:
    away = Celery("away")
    away.config_from_object(settings, namespace="CELERY")
    away.conf.update(broker_url=celery_broker(url))
    began = time.monotonic()
    with pytest.raises(OperationalError):
        away.send_task("jobs.tasks.sweep")
    assert time.monotonic() - began < 30  # instead of trying again for ever


def test_only_json_is_read_and_written() -> None:
    assert app.conf.accept_content == ["json"]
    assert app.conf.task_serializer == "json"


def test_no_result_is_kept() -> None:
    assert not app.conf.result_backend
    assert app.conf.task_ignore_result


def test_every_scheduled_task_exists_and_has_a_queue_that_somebody_serves(
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


def test_a_queue_that_nobody_serves_stays_short() -> None:
    for entry in beat.app.conf.beat_schedule.values():
        assert entry["options"]["expires"] / entry["schedule"] <= 20

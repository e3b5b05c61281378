"""The clock: `celery --app console.beat beat` sends CELERY_BEAT_SCHEDULE's tasks by name, without Django."""

from typing import Any

from celery import Celery
from celery.signals import setup_logging

from console import settings
from console.configuration.logging import configure

app = Celery("beat")
app.config_from_object(settings, namespace="CELERY")


@setup_logging.connect
def _log_like_the_web(**kwargs: Any) -> None:
    configure(settings.LOGGING)

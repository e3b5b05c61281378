"""The Celery application: workers and beat are started with `-A console.celery`."""

import os
from typing import Any

from celery import Celery
from celery.signals import setup_logging, worker_before_create_process, worker_process_init
from django.conf import settings
from django_structlog.celery.steps import DjangoStructLogInitStep

from console.configuration.logging import configure
from console.run.child import die_with_parent

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")


class App(Celery):
    """The application; `worker_pid` is the process that forks those of a pool."""

    worker_pid = 0


app = App("console")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.steps["worker"].add(DjangoStructLogInitStep)
app.autodiscover_tasks()


@setup_logging.connect
def _log_like_the_web(**kwargs: Any) -> None:
    """Connected, so that Celery leaves the root logger alone and its lines look like all others."""
    configure(settings.LOGGING)


@worker_before_create_process.connect
def _record_worker(**kwargs: Any) -> None:
    """Set the pid that a pool process finds as its worker's: read after the fork, it could be another's."""
    app.worker_pid = os.getpid()


@worker_process_init.connect
def _end_with_the_worker(**kwargs: Any) -> None:
    """A pool process whose worker was killed would wait for ever on a pipe that its siblings hold open."""
    die_with_parent(app.worker_pid)

"""The Celery application: workers and beat are started with `-A console.celery`."""

import os
import sys
from typing import Any

from celery import Celery, Task
from celery.signals import (
    setup_logging,
    task_postrun,
    task_prerun,
    worker_before_create_process,
    worker_process_init,
)
from django.conf import settings
from django.db import close_old_connections
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
# Celery would close the database after each task, and with it a pool of connections: to open one takes longer
# than most tasks. `_close_old_connections` stands for it.
app.conf["CELERY_DB_REUSE_MAX"] = sys.maxsize


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


@task_prerun.connect
@task_postrun.connect
def _close_old_connections(sender: "Task[..., Any]", **kwargs: Any) -> None:
    """Close a connection that is broken or older than CONN_MAX_AGE, as a request does."""
    if not sender.request.is_eager:
        close_old_connections()

"""How the console is: /livez (this process), /readyz (pages can be served), /healthz (every part answers)."""

from collections.abc import Callable
from functools import partial

import redis
import structlog
from django.conf import settings
from django.core.cache import cache
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from kombu.exceptions import OperationalError

from console.celery import app
from console.monitoring import disk
from console.monitoring.probes import is_operator
from console.sign_in import outbox
from jobs.access import sshhost
from jobs.client.wheel_builder import version
from jobs.live import heartbeats

log = structlog.stdlib.get_logger()

BROKER_SECONDS = 0.5
WORKER_SECONDS = 1.0
CACHE_SECONDS = 2
OK = "ok"


@require_safe
@never_cache
def livez(request: HttpRequest) -> HttpResponse:
    """This process answers."""
    return HttpResponse(OK, content_type="text/plain")


@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """Pages can be served: the database answers, and it has the tables of this release."""
    state = _answer("database", _schema.check)
    return HttpResponse(state, content_type="text/plain", status=200 if state == OK else 503)


@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """Whether every part works: 200 only then.  Operators see which part does not, and why.

    Everybody may ask, so the result is cached for a moment.
    """
    found = cache.get_or_set("console.monitoring.health", parts, CACHE_SECONDS) or {}
    healthy = set(found.values()) == {OK}
    body = (
        {"healthy": healthy, "version": version(), "parts": found}
        if is_operator(request)
        else {"healthy": healthy}
    )
    return JsonResponse(body, status=200 if healthy else 503)


def parts() -> dict[str, str]:
    """Every part by name, `ok` or what is wrong with it; may take a second for each worker."""
    checks: dict[str, Callable[[], str]] = {"database": _database, "broker": _broker}
    checks |= {f"worker-{queue}": partial(_worker, queue) for queue in settings.CONSOLE_WORKERS}
    checks |= {**_signs(), "disk": _disk}
    return {"web": OK} | {name: _answer(name, check) for name, check in checks.items()}


def signs() -> dict[str, str]:
    """Return what the parts have said of themselves, `ok` or what is wrong; none is asked.

    Raises RedisError.
    """
    return {name: check() for name, check in _signs().items()}


def _signs() -> dict[str, Callable[[], str]]:
    checks: dict[str, Callable[[], str]] = {part: partial(_gives_signs, part) for part in ("beat", "watch")}
    checks["ssh"] = _ssh
    if settings.CONSOLE_LDAP:
        checks["directory"] = partial(_report_trouble, "directory")
    if settings.CONSOLE_MAIL:
        checks[outbox.MAIL] = partial(_report_trouble, outbox.MAIL)
    return checks


def _answer(name: str, check: Callable[[], str]) -> str:
    """Return what `check` says; details of a failure go to the log, not to whoever asked."""
    try:
        return check()
    except (DatabaseError, OperationalError, OSError, redis.RedisError) as problem:
        log.warning("health.no_answer", part=name, problem=str(problem))
        return "no answer"


def _database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM django_migrations LIMIT 1")
    return OK


def _broker() -> str:
    limits = {"socket_timeout": BROKER_SECONDS, "socket_connect_timeout": BROKER_SECONDS}
    with redis.Redis.from_url(settings.REDIS_URL, **limits) as client:
        client.ping()
    return OK


def _gives_signs(part: str) -> str:
    return OK if heartbeats.is_alive(part) else "no sign of life"


def _ssh() -> str:
    """The process that serves SSH and terminals, and its port."""
    trouble = sshhost.trouble(settings.CONSOLE_HOME)
    return _gives_signs("ssh") if not trouble else f"the port can't be used: {trouble}"


def _report_trouble(part: str) -> str:
    """Return the trouble that somebody met with it lately, or `ok`."""
    return heartbeats.trouble_of(part) or OK


def _disk() -> str:
    return "nearly full" if disk.measure().is_low else OK


def _worker(queue: str) -> str:
    """One worker of the queue answers; also one whose processes are all busy does."""
    replies = app.control.broadcast(
        "ping",
        reply=True,
        timeout=WORKER_SECONDS,
        limit=1,
        pattern=f"{queue}@*",
        matcher="glob",  # type: ignore[arg-type]  # a name goes over the wire; its stubs say otherwise
    )
    return OK if replies else "no answer"


def is_migrated() -> bool:
    """Return whether the database has every migration of this release."""
    executor = MigrationExecutor(connection)
    return not executor.migration_plan(executor.loader.graph.leaf_nodes())


class _Schema:
    """Remembers that all migrations were there: they do not go away while this process lives."""

    def __init__(self) -> None:
        self._complete = False

    def check(self) -> str:
        if self._complete:
            return _database()
        self._complete = is_migrated()
        return OK if self._complete else "migrations are missing"


_schema = _Schema()

"""Structured logs: every line carries what is bound to its request, its task or its job.

django-structlog binds `request_id` and `user_id` to a request, and `task_id` to a task, where the request
that sent it is named too. Whoever works on a job binds its id:
`structlog.contextvars.bound_contextvars(job=…)`.
"""

import re
from logging.config import dictConfig
from typing import Any

import structlog
from structlog.typing import EventDict, Processor

_SECRET_PATH = re.compile(
    r"(/sign-in/(?:break-glass|reset|confirm)/|/invitations/|/rest-server/(?:logs|ssh-keys|api/v[12]/tokens?)/)"
    r"[^\s\"'?&]+"
)


def without_secrets(text: str) -> str:
    """Return the text without what stands in the addresses of links that let somebody in."""
    return _SECRET_PATH.sub(r"\1…", text)


def _redact(logger: Any, method: str, event: EventDict) -> EventDict:
    return {key: without_secrets(value) if isinstance(value, str) else value for key, value in event.items()}


_SHARED: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
    _redact,
]


def configure(settings: dict[str, str]) -> None:
    """Django's LOGGING_CONFIG: all loggers, structlog's too, end in one stream of lines on standard error.

    `settings` has a `style`, console or json, and a `level` of the standard library.
    """
    dictConfig(_standard(**settings))
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            *_SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def _standard(style: str, level: str) -> dict[str, Any]:
    rendering: list[Processor] = (
        [structlog.processors.dict_tracebacks, structlog.processors.JSONRenderer()]
        if style == "json"
        else [structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)]
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "structured": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
                "foreign_pre_chain": _SHARED,
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "structured"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # Django brings handlers of its own; here everything goes up to the one above.
            "django": {"handlers": [], "level": level, "propagate": True},
            "django.server": {"handlers": [], "level": level, "propagate": True},
            # At INFO it would say each request's start and end: two lines a request.
            "django_structlog": {"level": "WARNING" if level == "INFO" else level},
            # At INFO it would say each WebSocket's address, and tokens that stand in it.
            "uvicorn.error": {"level": "WARNING" if level == "INFO" else level},
            "httpx": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
            "celery.beat": {"level": "WARNING"},
        },
    }

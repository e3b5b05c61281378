"""Workers: Celery is a doorbell, the database is the queue; and how often what is done."""

from typing import Any

from console.configuration import config
from console.configuration.config import env
from console.configuration.servers import celery_broker
from console.settings.location import REDIS_URL
from console.settings.signing_in import CONSOLE_LDAP, CONSOLE_LDAP_SECONDS, CONSOLE_OIDC, CONSOLE_OIDC_SECONDS

env.group("Workers")
CONSOLE_WORKERS = config.WORKERS
CELERY_BROKER_URL = celery_broker(REDIS_URL)
# A kick fails at once when the broker is away, and the sweep makes up for it. Workers reconnect for ever.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_connect_timeout": 1.0,
    "socket_timeout": 5.0,
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0,
    "interval_max": 0,
    "visibility_timeout": 120,
}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_CONNECTION_TIMEOUT = 1.0
CELERY_TASK_PUBLISH_RETRY = False
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_SERIALIZER = "json"
CELERY_RESULT_SERIALIZER = "json"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_STORE_ERRORS_EVEN_IF_IGNORED = False
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_SOFT_TIME_LIMIT = 50
CELERY_TASK_TIME_LIMIT = 60
CELERY_TASK_DEFAULT_QUEUE = "control"
CELERY_TASK_QUEUES = {name: {"exchange": name, "routing_key": name} for name in CONSOLE_WORKERS}
CELERY_TASK_CREATE_MISSING_QUEUES = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_MAX_MEMORY_PER_CHILD = 300_000  # KiB; a leak ends with the process
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_TIMEZONE = "UTC"
DJANGO_STRUCTLOG_CELERY_ENABLED = True

env.group("Intervals")
CONSOLE_SWEEP_SECONDS = env.seconds(
    "CONSOLE_SWEEP_SECONDS", 2, "Every row that is due is looked at again so often.", least=0.1
)
CONSOLE_SLOWEST_LOOK_SECONDS = env.seconds(
    "CONSOLE_SLOWEST_LOOK_SECONDS",
    60,
    "A cluster whose controller is slow is looked at more rarely, but at least so often.",
    least=1,
)
INVENTORY_SECONDS = env.seconds(
    "CONSOLE_INVENTORY_SECONDS", 30, "Every cluster is asked what it has so often.", least=1
)
CONSOLE_FAULT_SECONDS = env.seconds(
    "CONSOLE_FAULT_SECONDS",
    15,
    "The output of running jobs with fault tolerance is looked at so often.",
    least=1,
)
CONSOLE_FAULT_RESTARTS_PER_DAY = env.integer(
    "CONSOLE_FAULT_RESTARTS_PER_DAY",
    24,
    "Automatic fault tolerance restarts a job at most so often in 24 hours, whatever its faults are.",
    least=1,
)
CREDENTIALS_SECONDS = env.seconds(
    "CONSOLE_CREDENTIALS_SECONDS",
    15,
    "Credentials of roles are renewed so often on Slurm, where half of their time is over.",
    least=1,
)
CONSOLE_MEASURE_SECONDS = env.seconds(
    "CONSOLE_MEASURE_SECONDS", 60, "What running jobs use is measured so often.", least=1
)
USAGE_SECONDS = env.seconds(
    "CONSOLE_USAGE_SECONDS", 300, "What was held in an hour is written down so soon after it.", least=1
)
TIDY_SECONDS = env.seconds(
    "CONSOLE_TIDY_SECONDS",
    10,
    "Ended attempts are looked at for logs to store and folders to remove.",
    least=1,
)
FORWARD_LOGS_SECONDS = env.seconds(
    "CONSOLE_FORWARD_LOGS_SECONDS", 5, "New lines of logs are sent to log sinks so often.", least=0.5
)
TRAINING_METRICS_SECONDS = env.seconds(
    "CONSOLE_TRAINING_METRICS_SECONDS",
    5,
    "New output of jobs is read for training metrics so often.",
    least=0.5,
)
NOTIFICATIONS_SECONDS = env.seconds(
    "CONSOLE_NOTICES_SECONDS", 5, "Notifications that are due are looked for so often.", least=0.5
)
WATCH_NOTIFICATIONS_SECONDS = env.seconds(
    "CONSOLE_WATCH_NOTICES_SECONDS",
    60,
    "Long waits and quotas that are nearly used are looked for so often.",
    least=1,
)


def _every(seconds: float, task: str, queue: str = "control", *, of: str = "jobs") -> dict[str, Any]:
    """A beat entry; one that no worker took for a long while expires, so that a stalled queue stays short."""
    return {
        "task": f"{of}.tasks.{task}",
        "schedule": seconds,
        "options": {"expires": max(30.0, 5 * seconds), "queue": queue},
    }


CELERY_BEAT_SCHEDULE: dict[str, dict[str, Any]] = {
    "sweep": _every(CONSOLE_SWEEP_SECONDS, "sweep"),
    "inventories": _every(INVENTORY_SECONDS, "sweep_inventories"),
    "logs": _every(TIDY_SECONDS, "sweep_logs", "logs"),
    "forward-logs": _every(FORWARD_LOGS_SECONDS, "forward_logs", "logs"),
    "training-metrics": _every(TRAINING_METRICS_SECONDS, "collect_training_metrics", "logs"),
    "notices": _every(NOTIFICATIONS_SECONDS, "notices", "notices"),
    "watch-notices": _every(WATCH_NOTIFICATIONS_SECONDS, "watch_notices", "notices"),
    "usage": _every(USAGE_SECONDS, "roll_up", "logs"),
    **(
        {"directory": _every(CONSOLE_LDAP_SECONDS, "ask_directory", "logs", of="console")}
        if CONSOLE_LDAP
        else {}
    ),
    **(
        {"providers": _every(CONSOLE_OIDC_SECONDS, "ask_providers", "logs", of="console")}
        if CONSOLE_OIDC
        else {}
    ),
    "signatures": _every(600, "delete_expired_signatures", "logs"),
    "audit": _every(3600, "delete_old_audit_entries", "logs"),
    "credentials": _every(CREDENTIALS_SECONDS, "sweep_credentials", "logs"),
    "faults": _every(CONSOLE_FAULT_SECONDS, "watch_faults", "logs"),
    "measures": _every(CONSOLE_MEASURE_SECONDS, "sweep_measures", "logs"),
    "uploads": _every(600, "remove_expired_uploads", "logs"),
    "retention": _every(600, "remove_due", "logs"),
}

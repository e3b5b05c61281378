"""Logs and metrics."""

from console.configuration.config import env

env.group("Logs and metrics")
CONSOLE_LOG_CAP_MIB = env.integer(
    "CONSOLE_LOG_CAP_MIB", 10240, "Of a longer log its head and its tail are stored.", unit="MiB", least=16
)
CONSOLE_LOG_BATCH_KIB = env.integer(
    "CONSOLE_LOG_BATCH_KIB",
    900,
    "One request to a log sink has at most so much; many servers refuse more than 1 MiB.",
    unit="KiB",
    least=64,
    most=64 * 1024,
)
CONSOLE_LOG_FORMAT = env.choice(
    "CONSOLE_LOG_FORMAT", "console", "How log lines look.", of=("console", "json")
)
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
CONSOLE_LOG_LEVEL = env.choice("CONSOLE_LOG_LEVEL", "INFO", "What is worth a line.", of=_LEVELS)
LOGGING_CONFIG = "console.configuration.logging.configure"
LOGGING = {"style": CONSOLE_LOG_FORMAT, "level": CONSOLE_LOG_LEVEL}
CONSOLE_METRICS_TOKEN = env.secret(
    "CONSOLE_METRICS_TOKEN",
    "",
    "`Authorization: Bearer …` for /metrics and /healthz; without one they answer on this machine only.",
)

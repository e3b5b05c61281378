"""Arguments of the vendors' fault tolerance: whose words they are, so that none reaches another vendor."""

from __future__ import annotations

import re
from typing import Final

_FLAG: Final = re.compile(r"--([a-z0-9\-]+)")

DLC: Final = frozenset(
    {
        "job-execution-mode",
        "enable-job-restart",
        "max-num-of-job-restart",
        "enable-job-hang-detection",
        "job-hang-interval",
        "job-restart-timeout",
        "enable-c4d-hang-detection",
        "enable-local-detection",
        "enable-perftracker",
        "fault-tolerant-policy",
        "enable-log-hang-detection",
        "execution-mode",
        "max-tolerate-failure-rate",
        "log-hang-interval-in-seconds",
        "enable-pod-completed-detection",
        "pod-completed-interval-in-seconds",
        "enable-log-redirect-to-nas",
        "max-num-of-same-error",
    }
)
"""DLC's AIMaster (DLC page, its SDK's example, public job scripts)."""

AIHC: Final = frozenset(
    {
        "enable-replace",
        "enable-hang-detection",
        "hang-detection-log-timeout-minutes",
        "hang-detection-startup-toleration-minutes",
        "hang-detection-stack-timeout-minutes",
        "max-num-of-unconditional-retry",
        "custom-log-patterns",
    }
)
"""AIHC's faultToleranceArgs (AIHC page)."""


def are_of(others: frozenset[str], arguments: str) -> bool:
    """Return whether `arguments` are in the words of `others`."""
    return any(flag in others for flag in _FLAG.findall(arguments))

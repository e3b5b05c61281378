"""Limits of DLC with their sources; they bind a job at DLC, and none that runs elsewhere."""

from __future__ import annotations

from typing import Final

from jobs.dialects.fields import Limit

PAGE: Final = "DLC page"
"""The pages of PAI-DLC: CreateJob, creating training jobs, the command line."""

SDK_17: Final = "DLC SDK 1.4.17"
SDK_NEW: Final = "DLC SDK 1.11.6"

NAME_LONGEST: Final = 256
NAME: Final = r"A-Za-z0-9_.\-"

PRIORITY_LEAST: Final = Limit(1, PAGE)
PRIORITY_MOST: Final = Limit(9, PAGE)

MOST_VARIABLES: Final = Limit(20, PAGE)
MOST_BYTES: Final = Limit(65_536, PAGE)
"""Of the whole request, as compact JSON."""

DEFAULT_RUNNING_MINUTES: Final = Limit(30 * 60, PAGE)
PUBLIC_GPUS: Final = Limit(2, PAGE)
PUBLIC_CPUS: Final = Limit(8, PAGE)
"""Of one person's jobs on public resources."""

DISCOUNT_LEAST: Final = ("0.1", PAGE)
DISCOUNT_MOST: Final = ("0.9", PAGE)

MOST_CUSTOM_PORTS: Final = Limit(65_536, PAGE)
MASTER_PORT: Final = 23_456
"""The port of PyTorch's master: not to be used in `customPortList` (DLC page)."""

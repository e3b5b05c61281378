"""Tests that need a real GPU."""

from jobs.backends.local import gpus


def missing() -> str:
    """What this machine lacks for them, or nothing."""
    return "" if gpus.find_gpus() else "there is no GPU (NVML finds none)"

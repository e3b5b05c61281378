"""Sentences for words about jobs on Ray (`jobs.backends.ray.states`).

Data alone, loaded and rendered by `jobs.messages.backend_texts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.backends.settings import mark as _

EXPECTED_START: Final = "%(why)s"

_WAITING: Final[Mapping[str, str]] = {
    "PLACING": _("Waiting for free resources on the Ray cluster."),
    "PREPARING": _("Ray is starting the job's driver."),
}

STATES: Final[Mapping[str, tuple[str, ...]]] = {
    "HEAD_LOST": (_("The Ray cluster was restarted and no longer has the job."),),
    "DRIVER_LOST": (_("Ray ended the job's driver: %(error)s"), _("Ray ended the job's driver.")),
    "DRIVER_FAILED": (
        _("Ray could not start the job's driver: %(error)s"),
        _("Ray could not start the job's driver."),
    ),
}


def pending_sentence(word: str) -> str:
    """Return the sentence for why a job waits."""
    return _WAITING.get(word, _WAITING["PREPARING"])

"""The folder that all hosts of the console see; of one host it is the console's own."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings


def shared_folder() -> Path:
    """Return the folder with logs, uploads and the folders of jobs."""
    return Path(settings.CONSOLE_SHARED_FOLDER or settings.CONSOLE_HOME)

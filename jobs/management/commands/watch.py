"""`manage.py watch`: wake workers on hints of backends, so that changes are seen at once.

Hints only: what this process misses, the sweep sees a little later.
"""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from typing import Any, Final

import structlog
from django.core.management.base import BaseCommand
from django.db import Error, close_old_connections

from jobs import clusters
from jobs.backends.base import Watching
from jobs.live import heartbeats, triggers
from quotas.models import Cluster

log = structlog.get_logger(__name__)

LOOK_S: Final = 0.05
"""Time between two checks of the clusters' trigger files."""

REST_S: Final = 0.1
"""Pause after a trigger: a file that changes all the time wakes ten times a second."""

CLUSTERS_S: Final = 10.0
"""Time between two queries of the clusters."""


class Command(BaseCommand):
    """Runs until SIGTERM or SIGINT."""

    help = "Watch the clusters' bells and ring for those that changed."

    def handle(self, *args: Any, **options: Any) -> None:
        """Check, wake, wait."""
        ended = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_caught: ended.set())
        watch(ended)


def watch(ended: threading.Event) -> None:
    """Wake `observe` for every cluster whose trigger file has changed, until `ended`."""
    bells = Bells()
    due = 0.0
    while not ended.is_set():
        if time.monotonic() >= due:
            bells.look_up()
            heartbeats.beat("watch")
            due = time.monotonic() + CLUSTERS_S
        rung = bells.rung()
        for cluster_id in rung:
            triggers.trigger("observe", cluster_id)
        ended.wait(REST_S if rung else LOOK_S)


class Bells:
    """The trigger file of each enabled cluster that has one, and its last modification time."""

    def __init__(self) -> None:
        self._paths: dict[int, Path] = {}
        self._heard: dict[int, int] = {}
        self._complaints: dict[int, str] = {}

    def look_up(self) -> None:
        """Load the clusters; nothing changes while the database is away."""
        close_old_connections()
        try:
            clusters = list(Cluster.objects.filter(enabled=True))
        except Error as error:
            log.warning("watch_without_clusters", error=str(error))
            return
        found = {cluster.pk: self._bell_of(cluster) for cluster in clusters}
        self._paths = {pk: bell for pk, bell in found.items() if bell is not None}

    def _bell_of(self, cluster: Cluster) -> Path | None:
        """Return the cluster's trigger file; wrong settings are logged once and stop no other cluster."""
        try:
            backend = clusters.backend_for(cluster)
            return backend.bell() if isinstance(backend, Watching) else None
        except Exception as error:  # noqa: BLE001  # whatever an admin wrote there
            if self._complaints.get(cluster.pk) != repr(error):
                self._complaints[cluster.pk] = repr(error)
                log.warning("watch_without_bell", cluster=cluster.slug, error=repr(error))
            return None

    def rung(self) -> list[int]:
        """Return the clusters whose trigger file has changed since the last call; one stat each."""
        return [cluster_id for cluster_id, bell in self._paths.items() if self._has_changed(cluster_id, bell)]

    def _has_changed(self, cluster_id: int, bell: Path) -> bool:
        try:
            now = bell.stat().st_mtime_ns
        except OSError:
            return False
        before, self._heard[cluster_id] = self._heard.get(cluster_id), now
        return before != now

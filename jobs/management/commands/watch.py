"""`manage.py watch`: wake workers on hints of backends, and copy logs that their engines only hand out.

Hints only: what this process misses, the sweep sees a little later.  A copy of a log goes on where it was
interrupted.
"""

from __future__ import annotations

import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import structlog
from django.core.management.base import BaseCommand
from django.db import Error, close_old_connections

from jobs import clusters
from jobs.backends.base import Following, Unreachable, Watching
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
    """Wake `observe` for every cluster whose trigger file has changed, and follow others, until `ended`."""
    bells, followed = Bells(), FollowedClusters()
    due = 0.0
    while not ended.is_set():
        if time.monotonic() >= due:
            bells.look_up()
            followed.look_up()
            heartbeats.beat("watch")
            due = time.monotonic() + CLUSTERS_S
        rung = [*bells.rung(), *followed.take_changed()]
        for cluster_id in rung:
            triggers.trigger("observe", cluster_id)
        ended.wait(REST_S if rung else LOOK_S)
    followed.stop()


class FollowedClusters:
    """The clusters that have to be followed, each by a thread, and which of them have changed.

    Those that accept no more jobs are among them: theirs may still run.
    """

    def __init__(self) -> None:
        self._threads: dict[int, FollowingThread] = {}

    def look_up(self) -> None:
        """Follow clusters as they are now; nothing changes while the database is away."""
        close_old_connections()
        try:
            found = {cluster.pk: cluster for cluster in Cluster.objects.all()}
        except Error:  # which `Bells` tells
            return
        for pk, thread in list(self._threads.items()):
            if pk not in found or found[pk].config != thread.config or not thread.is_alive():
                self._threads.pop(pk).ended.set()
        for pk in found.keys() - self._threads.keys():
            with suppress(Unreachable):  # wrong settings, which `Bells` tells
                backend = clusters.backend_for(found[pk])
                if isinstance(backend, Following):
                    self._threads[pk] = FollowingThread(backend, found[pk])
                    self._threads[pk].start()

    def take_changed(self) -> list[int]:
        """Return the clusters that have changed since the last call."""
        return [pk for pk, thread in self._threads.items() if thread.take_change()]

    def stop(self) -> None:
        """Have all threads end, without waiting for them: they can be killed."""
        for thread in self._threads.values():
            thread.ended.set()


class FollowingThread(threading.Thread):
    """A thread that follows one cluster with its settings of a moment."""

    def __init__(self, backend: Following, cluster: Cluster) -> None:
        super().__init__(name=f"follow-{cluster.slug}", daemon=True)
        self.config = cluster.config
        self.ended = threading.Event()
        self._backend, self._slug = backend, cluster.slug
        self._changed = threading.Event()

    def run(self) -> None:
        """Follow until the end."""
        try:
            self._backend.follow(self.ended, self._changed.set)
        except Exception as error:  # noqa: BLE001  # it is begun again, and stops no other
            log.warning("watch_without_following", cluster=self._slug, error=repr(error))

    def take_change(self) -> bool:
        """Return whether the cluster has changed since the last call."""
        has_changed = self._changed.is_set()
        self._changed.clear()
        return has_changed


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

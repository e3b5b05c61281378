"""`python -m tests.bench.measured N`: measurements of N running replicas, in a console of its own.

Jobs of eight replicas, each a process of this machine, which is read as the local backend reads it.  Every
replica has worked, and moved data, since the pass before, so that every row is written.  Prints JSON: CPU
seconds of a pass, and of the part of it that reads processes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from unittest import mock

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
django.setup()

from django.core.management import call_command  # noqa: E402  # settings come first
from django.db.models import F  # noqa: E402

from jobs.backends.base import Handle  # noqa: E402
from jobs.backends.measures import Transferred, Use  # noqa: E402
from jobs.models import Attempt, Job, MeasuredCluster, Replica, ReplicaUsage  # noqa: E402
from jobs.node import processes  # noqa: E402
from jobs.node.network import interfaces  # noqa: E402
from jobs.node.process_trees import ProcessTable  # noqa: E402
from jobs.scheduling import idle  # noqa: E402
from jobs.states import ReplicaState  # noqa: E402
from tests.bench.watched import HANGS, PASSES, REPLICAS, lay_out  # noqa: E402

MINUTE: Final = timedelta(minutes=1)


@dataclass
class Node:
    """A backend whose replicas are `pids`, in the order of the handles."""

    pids: Mapping[Handle, Sequence[int]]
    passes: int = 0
    read_s: float = 0.0

    def measure(self, handles: Sequence[Handle]) -> Mapping[Handle, Sequence[Use]]:
        begun = time.process_time()
        self.passes += 1
        table = ProcessTable()
        found = {
            handle: [self._use(*each, table) for each in enumerate(self.pids[handle])] for handle in handles
        }
        self.read_s += time.process_time() - begun
        return found

    def _use(self, index: int, pid: int, table: ProcessTable) -> Use:
        pids = [pid, *table.list_below(pid)]
        disk = sum(sum(processes.disk_bytes(each) or ()) for each in pids)
        interfaces.count_bytes(pid)
        moved = self.passes << 24
        return Use(
            "worker",
            index,
            sum(map(processes.cpu_seconds, pids)) + 30 * self.passes,
            sum(map(processes.resident_bytes, pids)) >> 20,
            (50,),
            Transferred(disk + moved, moved, moved, moved),
        )


def main() -> None:
    """Measure, and print."""
    call_command("migrate", verbosity=0)
    count = int(sys.argv[1])
    lay_out(count, HANGS)
    pids: dict[Handle, list[int]] = {}
    rows = []
    for attempt in Attempt.objects.order_by("pk"):
        handle = Handle(f"h-{attempt.key}")
        Attempt.objects.filter(pk=attempt.pk).update(handle=handle)
        pids[handle] = [subprocess.Popen(["sleep", "600"]).pid for _each in range(REPLICAS)]
        rows += [
            Replica(attempt=attempt, role="worker", index=index, ordinal=index, state=ReplicaState.RUNNING)
            for index in range(REPLICAS)
        ]
    Replica.objects.filter(attempt__in=Attempt.objects.all()).delete()
    Replica.objects.bulk_create(rows)
    node = Node(pids)
    cluster = Job.objects.values_list("cluster_id", flat=True)[0]
    spent = 0.0
    try:
        with mock.patch.object(idle, "backend_for", return_value=node):
            for number in range(PASSES + 1):
                MeasuredCluster.objects.update(claimed_at=F("claimed_at") - MINUTE)
                ReplicaUsage.objects.update(at=F("at") - MINUTE)
                begun = time.process_time()
                idle.watch(cluster)
                if number:
                    spent += time.process_time() - begun
    finally:
        for pid in (pid for each in pids.values() for pid in each):
            os.kill(pid, processes.KILL)
    assert ReplicaUsage.objects.count() == count
    print(json.dumps({"pass_s": spent / PASSES, "read_s": node.read_s / (PASSES + 1)}))


if __name__ == "__main__":
    main()

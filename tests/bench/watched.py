"""`python -m tests.bench.watched N`: passes of fault detection over N replicas, in a console of its own.

Jobs of eight replicas, all with fault tolerance; each log grows by a line of each of its steps between two
passes.  Prints JSON: CPU seconds of a pass for hangs alone, and for hangs, patterns and stragglers together.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Final

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
django.setup()

from django.core.management import call_command  # noqa: E402  # settings come first

from jobs import dialects  # noqa: E402
from jobs.dialects.document import Document  # noqa: E402
from jobs.logs import log_store  # noqa: E402
from jobs.models import Attempt, Job, LogStream  # noqa: E402
from jobs.scheduling import fault_watch  # noqa: E402
from jobs.states import State  # noqa: E402
from jobs.submission import store  # noqa: E402
from quotas.models import Cluster, Membership, Quota, Role, User, Workspace  # noqa: E402

REPLICAS: Final = 8
PASSES: Final = 5
STEPS: Final = 30
HANGS: Final = "--enable-job-hang-detection=True"
ALL: Final = f"{HANGS} --enable-perftracker=True"


def lay_out(count: int, arguments: str) -> list[Path]:
    """Start `count` replicas, and return their logs."""
    owner, _made = User.objects.get_or_create(username="bench")
    workspace, _made = Workspace.objects.get_or_create(slug="bench", defaults={"name": "Bench"})
    Membership.objects.get_or_create(workspace=workspace, user=owner, defaults={"role": Role.DEVELOPER})
    cluster, _made = Cluster.objects.get_or_create(slug="bench", defaults={"name": "B", "backend": "local"})
    quota, _made = Quota.objects.get_or_create(
        workspace=workspace, cluster=cluster, slug="bench", defaults={"name": "B"}
    )
    settings = {"EnableErrorMonitoringInAIMaster": True, "ErrorMonitoringArgs": arguments}
    role = {"Type": "Worker", "PodCount": REPLICAS, "Image": "any"}
    text = json.dumps(
        {
            "DisplayName": "bench",
            "JobType": "PyTorchJob",
            "UserCommand": "true",
            "JobSpecs": [role],
            "Settings": settings,
        }
    )
    parsed = dialects.get("dlc").parse(Document(text))
    folder = log_store.jobs_root() / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for _each in range(count // REPLICAS):
        job = store(owner, Document("{}", "dlc").with_parsed(parsed), quota)
        Job.objects.filter(pk=job.pk).update(state=State.RUNNING, run_number=1)
        attempt = Attempt.objects.get(job=job)
        Attempt.objects.filter(pk=attempt.pk).update(live=True)
        for index in range(REPLICAS):
            path = folder / f"{attempt.key}-{index}"
            path.touch()
            live_path = log_store.relative_to_root(str(path))
            LogStream.objects.create(attempt=attempt, role="worker", index=index, live_path=live_path)
            paths.append(path)
    return paths


def measure(paths: list[Path]) -> float:
    """Return the CPU seconds of one pass, the mean of several."""
    fault_watch.watch()
    spent = 0.0
    for number in range(PASSES):
        lines = "".join(f"step={number * STEPS + each} loss=2.31 time=0.31\n" for each in range(STEPS))
        for path in paths:
            with path.open("a") as log:
                log.write(lines)
        begun = time.process_time()
        fault_watch.watch()
        spent += time.process_time() - begun
    return spent / PASSES


def main() -> None:
    """Measure, and print."""
    call_command("migrate", verbosity=0)
    count = int(sys.argv[1])
    found = {}
    for name, arguments in (("hangs_s", HANGS), ("all_s", ALL)):
        found[name] = measure(lay_out(count, arguments))
        Job.objects.update(state=State.SUCCEEDED)
        Attempt.objects.update(live=False)
    print(json.dumps(found))


if __name__ == "__main__":
    main()

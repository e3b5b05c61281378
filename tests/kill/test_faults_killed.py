"""Killed while a fault is found, decided about and acted on: nothing is restarted twice, none is lost."""

from __future__ import annotations

import json
from typing import Any, Final

import httpx
import pytest

from tests.kill.conftest import Arena
from tests.kill.test_groups_killed import arm, post
from tests.kill.test_killed_anywhere import ended
from tests.waiting import wait_for

pytestmark = pytest.mark.kill

ON_THE_WAY: Final = (
    "sanity.before_commit",
    "metrics.before_commit",
    "stacks.before_commit",
    "detect.before_commit",
    "detect.after_commit",
    "cordon.before_commit",
    "decide.before_commit",
    "retry.before_commit",
    "route.before_commit",
)
"""Whoever passes one of these first is killed there: all of them in the life of one job."""

LOST_GPU: Final = """\
#!/bin/sh
[ -e FOLDER/lost ] || { touch FOLDER/lost; echo 'GPU is lost'; exit 15; }
echo 'NVIDIA A100, 0'
"""

TRAIN: Final = """\
echo started >> FOLDER/starts
case $(wc -l < FOLDER/starts) in
1) echo 'step=1 loss=0.5'; exec sleep 600;;
2) echo 'CUDA error: uncorrectable ECC error encountered'; exit 1;;
*) echo 'step=2 loss=0.25';;
esac
"""
"""Hangs, then loses its GPU's memory, then ends."""

CORDONING: Final = """\
from quotas.models import Cluster
Cluster.objects.update(cordons_faulty=True)
"""

UNCORDON: Final = """\
from quotas.models import Cluster, Node
Node.objects.update(state="schedulable")
Cluster.objects.update(cordons_faulty=False)
"""

RESTARTING: Final = ("restart.before_commit", "restart.before_order", "restart.after_order")
"""Likewise, in the life of a job whose replica is started again alone."""

RANKS: Final = """\
echo $RANK >> FOLDER/ranks
[ $RANK = 0 ] || { [ $(grep -c 1 FOLDER/ranks) -gt 1 ] && touch FOLDER/done || kill -9 $$; }
until [ -e FOLDER/done ]; do sleep 0.2; done
"""
"""The second rank is killed once; the first one waits for it."""

LEFT: Final = """\
import json
from jobs.models import Attempt, Event, Job, NotificationEvent, TrainingSeries
from jobs.models.kinds import Kind
from quotas.models import AuditEntry, Node
job = Job.objects.get(public_id="JOB")
rows = Event.objects.filter(job=job, kind="fault").order_by("pk").values_list("params", flat=True)
print(json.dumps({
    "decisions": [[row["code"], row["rule"], row["restarts"]] for row in rows if "rule" in row],
    "stacks": sum(row["code"] == "stacks" for row in rows),
    "restarts": Event.objects.filter(job=job, kind="queued_again").count(),
    "attempts": Attempt.objects.filter(job=job).count(),
    "notified": [each.routed for each in NotificationEvent.objects.filter(job=job, kind=Kind.AGAIN)],
    "cordons": AuditEntry.objects.filter(changes__state=["schedulable", "cordoned"]).count(),
    "points": [[each.count, each.last] for each in TrainingSeries.objects.filter(job=job)],
}))
"""


def test_fault_handling_killed_at_every_step_restarts_once_for_each_fault(arena: Arena) -> None:
    folder = arena.judge / "faults"
    folder.mkdir()
    folder.chmod(0o777)
    (folder / "nvidia-smi").write_text(LOST_GPU.replace("FOLDER", str(folder)))
    (folder / "nvidia-smi").chmod(0o755)
    arena.stack.python(CORDONING)
    arm(arena, *ON_THE_WAY)
    public_id = post(arena, "jobs", {"file": file(str(folder))}, key="faults")["id"]
    wait_for(lambda: is_cordoned(arena), 180, interval=0.5)
    arena.stack.python(UNCORDON)
    job = wait_for(lambda: ended(arena, public_id), 120, interval=0.5)
    assert job["state"] == "SUCCEEDED"
    assert all(arena.taken(point) for point in ON_THE_WAY)
    assert len((folder / "starts").read_text().split()) == 3, "the first attempt ended before its command"
    wait_for(lambda: left(arena, public_id)["points"] == [[2, 0.25]], 120, interval=1)
    assert left(arena, public_id) == {
        "decisions": [
            ["sanity_check_failed", "platform", True],
            ["hang", "restarts_left", True],
            ["gpu_ecc", "platform", True],
        ],
        "stacks": 1,
        "attempts": 4,
        "restarts": 3,
        "notified": [True] * 3,
        "cordons": 1,
        "points": [[2, 0.25]],
    }


def test_replica_is_restarted_once_when_the_console_is_killed_in_between(arena: Arena) -> None:
    folder = arena.judge / "replicas"
    folder.mkdir()
    folder.chmod(0o777)
    arm(arena, *RESTARTING)
    job_file = json.loads(file(str(folder)))
    job_file["JobSpecs"][0]["PodCount"] = 2
    job_file["Settings"].pop("EnableSanityCheck")
    job_file["UserCommand"] = RANKS.replace("FOLDER", str(folder))
    job_file["JobConsole"] = {"fault_tolerance": {"restart_scope": "replica"}}
    public_id = post(arena, "jobs", {"file": json.dumps(job_file)}, key="replicas")["id"]
    job = wait_for(lambda: ended(arena, public_id), 120, interval=0.5)
    assert job["state"] == "SUCCEEDED"
    assert all(arena.taken(point) for point in RESTARTING)
    assert sorted((folder / "ranks").read_text().split()) == ["0", "1", "1"]
    found = left(arena, public_id)
    assert (found["decisions"], found["attempts"]) == ([["signalled", "restarts_left", True]], 1)


def file(folder: str) -> str:
    """A job file in PAI-DLC's words."""
    role = {"Type": "Worker", "Image": "any", "PodCount": 1, "ResourceConfig": {"CPU": "1", "Memory": "1Gi"}}
    restarts = "--enable-job-restart=True --max-num-of-job-restart=5"
    hangs = "--enable-job-hang-detection=True --job-hang-interval=8"
    job = {
        "DisplayName": "faults",
        "JobType": "PyTorchJob",
        "JobSpecs": [role],
        "UserCommand": TRAIN.replace("FOLDER", folder),
        "Envs": {"PATH": f"{folder}:/usr/local/bin:/usr/bin:/bin", "PAI_TASK_GPU_NUM": "1"},
        "Settings": {
            "EnableErrorMonitoringInAIMaster": True,
            "ErrorMonitoringArgs": f"{restarts} {hangs}",
            "EnableSanityCheck": True,
        },
    }
    return json.dumps(job)


def is_cordoned(arena: Arena) -> bool:
    """Whether the only node takes no jobs; not while the console does not answer."""
    try:
        with arena.api() as api:
            answer = api.get("nodes")
    except httpx.HTTPError:
        return False
    return answer.is_success and {node["state"] for node in answer.json()["nodes"]} == {"cordoned"}


def left(arena: Arena, public_id: str) -> dict[str, Any]:
    """What the database has of it in the end."""
    return dict(json.loads(arena.stack.python(LEFT.replace("JOB", public_id)).splitlines()[-1]))

"""A console with something to see: real jobs in every state a person meets, for photographs and flows."""

from __future__ import annotations

import json
import re
from contextlib import closing
from functools import partial
from typing import Any, Final

import httpx

from tests.seeds import FOLDER
from tests.slurm import Slurm
from tests.stack import Stack
from tests.waiting import wait_for

MACHINE: Final = {
    "CONSOLE_LOCAL": json.dumps(
        {
            "cpu_milli": 64_000,
            "memory_mib": 256 * 1024,
            "gpus": {"TITANX": 4, "V100": 1},
            "engine": "none",
            "allow_plain": True,
        }
    ),
    "CONSOLE_INVENTORY_SECONDS": "2",
}
"""A machine of known size, whatever it really has, where images are not needed."""

_TRAINING: Final = (
    'for epoch in $(seq 1 6); do echo "epoch $epoch  loss $(awk "BEGIN{print 2.4/$epoch}")"; sleep 0.2; done'
)

_WRITING: Final = (
    "mkdir -p results checkpoints/epoch-3 .cache; (echo epoch,loss,accuracy; for e in $(seq 1 40); do echo "
    "$e,$((240 / e)),0.$((50 + e)); done) > results/metrics.csv; head -c 3000000 /dev/zero > "
    "checkpoints/epoch-3/model.pt; echo 中文 > '训练 笔记.txt'; ln -s results/metrics.csv latest.csv; mkfifo "
    "control; while true; do date; sleep 1; done"
)

SCENES: Final[dict[str, dict[str, Any]]] = {
    "succeeded": {"command": f"{_TRAINING}; echo saved to /output/model.pt"},
    "failed": {
        "command": f"{_TRAINING}; printf '\\033[31mRuntimeError: CUDA out of memory\\033[0m\\n'; exit 1",
        "gpuNumber": 1,
    },
    "partly": {"command": "nvidia-smi-is-not-here", "minFailedTaskCount": None},
    "running": {
        "command": "while true; do date; sleep 1; done",
        "taskNumber": 3,
        "gpuNumber": 1,
        "memoryMB": 8192,
    },
    "serving": {
        "command": "python3 -m http.server --bind 127.0.0.1 $PAI_CONTAINER_HOST_web_PORT_LIST",
        "portList": [{"label": "web", "beginAt": 0, "portNumber": 1}],
        "gpuNumber": 1,
        "gpuType": "V100",
    },
    "writing": {"command": _WRITING},
}
"""By what becomes of it: what a job's role and file have beside the usual."""

WAITING: Final[dict[str, Any]] = {"command": "nvidia-smi", "gpuNumber": 1, "gpuType": "V100"}
"""What another has: later jobs of that type wait behind it."""

SEED: Final = json.dumps(
    json.loads((FOLDER / "dlc-sdk-quota.json").read_bytes()), indent=2, ensure_ascii=False
)
"""The sample of PAI-DLC's page, as people would lay it out."""

_STATES: Final = {"succeeded": "succeeded", "failed": "failed", "partly": "warning"}


def job_file(name: str, **changes: Any) -> str:
    """A job file of one role; `gpuType` goes to the job, everything else to the role."""
    job: dict[str, Any] = {"jobName": name, "image": "sitonholy/tensorflow:16.04-9.0-3.5-1.8.0"}
    if "gpuType" in changes:
        job["gpuType"] = changes.pop("gpuType")
    role = {
        "name": "task_1",
        "taskNumber": 1,
        "cpuNumber": 1,
        "memoryMB": 256,
        "gpuNumber": 0,
        "minFailedTaskCount": 1,
        "command": "true",
    }
    return json.dumps({**job, "taskRoles": [{**role, **changes}]}, indent=2, ensure_ascii=False)


def submit(client: httpx.Client, text: str, origin: str = "") -> str:
    """Send a file through the form, as a browser without a script does; the new job's id.

    `origin` is the job that it was made from.
    """
    page = client.get("/jobs/new").text
    key = re.search(r'name="key" value="(\w+)"', page)
    assert key is not None, page
    data = {"csrfmiddlewaretoken": client.headers["X-CSRFToken"], "text": text, "key": key[1], "do": "submit"}
    data["origin"] = origin
    answer = client.post("/jobs/new", data=data)
    assert answer.url.path.startswith("/jobs/") and answer.url.path != "/jobs/new", answer.text  # noqa: PT018
    return answer.url.path.split("/")[2]


def state_of(client: httpx.Client, job: str) -> str:
    """The state that the job's page shows: `running`, or `warning` for a success with failures."""
    shown = re.search(r'data-tab-state="(\w+)"', client.get(f"/jobs/{job}/").text)
    return shown[1] if shown else ""


def fill(stack: Stack) -> dict[str, str]:
    """Submit every scene and wait until each has become what it is to show; ids by name."""
    with closing(stack.client()) as client:
        jobs = {name: submit(client, job_file(f"{name}-job", **role)) for name, role in SCENES.items()}
        for name, job in jobs.items():
            wait_for(partial(_is, client, job, _STATES.get(name, "running")), timeout=60, interval=0.2)
        mended = job_file("failed-job-2", command=_TRAINING, gpuNumber=1)
        jobs["again"] = submit(client, mended, jobs["failed"])
        client.post("/drafts/save", data={"text": job_file("half-done")[:60]})
        jobs["seed"] = submit(client, SEED)
        wait_for(partial(_is, client, jobs["seed"], "succeeded"), timeout=60, interval=0.2)
        client.post("/drafts/save", data={"text": SEED})
        jobs |= {"template": keep_template(client), "dataset": dataset(client), "sweep": sweep(client)}
        jobs["waiting"] = submit(client, job_file("waiting-job", **WAITING))
        wait_for(partial(_is, client, jobs["waiting"], "queued"), timeout=60, interval=0.2)
        return jobs


def fill_slurm(stack: Stack, slurm: Slurm) -> dict[str, str]:
    """Add a Slurm of which others use a part, with a job that runs there and one that waits; ids by name."""
    by_hand = ("--parsable", "--output=/dev/null", "--mem=16G", "--time=1-0")
    for name, wanted in (("bert-large", "--gres=gpu:titan:2"), ("preprocess", "--cpus-per-task=12")):
        slurm.call("sbatch", *by_hand, f"--job-name={name}", wanted, "--wrap=sleep 600")
    lecture = ("ReservationName=lecture", "Nodes=gpu2", "Users=root", "StartTime=now+1day", "Duration=120")
    slurm.call("scontrol", "create", "reservation", *lecture)
    slurm.call("scontrol", "update", "NodeName=cpu2", "State=DRAIN", "Reason=a fan is broken")
    config = {"configuration": str(slurm.configuration), "allow_plain": True}
    stack.manage("add_cluster", "hpc", "--title", "HPC", "--config", json.dumps(config))
    quota = {"hpc": {"all": {"name": "All of it"}}}
    told = {"version": 1, "workspaces": {"default": {"name": "Default", "quotas": quota}}}
    stack.manage("apply", "-", stdin=json.dumps(told))
    with closing(stack.client()) as client:
        wait_for(lambda: "gpu2" in client.get("/nodes/").text, timeout=60, interval=0.2)
        role = {"gpuNumber": 2, "memoryMB": 16_384, "cpuNumber": 4, "command": f"{_TRAINING}; sleep 600"}
        jobs: dict[str, str] = {}
        for name, state in (("runs", "running"), ("waits", "pending")):
            text = job_file(f"resnet-{len(jobs) + 1}", gpuType="a100", taskNumber=2, **role)
            answer = client.post("/api/console/v1/jobs", json={"file": text, "cluster": "hpc"})
            jobs[name] = str(answer.raise_for_status().json()["id"])
            wait_for(partial(_is, client, jobs[name], state), timeout=60, interval=0.2)
        waits = f"/api/console/v1/jobs/{jobs['waits']}"  # whose reason Slurm tells a little later
        wait_for(
            lambda: client.get(waits).json()["reason"]["code"] == "engine_queue", timeout=60, interval=0.2
        )
        return jobs


def keep_template(client: httpx.Client) -> str:
    """Keep a template in two versions, with a lock and a question; its id."""
    text = job_file("train", command="python train.py --epochs 3")
    said = {
        "do": "keep",
        "name": "Training, as we do it",
        "description": "One GPU, our image, and a learning rate of your choice.",
        "icon": "cpu",
        "rule:/roles/0/command": "locked",
        "rule:/roles/0/resources/cpu_milli": "asked",
    }
    there = client.post("/templates/new", data={**said, "text": text}).url.path
    assert there.startswith("/templates/t-"), there
    more = {"text": text.replace("epochs 3", "epochs 10"), "notes": "ten epochs", "as_default": "on"}
    client.post(f"{there}/edit", data={**said, **more})
    return there.rpartition("/")[2]


def sweep(client: httpx.Client) -> str:
    """A sweep of three jobs, one at a time, of which one fails; its id."""
    text = job_file("train", command="test $LR != 0.01 && echo loss $LR")
    asked = {"file": text, "grid": {"env.LR": ["0.1", "0.01", "0.001"]}, "at_once": 1}
    return str(client.post("/api/console/v1/sweeps", json=asked).raise_for_status().json()["id"])


def dataset(client: httpx.Client) -> str:
    """A dataset for everybody, which was tried; its id."""
    values = {"name": "ImageNet 2012", "source": "host", "uri": "/data/sets/imagenet", "workspace": None}
    more = {"mount_path": "/mnt/imagenet", "description": "1,281,167 pictures in 1,000 classes."}
    answer = client.post("/api/console/v1/assets/datasets", json={**values, **more})
    key = str(answer.raise_for_status().json()["id"])
    client.patch(f"/api/console/v1/assets/datasets/{key}", json={"uri": "/data/sets/imagenet-2"})
    client.post(f"/api/console/v1/assets/datasets/{key}/test", json={})
    return key


def _is(client: httpx.Client, job: str, state: str) -> bool:
    return state_of(client, job) == state

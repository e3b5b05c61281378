"""Requests of the DLC page, unchanged but for what only its cloud has, on a real Slurm."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from jobs import dialects
from jobs.backends.base import Submission
from jobs.backends.slurm.config import SlurmConfig
from jobs.dialects.document import Document
from jobs.spec import CodeSource, JobSpec, Mount, MountPurpose, Requirements, Resources
from jobs.states import State
from tests.jobs.backends.benches import log_of, wait_until_over
from tests.jobs.backends.slurm_bench import Releasing, SlurmBench, by_rest

SEEDS = Path(__file__).parents[3] / "data" / "seeds"
PROGRAM = """\
import json, os, pathlib
told = json.loads(os.environ["TF_CONFIG"])
task = told["task"]
gpus = os.environ["CUDA_VISIBLE_DEVICES"]
pathlib.Path("/root/data/nas1", f"{task['type']}-{task['index']}").write_text(gpus)
print(len(told["cluster"]["worker"]), os.environ["RANK"], "of", os.environ["WORLD_SIZE"])
"""

THREE_ROLES = {
    "DisplayName": "three-roles",
    "JobType": "TFJob",
    "JobSpecs": [
        {"Type": "PS", "PodCount": 1, "ResourceConfig": {"CPU": "1", "Memory": "128Mi"}},
        {"Type": "Chief", "PodCount": 1, "ResourceConfig": {"CPU": "1", "Memory": "128Mi"}},
        {"Type": "Worker", "PodCount": 2, "ResourceConfig": {"CPU": "1", "Memory": "128Mi"}},
    ],
    "UserCommand": '[ "$PAI_TASK_ROLE_NAME" != PS ] || sleep 300; echo $PAI_TASK_ROLE_NAME $TF_CONFIG',
    "Envs": {"WORD": "known"},
    "WorkspaceId": "1",
}


def sent(bench: SlurmBench, spec: JobSpec) -> Submission:
    return replace(bench.submission(), spec=spec)


@pytest.mark.parametrize("way", ["commands", "rest"])
def test_dlc_request_of_three_workers_runs_with_code_data_and_packages(
    on_slurm: SlurmBench, way: str, tmp_path: Path
) -> None:
    text = (SEEDS / "dlc-tfjob.json").read_text(encoding="utf-8")
    parsed = dialects.get("dlc").parse(Document(text.replace("python /root", "python3 /root"))).spec
    code, data = tmp_path / "code", tmp_path / "nas"
    for folder in (code, data):
        folder.mkdir()
    (code / "mnist.py").write_text(PROGRAM)
    (code / "requirements.txt").write_text("# nothing that the node has not\n")
    # What the ids stand for is known where they are registered; nodes of this cluster are smaller.
    size = Resources(cpu_milli=1000, memory_mib=256, gpus=1, gpu_type="a100")
    spec = parsed.model_copy(
        update={
            "roles": tuple(role.model_copy(update={"resources": size}) for role in parsed.roles),
            "code": CodeSource(uri=str(code), path="/root/code"),
            "mounts": (Mount(uri=str(data), path="/root/data/nas1", purpose=MountPurpose.OUTPUT),),
            "requirements": Requirements(directory=parsed.requirements.directory),
        }
    )
    told = by_rest(on_slurm.slurm) if way == "rest" else {}
    config = SlurmConfig.from_settings(on_slurm.folder, {**on_slurm.told, **told, "allow_plain": True})
    backend = Releasing(config)
    handle = backend.submit(sent(on_slurm, spec))
    seen = wait_until_over(backend, handle, timeout=120)
    logs = [log_of(backend, handle, "Worker", index) for index in range(3)]
    assert seen.state is State.SUCCEEDED, logs
    assert [log.splitlines()[-1] for log in logs] == [f"3 {rank} of 3" for rank in range(3)]
    assert sorted(file.read_text() for file in data.iterdir()) == ["0", "1", "2"]


def test_dlc_request_of_three_roles_ends_with_chief_and_workers(on_slurm: SlurmBench) -> None:
    spec = dialects.get("dlc").parse(Document(json.dumps(THREE_ROLES))).spec
    handle = on_slurm.backend.submit(sent(on_slurm, spec))
    seen = wait_until_over(on_slurm.backend, handle, timeout=120)
    assert seen.state is State.SUCCEEDED, seen.reason
    for name, count in (("Chief", 1), ("Worker", 2)):
        for index in range(count):
            said = log_of(on_slurm.backend, handle, name, index)
            assert said.startswith(f"{name} ")
            assert f'"type": "{name.lower()}", "index": {index}' in said

"""What the jobs of a demonstration run: files as people write them, read once by their dialect."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from jobs import dialects
from jobs.spec import JobSpec
from jobs.states import State

NAME: Final = "NAME-OF-THE-JOB"
DIALECT: Final = "openpai-v1"

_KINDS: Final = (
    ("resnet50-imagenet", 2, 12, 64, 4, "H800", "torchrun --nproc_per_node=4 train.py --config r50.yaml"),
    ("detector-finetune", 1, 8, 32, 2, "V100", "python tools/train.py configs/detector.py"),
    ("lm-pretrain-1b", 4, 48, 512, 8, "H800", "bash run_pretrain.sh 1b"),
    ("tokenizer", 1, 16, 64, 0, "", "python build_vocab.py --size 64000"),
    ("asr-conformer", 2, 16, 128, 4, "V100", "python train_asr.py --epochs 60"),
    ("ranker-nightly", 1, 8, 64, 1, "V100", "python train_ranker.py --days 7"),
    ("evaluate", 1, 4, 16, 1, "V100", "python evaluate.py --all-checkpoints"),
    ("notebook", 1, 4, 16, 1, "V100", "jupyter lab --port $PAI_CONTAINER_HOST_jupyter_PORT_LIST"),
)
"""Name, replicas, CPUs, GiB, GPUs, their type, command."""


@dataclass(frozen=True, slots=True)
class File:
    """A job file whose name stands as `NAME` in its text and in its specification."""

    kind: str
    text: str
    spec: JobSpec
    spec_json: str

    def called(self, name: str) -> tuple[str, str]:
        """Text and specification of the job of that name."""
        return self.text.replace(NAME, name), self.spec_json.replace(NAME, name)


def files() -> list[File]:
    """One of each kind."""
    return [_file(*kind) for kind in _KINDS]


def _file(kind: str, replicas: int, cpus: int, gib: int, gpus: int, gpu_type: str, command: str) -> File:
    role = {
        "name": "worker",
        "taskNumber": replicas,
        "cpuNumber": cpus,
        "memoryMB": gib * 1024,
        "gpuNumber": gpus,
        "minFailedTaskCount": 1,
        "command": command,
    }
    job = {"jobName": NAME, "image": "pytorch/pytorch:2.4.0", "gpuType": gpu_type, "taskRoles": [role]}
    text = json.dumps({key: value for key, value in job.items() if value}, indent=2)
    spec = dialects.parse(text, DIALECT)[1].spec
    return File(kind, text, spec, spec.model_dump_json())


UNFINISHED: Final = {State.RUNNING: 12, State.QUEUED: 5, State.PENDING: 1, State.SUBMITTING: 1}
FINISHED: Final = {State.SUCCEEDED: 70, State.FAILED: 18, State.STOPPED: 10, State.LOST: 1}
"""How often each is met."""

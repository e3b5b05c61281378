"""No silent key: each key that fills nothing of a JobSpec gives a note wherever a file has it.

That a field of a JobSpec without effect on a backend gives one is a test of `jobs.backends.effects`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from jobs import dialects
from jobs.dialects.base import Refused
from jobs.dialects.document import Document

_CREDENTIALS: Final = {
    "EnableCredentialInject": True,
    "CredentialConfigItems": [{"Key": "0", "Roles": [{"RoleArn": "acs:ram::1:role/x"}]}],
}
FILES: Final[dict[str, dict[str, Any]]] = {
    "dlc": {
        "DisplayName": "n",
        "JobType": "PyTorchJob",
        "UserCommand": "true",
        "ResourceId": "q",
        "JobMaxRunningTimeMinutes": 5,
        "JobSpecs": [
            {"Type": "Worker", "Image": "i", "PodCount": 1, "ResourceConfig": {"CPU": "1", "Memory": "1Gi"}}
        ],
        "DataSources": [{"DataSourceId": "d-1"}],
        "CodeSource": {"CodeSourceId": "code-1"},
        "CustomEnvs": [{"Key": "A", "Value": "1"}],
        "CredentialConfig": _CREDENTIALS,
    },
    "aihc": {
        "name": "n",
        "queue": "q",
        "jobType": "PyTorchJob",
        "command": "true",
        "jobSpec": {"image": "i", "replicas": 1, "resources": [{"name": "cpu", "quantity": 1}]},
    },
    "openpai-v1": {
        "jobName": "n",
        "image": "i",
        "taskRoles": [{"name": "w", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 256, "command": "true"}],
    },
    "openpai-v2": {
        "protocolVersion": 2,
        "name": "n",
        "type": "job",
        "prerequisites": [{"protocolVersion": 2, "name": "i", "type": "dockerimage", "uri": "i"}],
        "taskRoles": {
            "w": {
                "instances": 1,
                "dockerImage": "i",
                "resourcePerInstance": {"cpu": 1, "memoryMB": 256, "gpu": 0},
                "commands": ["true"],
            }
        },
        "deployments": [{"name": "d"}],
        "defaults": {"deployment": "d"},
        "extras": {
            "com.microsoft.pai.runtimeplugin": [{"plugin": "tensorboard"}],
            "hivedScheduler": {"taskRoles": {"w": {"skuType": "V100"}}},
        },
    },
    "kubeflow": {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "n"},
        "spec": {
            "pytorchReplicaSpecs": {
                "Worker": {
                    "replicas": 1,
                    "template": {
                        "spec": {
                            "containers": [
                                {
                                    "name": "pytorch",
                                    "image": "i",
                                    "command": ["true"],
                                    "env": [{"name": "A", "value": "1"}],
                                    "ports": [{"name": "p", "containerPort": 80}],
                                    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                                }
                            ],
                            "initContainers": [
                                {
                                    "name": "first",
                                    "image": "i",
                                    "command": ["true"],
                                    "env": [{"name": "A", "value": "1"}],
                                    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                                }
                            ],
                            "volumes": [{"name": "v", "emptyDir": {}}],
                        }
                    },
                }
            }
        },
    },
    "dlc-params": {
        "name": "n",
        "workers": 1,
        "worker_image": "i",
        "command": "true",
        "job_type": "PyTorchJob",
    },
    "sbatch": {},
}
"""Files in which every object of their dialects can be completed by a key."""

VALUES: Final = ("1", "x", 1, True, ["x"], {"k": "v"}, [{"k": "v"}])
_PLUGIN: Final = "/extras/com.microsoft.pai.runtimeplugin[]"
EFFECTIVE: Final = frozenset(
    {
        "/DataSources[]/DataSourceVersion",
        *("/protocolVersion", "/type", "/prerequisites[]/name", "/prerequisites[]/type"),
        *("/prerequisites[]/protocolVersion", "/taskRoles[]/protocolVersion", "/deployments[]/name"),
        f"{_PLUGIN}/parameters",
    }
)
"""Keys that act and fill no field of their own: they are part of an id, or say what an object is."""

SHEBANG: Final = "#!/bin/bash"

KEYS: Final = [
    (name, row.spelling)
    for name in FILES
    for row in dialects.fields(name)
    if not row.path and row.spelling not in EFFECTIVE and "settings/" not in row.spelling.lower()
]


def put(value: Any, steps: list[str], leaf: object) -> Any:
    """Return an object with `leaf` at the steps; `name[]` leads into the first of a list, or all of a map."""
    if not steps:
        return leaf
    step, *rest = steps
    name = step.removesuffix("[]")
    inner = value.get(name) if isinstance(value, dict) else None
    if step.endswith("[]") and isinstance(inner, dict):
        made: Any = {key: put(each, rest, leaf) for key, each in inner.items()}
    elif step.endswith("[]"):
        first, *others = inner or [{}]
        made = [put(first, rest, leaf), *others]
    else:
        made = put(inner, rest, leaf)
    return {**(value if isinstance(value, dict) else {}), name: made}


def text_of(dialect: str, value: dict[str, Any]) -> str:
    """Return the file with these keys."""
    if dialect == "dlc-params":
        return "".join(f"{key}={_word(leaf)}\n" for key, leaf in value.items())
    if dialect == "sbatch":
        options = [
            f"#SBATCH --{key}" + ("" if leaf is True else f"={_word(leaf)}") for key, leaf in value.items()
        ]
        return "\n".join([SHEBANG, *options, "true", ""])
    return json.dumps(value)


def _word(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def notes(dialect: str, value: dict[str, Any]) -> set[str]:
    return {note.pointer for note in Document(text_of(dialect, value), dialect).parsed.notes}


def readings(dialect: str, spelling: str) -> Iterator[set[str]]:
    """Yield the pointers of the notes on a file with the key, for each value that it accepts."""
    steps, candidates = spelling.strip("/").split("/"), list(VALUES)
    for leaf in candidates:
        try:
            yield notes(dialect, put(FILES[dialect], steps, leaf))
        except Refused as refused:
            words = [str(each.params["choices"]) for each in refused.problems if "choices" in each.params]
            candidates += [word for listed in words for word in listed.split(", ") if word not in candidates]


@pytest.mark.parametrize(("dialect", "spelling"), KEYS, ids=[f"{name}{key}" for name, key in KEYS])
def test_key_that_fills_nothing_is_noted(dialect: str, spelling: str) -> None:
    place = "/w" if dialect == "openpai-v2" and "taskRoles[]" in spelling else "/0"
    pointer = spelling.replace("[]", place)
    usual = notes(dialect, FILES[dialect])
    assert any(
        pointer == each or pointer.startswith(f"{each}/") or each.startswith(f"{pointer}/")
        for found in readings(dialect, spelling)
        for each in found - usual
    )

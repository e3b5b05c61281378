"""No silent key: each key that fills nothing of a JobSpec gives a note wherever a file has it."""

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
}
"""Files in which every object of their dialects can be completed by a key."""

VALUES: Final = ("1", "x", 1, True, ["x"], {"k": "v"}, [{"k": "v"}])
EFFECTIVE: Final = frozenset({"/DataSources[]/DataSourceVersion"})
"""Keys that act although they fill no field of their own: the version is part of a dataset's id."""

KEYS: Final = [
    (name, row.spelling)
    for name in FILES
    for row in dialects.fields(name)
    if not row.path and row.spelling not in EFFECTIVE and "AdvancedSettings" not in row.spelling
]


def put(value: Any, steps: list[str], leaf: object) -> Any:
    """Return an object with `leaf` at the steps; `name[]` leads into the first element of a list."""
    if not steps:
        return leaf
    step, *rest = steps
    name = step.removesuffix("[]")
    inner = value.get(name) if isinstance(value, dict) else None
    if step.endswith("[]"):
        first, *others = inner or [{}]
        made: Any = [put(first, rest, leaf), *others]
    else:
        made = put(inner, rest, leaf)
    return {**(value if isinstance(value, dict) else {}), name: made}


def notes(dialect: str, value: object) -> set[str]:
    return {note.pointer for note in Document(json.dumps(value), dialect).parsed.notes}


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
    pointer = spelling.replace("[]", "/0")
    usual = notes(dialect, FILES[dialect])
    assert any(
        pointer == each or pointer.startswith(f"{each}/") or each.startswith(f"{pointer}/")
        for found in readings(dialect, spelling)
        for each in found - usual
    )

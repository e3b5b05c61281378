"""Texts of about 1 MiB that are written to cost as much as possible."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

from jobs.dialects.base import MAX_BYTES

MOST: Final = MAX_BYTES - 16 * 1024


def grown(text: str, chance: Random) -> str:
    """Return `text` with a piece of it repeated until there is about 1 MiB."""
    ends = [chance.randrange(len(text) + 1) for _end in range(2)]
    start, end = min(ends), max(ends)
    piece = text[start:end] or " "
    return (text[:start] + piece * (MOST // len(piece.encode()) + 1) + text[end:])[: MOST // 2]


def _fill(piece: str, most: int = MOST) -> str:
    return piece * (most // len(piece))


def _numbered(piece: str, most: int = MOST) -> Iterator[str]:
    """`piece` with 0, 1, … for `@`, as often as there is room."""
    length, number = 0, 0
    while length < most:
        made = piece.replace("@", str(number))
        length += len(made)
        number += 1
        yield made


def _v1(**more: Any) -> str:
    return json.dumps({"jobName": "j", "image": "i", "taskRoles": [{"name": "r", "command": "c"}], **more})


def _v2(**more: Any) -> str:
    role = {"dockerImage": "i", "commands": ["c"], "resourcePerInstance": {"cpu": 1, "memoryMB": 9, "gpu": 0}}
    prerequisites = [{"type": "dockerimage", "name": "i", "uri": "i"}]
    base = {"protocolVersion": 2, "name": "j", "type": "job", "prerequisites": prerequisites}
    return json.dumps({**base, "taskRoles": {"main": role}, **more})


_KUBEFLOW: Final = (
    "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspec:\n  pytorchReplicaSpecs:\n"
    "    Worker:\n      replicas: 1\n      template:\n        spec:\n          containers:\n"
    "          - name: pytorch\n            image: i\n            command: [run]\n            env:\n"
)


def _roles(count: int) -> dict[str, Any]:
    each = {"dockerImage": "i", "commands": ["c"], "resourcePerInstance": {"cpu": 1, "memoryMB": 9, "gpu": 0}}
    return {f"r{number}": each for number in range(count)}


def shared_variable() -> str:
    """Return a short text whose conversion repeats a long value for each role."""
    roles = [{"name": f"r{number}", "command": "run"} for number in range(300)]
    return _v1(taskRoles=roles, jobEnvs={"E": "v" * 500_000})


def hostile() -> dict[str, Callable[[], str]]:
    """Return how each text is made, by what is bad about it."""
    return {
        "parameter": lambda: _v2(
            parameters={"a": "x" * 500_000},
            extras={"e": "<% $parameters.a %>" * 20_000},
        ),
        "parameter in commands": lambda: _v2(
            parameters={"a": "x" * 500_000},
            taskRoles={"m": {**_roles(1)["r0"], "commands": ["<% $parameters.a %>"] * 20_000}},
        ),
        "aliases": lambda: (
            "a0: &a0 x\n"
            + "".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]\n" for n in range(5_000))
        ),
        "aliases of kubeflow": lambda: (
            _KUBEFLOW
            + f"            - {{name: A, value: &long {'x' * 100}}}\n"
            + "".join(_numbered("            - {name: A@, value: *long}\n", 900_000))
        ),
        "misspelt long key": lambda: _v1(**{"jobNam" + "e" * 1_000_000: 1}),
        "misspelt keys v1": lambda: _v1(**{f"jobNme{n}": 1 for n in range(50_000)}),
        "misspelt keys v2": lambda: _v2(**{f"prerequisite{n}": 1 for n in range(40_000)}),
        "misspelt long keys v2": lambda: _v2(**{f"prerequisite{n}" + "s" * 5000: 1 for n in range(190)}),
        "misspelt keys dlc": lambda: json.dumps(
            {"DisplayName": "j", "JobSpecs": [], **{f"JobSpec{n}": 1 for n in range(45_000)}}
        ),
        "misspelt keys params": lambda: "".join(_numbered("workr_count@=1\n")),
        "params": lambda: "name=j\ncommand=c\n" + "".join(_numbered("envs=a@=b\n")),
        "roles that share variables": lambda: _v1(
            taskRoles=[{"name": f"r{n}", "command": "run"} for n in range(300)],
            jobEnvs={f"E{n}": "v" for n in range(3_000)},
        ),
        "roles v1": lambda: _v1(taskRoles=[{"name": f"r{n}", "command": "c"} for n in range(25_000)]),
        "roles v2": lambda: _v2(taskRoles=_roles(8_000)),
        "equal roles v1": lambda: _v1(taskRoles=[{"name": "r", "command": "c"}] * 27_000),
        "dlc roles": lambda: json.dumps(
            {
                "DisplayName": "j",
                "JobType": "PyTorchJob",
                "UserCommand": "c",
                "JobSpecs": [{"Type": "Worker", "PodCount": 1, "Image": "i"}] * 18_000,
            }
        ),
        "aihc envs": lambda: json.dumps(
            {
                "name": "j",
                "jobType": "PyTorchJob",
                "command": "c",
                "jobSpec": {
                    "image": "i",
                    "replicas": 1,
                    "envs": [{"name": f"E{n}", "value": ""} for n in range(28_000)],
                },
            }
        ),
        "deep lists": lambda: _fill("["),
        "deep objects": lambda: _fill('{"a":'),
        "deep flow yaml": lambda: "a: " + _fill("{a: "),
        "deep block yaml": lambda: "".join(" " * n + "a:\n" for n in range(1_400)),
        "deep sequence": lambda: _fill("- "),
        "questions": lambda: _fill("? "),
        "many documents": lambda: _fill("---\n"),
        "tags": lambda: "a: " + _fill("!!str "),
        "spaces": lambda: _fill(" "),
        "lines": lambda: _fill("\n"),
        "comments": lambda: _fill("#\n"),
        "yaml keys": lambda: "".join(_numbered("k@: v\n")),
        "equal yaml keys": lambda: _fill("k: v\n"),
        "equal json keys": lambda: "{" + _fill('"jobName":1,') + '"a":1}',
        "long number": lambda: '{"jobName": ' + _fill("9") + "}",
        "long numbers": lambda: '{"jobName": [' + _fill("9" * 4000 + ", ") + "1]}",
        "long amount": lambda: "#!/bin/bash\n#SBATCH --mem=" + _fill("9") + "\n",
        "sbatch directives": lambda: "#!/bin/bash\n" + _fill("#SBATCH --job-name=a\n") + "run\n",
        "sbatch misspelt": lambda: "#!/bin/bash\n" + "".join(_numbered("#SBATCH --job-nme@=a\n")) + "run\n",
        "sbatch array": lambda: (
            "#!/bin/bash\n#SBATCH --array=" + ",".join(_numbered("@-1000000000", 900_000)) + "\nrun\n"
        ),
        "sbatch one directive": lambda: "#!/bin/bash\n#SBATCH " + _fill("-J a ") + "\nrun\n",
        "sbatch quotes": lambda: "#!/bin/bash\n#SBATCH -J a\n" + _fill("'\"") + "\n",
        "sbatch exports": lambda: (
            "#!/bin/bash\n#SBATCH -J a\n" + "".join(_numbered("export A@=$A@\n")) + "run\n"
        ),
        "sbatch srun": lambda: "#!/bin/bash\n#SBATCH -J a\n" + _fill("srun -n1 run &\n") + "wait\n",
        "sbatch modules": lambda: "#!/bin/bash\n#SBATCH -J a\n" + _fill("module load cuda\n"),
        "sbatch heredocs": lambda: "#!/bin/bash\n#SBATCH -J a\n" + "".join(_numbered("cat <<E@\n")),
        "placeholders": lambda: _v1(taskRoles=[{"name": "r", "command": _fill("<% $", 1_000_000)}]),
        "braces": lambda: _v1(taskRoles=[{"name": "r", "command": _fill("{", 1_000_000)}]),
        "sweep braces": lambda: _v1(
            taskRoles=[{"name": "r", "command": "".join(_numbered("{a@}", 1_000_000))}]
        ),
        "dollars": lambda: _v1(taskRoles=[{"name": "r", "command": _fill("${", 1_000_000)}]),
        "jupyter": lambda: _v1(
            taskRoles=[{"name": "r", "command": _fill("jupyter notebook --ip=0.0.0.0 ; ", 1_000_000)}]
        ),
        "quotes": lambda: _v1(taskRoles=[{"name": "r", "command": _fill("'", 1_000_000)}]),
        "variables": lambda: _v1(jobEnvs={f"E{n}": "" for n in range(60_000)}),
        "curl": lambda: "curl -X POST http://h/api -d '" + _fill("{") + "'",
        "curl flags": lambda: "curl " + _fill("-H a:b ") + "http://h",
        "docker": lambda: "docker run " + _fill("-e A=b ") + "image run",
        "fences": lambda: _fill("```\n{\n```\n"),
        "fences of jobs": lambda: _fill("```json\n{'jobName': 1}\n```\n"),
        "open fences": lambda: "".join("`" * n + "\n" for n in range(3, 1_400)),
        "calls": lambda: _fill("CreateJobRequest("),
        "calls and names": lambda: _fill("a = JobSpec(\n", 60_000) + "CreateJobRequest(a=1)",
        "python dict": lambda: "{" + _fill("'a': True, ", 60_000) + "}",
        "python deep": lambda: "{'a':" + _fill("(", 60_000),
        "http": lambda: "POST / HTTP/1.1\n" + _fill("a: b\n"),
        "manifest": lambda: _fill("kind: Job\napiVersion: batch/v1\n---\n"),
        "dotenv": lambda: "".join(_numbered("A@=b\n")),
        "dotenv comments": lambda: _fill("#\n"),
        "dotenv blanks": lambda: "A=b" + _fill(" ") + "c",
        "dotenv names": lambda: "".join(_numbered("@=\n")),
        "dotenv quotes": lambda: _fill("A='"),
        "dotenv backslashes": lambda: "A='" + _fill("\\"),
        "site": lambda: "workspaces:\n" + "".join(_numbered("- {name: w@, nme: a}\n")),
        "site unknown": lambda: "".join(_numbered("workspace@: 1\n")),
        "surrogates": lambda: '{"jobName": "' + _fill("\\ud800") + '"}',
        "control": lambda: _fill("\x00"),
        "wide": lambda: _v1(jobName="𝔄" * 250_000),
    }

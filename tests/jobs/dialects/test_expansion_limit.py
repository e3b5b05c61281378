"""What a short text stands for has a bound, and is counted before it is copied."""

import json
import time
import tracemalloc
from collections.abc import Callable

import pytest

from jobs import dialects
from jobs.dialects.base import Problem, Refused
from jobs.dialects.document import Document
from jobs.dialects.expansion_limit import MAX_EXPANDED
from jobs.spec import JobSpec
from jobs.submission.sweeps.expansion import CannotSweepError, combinations, expand
from tests.fuzz.target import MOST_CPU_S, MOST_MEMORY


def v2(long: int, times: int, *, each: bool = False) -> str:
    """A parameter of so many characters, named so many times, in one command or in as many."""
    template = "<% $parameters.a %>"
    commands = [template] * times if each else [template * times]
    role = {
        "dockerImage": "i",
        "commands": ["true", *commands],
        "resourcePerInstance": {"cpu": 1, "memoryMB": 100, "gpu": 0},
    }
    return json.dumps(
        {
            "protocolVersion": 2,
            "name": "j",
            "type": "job",
            "parameters": {"a": "x" * long},
            "prerequisites": [{"type": "dockerimage", "name": "i", "uri": "i"}],
            "taskRoles": {"main": role},
        },
        indent=1,
    )


def kubeflow(long: int, times: int) -> str:
    """A value with an anchor, and so many aliases of it."""
    lines = "".join(f"            - {{name: A{n}, value: *long}}\n" for n in range(times))
    return (
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspec:\n  pytorchReplicaSpecs:\n"
        "    Worker:\n      replicas: 1\n      template:\n        spec:\n          containers:\n"
        "          - name: pytorch\n            image: i\n            command: [run]\n            env:\n"
        f"            - {{name: A, value: &long {'x' * long}}}\n{lines}"
    )


def cost(act: Callable[[], object]) -> tuple[float, int]:
    """Seconds of CPU, and bytes held at once."""
    begun = time.process_time()
    act()
    taken = time.process_time() - begun
    tracemalloc.start()
    act()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return taken, peak


@pytest.mark.parametrize(
    ("name", "text", "pointer"),
    [
        ("openpai-v2", v2(400_000, 3_000), "/taskRoles/main/commands/1"),
        ("openpai-v2", v2(300_000, 20_000), "/taskRoles/main/commands/1"),
        ("openpai-v2", v2(100_000, 3_000), "/taskRoles/main/commands/1"),
        ("openpai-v2", v2(20_000, 5_000), "/taskRoles/main/commands/1"),
        ("openpai-v2", v2(20_000, 1_000), "/taskRoles/main/commands/1"),
        ("openpai-v2", v2(400_000, 3_000, each=True), "/taskRoles/main/commands/11"),
        (
            "kubeflow",
            kubeflow(60_000, 1_500),
            "/spec/pytorchReplicaSpecs/Worker/template/spec/containers/0/env/70/value",
        ),
    ],
    ids=range(7),
)
def test_file_expanding_too_far_is_refused_soon_at_its_place(name: str, text: str, pointer: str) -> None:
    found: list[Problem] = []

    def refused() -> None:
        with pytest.raises(Refused) as caught:
            dialects.get(name).parse(Document(text))
        found[:] = caught.value.problems

    cpu_s, memory = cost(refused)
    assert [each.code for each in found] == ["expands_too_far"]
    assert (found[0].pointer, found[0].params) == (pointer, {"most": MAX_EXPANDED})
    assert (found[0].line or 0) > 1
    assert cpu_s < MOST_CPU_S
    assert memory < MOST_MEMORY / 2


def test_file_expanding_within_limit_is_read() -> None:
    parsed = dialects.get("openpai-v2").parse(Document(v2(100_000, 40)))
    assert len(parsed.spec.roles[0].command) > 100_000 * 40
    assert dialects.get("kubeflow").parse(Document(kubeflow(1_000, 100))).spec.roles


def test_yaml_nested_aliases_are_counted_together() -> None:
    text = (
        "a: &a " + "x" * 100_000 + "\nb: &b [*a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\nd: [*c, *c, *c, *c]\n"
    )
    with pytest.raises(Refused) as caught:
        dialects.get("openpai-v2").parse(Document(text))
    assert [(each.code, each.line) for each in caught.value.problems] == [("expands_too_far", 4)]


@pytest.mark.parametrize("grid", [{"long": ["x" * 100_000]}, {"name": [str(n) for n in range(200)]}])
def test_sweep_expanding_too_far_is_refused_before_creating_jobs(grid: dict[str, list[str]]) -> None:
    command = "{long}" * 1_000 + "y" * 500_000
    text = json.dumps({"jobName": "j", "image": "i", "taskRoles": [{"name": "a", "command": command}]})
    spec: JobSpec = dialects.get("openpai-v1").parse(Document(text)).spec

    def refused() -> None:
        with pytest.raises(CannotSweepError) as caught:
            expand(spec, combinations(grid, []))
        assert [each.code for each in caught.value.problems] == ["sweep_too_large"]

    cpu_s, memory = cost(refused)
    assert cpu_s < MOST_CPU_S
    assert memory < MOST_MEMORY

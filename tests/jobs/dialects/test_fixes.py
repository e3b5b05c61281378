"""A fix keeps what was meant, and nothing but what it is about changes."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import dialects
from jobs.dialects import amounts, documents
from jobs.dialects.base import Fix, Note, Problem, Refused
from jobs.dialects.checks import apply_all_fixes, check
from jobs.dialects.dlc_params.keys import KNOWN
from jobs.dialects.dlc_params.lines import read as read_lines
from jobs.dialects.document import Document
from jobs.dialects.sbatch.header import read as read_script
from jobs.dialects.spans import escape, split
from jobs.dialects.yaml_text.rules import JS_YAML
from tests.jobs.dialects.sample_fields import samples


def v1(**role: Any) -> str:
    complete = {"name": "main", "taskNumber": 2, "cpuNumber": 1, "memoryMB": 1000, "gpuNumber": 0}
    roles = [{**complete, "command": "run", **role}]
    return json.dumps({"jobName": "j", "image": "i", "taskRoles": roles}, indent=2)


def dlc(**worker: Any) -> str:
    roles = [{"Type": "Worker", "PodCount": 1, "Image": "i", **worker}]
    return json.dumps({"DisplayName": "j", "JobType": "TFJob", "UserCommand": "run", "JobSpecs": roles})


def v2(*, role: str = "", resources: str = "") -> str:
    return f"""protocolVersion: 2
name: j
type: job
prerequisites:
  - {{type: dockerimage, name: i, uri: i}}
taskRoles:
  main:  # the only one
    instances: 1
    dockerImage: i
{role}    resourcePerInstance: {{cpu: 1, memoryMB: 100, gpu: 0{resources}}}
    commands: [run]
"""


def pod(**limits: Any) -> str:
    container = {"name": "pytorch", "image": "i", "command": ["run"], "resources": {"limits": limits}}
    worker = {"replicas": 1, "template": {"spec": {"containers": [container]}}}
    spec = {"pytorchReplicaSpecs": {"Worker": worker}}
    return json.dumps(
        {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "j"}, "spec": spec}
    )


def findings(text: str, name: str) -> list[Problem | Note]:
    checked = check(Document(text, name))
    return [*checked.problems, *checked.notes]


def fix_at(text: str, name: str, key: str) -> Fix | None:
    """The fix of what is told of the member called `key`."""
    found = [each for each in findings(text, name) if split(each.pointer)[-1:] == [key]]
    assert found, "nothing is told of it"
    return next((each.fix for each in found if each.fix), None)


def flat(name: str, text: str) -> dict[str, object]:
    """Every scalar of a text by its pointer."""
    if name == "dlc-params":
        return {f"/{key}": entry.value for key, entry in read_lines(Document(text), KNOWN).entries.items()}
    if name == "sbatch":
        script = read_script(Document(text))
        options = {f"/{each.component}/{each.name}": each.value for each in script.arguments}
        return {**options, "/script": script.commands}
    return dict(_scalars(documents.read(Document(text), JS_YAML, lambda _documents: 0).value, ""))


def _scalars(value: object, pointer: str) -> Iterator[tuple[str, object]]:
    inner: list[tuple[str, object]] = []
    if isinstance(value, dict):
        inner = [(escape(str(key)), each) for key, each in value.items()]
    elif isinstance(value, list):
        inner = [(str(index), each) for index, each in enumerate(value)]
    if not inner:
        yield pointer, value
    for token, each in inner:
        yield from _scalars(each, f"{pointer}/{token}")


@pytest.mark.parametrize(
    ("key", "said", "meant"),
    [
        ("memoryMB", "8GB", 8192),
        ("memoryMB", "8 GB", 8192),
        ("memoryMB", "8G", 8192),
        ("memoryMB", "16Gi", 16384),
        ("memoryMB", "16GiB", 16384),
        ("memoryMB", "1.5g", 1536),
        ("memoryMB", "512M", 512),
        ("memoryMB", "512MB", 512),
        ("memoryMB", "512 Mi", 512),
        ("memoryMB", "2048k", 2),
        ("memoryMB", "1T", 1048576),
        ("memoryMB", "eight gigabytes", 8192),
        ("shmMB", "0.5Gi", 512),
        ("storageGB", "1T", 1024),
        ("storageGB", "2048MB", 2),
        ("cpuNumber", "2 cores", 2),
        ("cpuNumber", "1500m", 2),
        ("cpuNumber", "500m", 1),
        ("cpuNumber", "4 vCPUs", 4),
        ("cpuNumber", "two", 2),
        ("gpuNumber", "8 GPUs", 8),
        ("gpuNumber", "one", 1),
        ("taskNumber", "Two", 2),
        ("taskNumber", "3 tasks", 3),
    ],
)
def test_fix_of_number_with_unit_is_number_in_key_unit(key: str, said: str, meant: int) -> None:
    text = v1(**{key: said})
    fix = fix_at(text, "openpai-v1", key)
    assert fix == Fix(f"/taskRoles/0/{key}", meant)
    made = dialects.get("openpai-v1").apply_fixes(Document(text), [fix])
    assert json.loads(made)["taskRoles"][0] == {**json.loads(text)["taskRoles"][0], key: meant}


@pytest.mark.parametrize(
    ("key", "said"),
    [
        *(
            ("memoryMB", each)
            for each in ("a lot", "8 GPUs", "8GB of RAM", "2 cores", "8Q", "as needed", [8192])
        ),
        *(("cpuNumber", each) for each in ("2GB", "all", "2x", True, {"limit": 2})),
        *(("taskNumber", each) for each in ("2GB", "many", "1-4", "500m")),
        ("retryCount", "for ever"),
        ("retryCount", -9),
        ("taskNumber", 10**9),
    ],
)
def test_number_of_unknown_meaning_has_no_fix(key: str, said: object) -> None:
    text = v1(**{key: said})
    if key == "retryCount":
        text = json.dumps({**json.loads(v1()), key: said})
    assert fix_at(text, "openpai-v1", key) is None
    assert apply_all_fixes(check(Document(text, "openpai-v1"))).document.text == text


def test_null_value_is_removed_by_its_fix() -> None:
    assert fix_at(v1(memoryMB=None), "openpai-v1", "memoryMB") == Fix("/taskRoles/0/memoryMB")


def test_value_beside_unreadable_one_is_not_compared_with_default() -> None:
    text = v1(memoryMB="plenty", shmMB=4096, taskNumber="some", minFailedTaskCount=3)
    told = {each.code: each.fix for each in findings(text, "openpai-v1")}
    assert told.keys() == {"wrong_type"}
    assert apply_all_fixes(check(Document(v1(memoryMB="8GB", shmMB=4096), "openpai-v1"))).document.text == v1(
        memoryMB=8192, shmMB=4096
    )


@pytest.mark.parametrize(
    ("name", "text", "key", "meant"),
    [
        ("dlc", dlc(PodCount="two"), "PodCount", 2),
        ("dlc", dlc(PodCount="lots"), "PodCount", None),
        ("dlc", dlc(ResourceConfig={"CPU": "2 vCPUs", "Memory": "8Gi"}), "CPU", "2"),
        ("dlc", dlc(ResourceConfig={"CPU": "2", "Memory": "eight GB"}), "Memory", "8Gi"),
        ("dlc", dlc(ResourceConfig={"CPU": "2", "Memory": "16384"}), "Memory", None),
        ("dlc", dlc(ResourceConfig={"CPU": "2", "Memory": "8Gi", "GPU": "2 GPUs"}), "GPU", "2"),
        (
            "dlc",
            json.dumps({**json.loads(dlc()), "JobMaxRunningTimeMinutes": "2h"}),
            "JobMaxRunningTimeMinutes",
            120,
        ),
        ("dlc", json.dumps({**json.loads(dlc()), "Priority": 12}), "Priority", 9),
        ("dlc", dlc(Type="Keeper"), "Type", None),
        ("dlc", dlc(Type="Wroker"), "Type", "Worker"),
        (
            "dlc",
            dlc(
                SpotSpec={"SpotStrategy": "SpotWithPriceLimit", "SpotPriceLimit": 1, "SpotDiscountLimit": 0.5}
            ),
            "SpotPriceLimit",
            None,
        ),
        ("openpai-v2", v2(resources=", ports: {ssh: two}"), "ssh", 2),
        ("openpai-v2", v2(role="    extraContainerOptions: {shmMB: 2Gi}\n"), "shmMB", 2048),
        ("openpai-v2", v2().replace("dockerImage: i", "dockerImage: torch"), "dockerImage", None),
        ("kubeflow", pod(memory="8GB"), "memory", "8Gi"),
        ("kubeflow", pod(cpu="2 cores"), "cpu", "2"),
        ("kubeflow", pod(memory="plenty"), "memory", None),
        ("dlc-params", "name=j\ncommand=run\nworkers=two\nworker_image=i\n", "workers", "2"),
        ("dlc-params", "name=j\ncommand=run\nworkers=1\nworker_memory=eight GB\n", "worker_memory", "8Gi"),
        ("sbatch", "#!/bin/bash\n#SBATCH --mem=16GiB\nrun\n", "mem", "16G"),
        ("sbatch", "#!/bin/bash\n#SBATCH --dependency=afterok:1?afterany:2\nrun\n", "dependency", None),
    ],
)
def test_fix_in_every_dialect_has_meant_value_or_none(name: str, text: str, key: str, meant: object) -> None:
    fix = fix_at(text, name, key)
    assert (fix.value if fix else None) == meant


@pytest.mark.parametrize(
    ("name", "text", "typo", "key"),
    [
        ("openpai-v1", v1(minSuceededTaskCount=2), "minSuceededTaskCount", "minSucceededTaskCount"),
        ("openpai-v1", v1(comandLine=1, memorymb=8), "comandLine", None),
        ("openpai-v2", v2(role="    taskRetryCuont: 3  # thrice\n"), "taskRetryCuont", "taskRetryCount"),
        ("openpai-v2", v2(role="    completion: {minSuceededInstances: 1}\n"), "minSuceededInstances",
         "minSucceededInstances"),
        ("openpai-v2", v2(role="    completion: {minFailedTaskCount: 1}\n"), "minFailedTaskCount",
         "minFailedInstances"),
        ("dlc", json.dumps({**json.loads(dlc()), "Prioirty": 3}), "Prioirty", "Priority"),
        ("dlc-params", "name=j\ncommand=run\nworkers=1\nworker_imgae = i \n", "worker_imgae", "worker_image"),
        ("sbatch", "#!/bin/bash\n#SBATCH -N 2 --partiton=a --mem=1G # fast\nrun\n", "partiton", "partition"),
    ],
)  # fmt: skip
def test_misspelt_key_is_renamed_by_its_fix_and_rest_stays(
    name: str, text: str, typo: str, key: str | None
) -> None:
    fix = fix_at(text, name, typo)
    if key is None:
        assert fix is None
        return
    assert fix
    assert fix.key == key
    assert dialects.get(name).apply_fixes(Document(text), [fix]) == text.replace(typo, key)
    assert typo not in apply_all_fixes(check(Document(text, name))).document.text


@pytest.mark.parametrize(
    "typo", ["memoryGB", "maxFailedTaskCount", "gpuNumbers_", "xpuNumber", "portlist2", "shmGB", "hmMB"]
)
def test_key_with_ambiguous_meaning_has_no_fix(typo: str) -> None:
    text = v1(**{typo: 8}, portList=[])
    assert fix_at(text, "openpai-v1", typo) is None


def test_second_misspelling_of_one_key_is_not_renamed() -> None:
    text = v1(minSuceededTaskCount=1, minSucceededTaskCuont=2)
    renamed = [each.fix for each in findings(text, "openpai-v1") if each.fix and each.fix.key]
    assert len(renamed) == 1
    assert (
        fix_at(v1(minSucceededTaskCount=1, minSuceededTaskCount=2), "openpai-v1", "minSuceededTaskCount")
        is None
    )


def test_key_rename_preserves_comments_and_order() -> None:
    text = '{\n  // which\n  "jobName": "j", "iamge": "i", // what\n  "taskRoles": []\n}\n'
    fixes = [Fix("/iamge", key="image"), Fix("/jobName", "k")]
    made = dialects.get("openpai-v1").apply_fixes(Document(text), fixes)
    assert made == text.replace("iamge", "image").replace('"j"', '"k"')


def test_template_fix_leaves_template_with_same_prefix_unchanged() -> None:
    commands = '["run <% $parameters.rat %> <% $parameters.rat_of_all %>"]'
    text = v2().replace("commands: [run]", f"commands: {commands}") + "parameters: {rate: 1, rat_of_all: 2}\n"
    made = apply_all_fixes(check(Document(text, "openpai-v2"))).document.text
    assert "run <% $parameters.rate %> <% $parameters.rat_of_all %>" in made


GARBAGE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**9), 10**9),
    st.floats(-1e6, 1e6),
    st.sampled_from(
        ["", "two", "8GB", "16Gi", "500m", "2 cores", "plenty", "yes", "off", "3h", "Wroker", "1.5"]
    ),
    st.text("abGiMk0123. ", max_size=8),
    st.just([]),
    st.just({}),
    st.just(["8"]),
    st.just({"a": 1}),
)
READABLE = [(name, text) for name in dialects.NAMES for text in samples(name).values()]


@given(case=st.sampled_from(READABLE), number=st.integers(0, 10_000), garbage=GARBAGE, rename=st.booleans())
def test_fix_changes_only_its_target(
    case: tuple[str, str], number: int, garbage: object, rename: bool
) -> None:
    name, text = case
    dialect = dialects.get(name)
    pointers = [each for each in flat(name, text) if each and each != "/script"]
    pointer = pointers[number % len(pointers)]
    if name == "sbatch":
        pointer = "/" + pointer.rpartition("/")[2]
    token = split(pointer)[-1]
    spoilt = (
        Fix(pointer, garbage) if not rename else Fix(pointer, key=token[:-1] + token[-2:][::-1][:1] + "x")
    )
    text = dialect.apply_fixes(Document(text), [spoilt])
    try:
        before = flat(name, text)
    except Refused:
        return
    for finding in findings(text, name):
        fix = finding.fix
        if fix is None or finding.code in WHOLE_LINES:
            continue
        changed = difference(before, flat(name, dialect.apply_fixes(Document(text), [fix])))
        allowed: tuple[str, ...] = (fix.pointer,)
        if fix.key is not None:
            around = fix.pointer.rpartition("/")[0]
            allowed = (fix.pointer, f"{around}/{escape(fix.key)}")
            gone = {at: before[at] for at in changed if at in before}
            assert sorted(map(repr, gone.values())) == sorted(
                map(repr, (changed[at] for at in changed if at not in before))
            )
        assert all(within(at, allowed, name) for at in changed), (finding, changed)


WHOLE_LINES = {"no_interpreter", "dos_line_ends"}
"""What is no value: the first line, and how lines end."""


def difference(before: Mapping[str, object], after: Mapping[str, object]) -> dict[str, object]:
    """What is said otherwise after a fix than before, or no longer."""
    return {
        at: after.get(at)
        for at in {**before, **after}
        if at not in before or at not in after or repr(before[at]) != repr(after[at])
    }


def within(at: str, allowed: tuple[str, ...], name: str) -> bool:
    """Whether `at` is, or is part of, what a fix is about."""
    if name == "sbatch":
        return any(at.rpartition("/")[2] == each.rpartition("/")[2] for each in allowed)
    return any(at == each or at.startswith(f"{each}/") or f"{at}/" == each[: len(at) + 1] for each in allowed)


@given(
    number=st.decimals(0, 10_000, places=2, allow_nan=False),
    unit=st.sampled_from(["k", "M", "MB", "Mi", "MiB", "G", "GB", "Gi", "GiB", "T", "TiB", " GB", " Mi"]),
    key=st.sampled_from([("MiB", 1), ("GiB", 1024)]),
)
def test_whole_in_unit_rounds_written_amount_up(number: Any, unit: str, key: tuple[str, int]) -> None:
    in_mib = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 2**20}[unit.strip()[0].lower()]
    exact = float(number) * in_mib / key[1]
    assert abs((amounts.whole_in_unit(f"{number}{unit}", key[0]) or 0) - math.ceil(exact - 1e-9)) <= 0

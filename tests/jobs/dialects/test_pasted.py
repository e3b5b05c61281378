"""Texts that hold a job file without being one: each is read, and problems stand where they were pasted."""

import builtins
import json
import time
from pathlib import Path
from typing import Any

import pytest

from jobs import dialects
from jobs.dialects import checks
from jobs.dialects.base import Fix, Note, Problem, Refused
from jobs.dialects.checks import CheckResult, check
from jobs.dialects.document import Document
from jobs.dialects.pasted.extraction import extract
from jobs.messages.notes import note_message
from jobs.messages.problems import problem_message
from jobs.spec import Framework, Mount

DATA = Path(__file__).parents[2] / "data" / "pasted"

DLC = {
    "DisplayName": "x",
    "JobType": "PyTorchJob",
    "JobSpecs": [{"Type": "Worker", "Image": "i", "PodCount": 1}],
    "UserCommand": "run",
}
SBATCH = "#!/bin/bash\n#SBATCH --nodes=zwei\nsrun python x\n"
DOCKER = (
    "docker run --rm -it --gpus 2 --cpus 4 -m 16g --shm-size=8g -e A=1 -e HF_TOKEN -v /data:/in:ro -v vol:/x "
    "-w /work -p 8080:80 --network host --name my_run pytorch/pytorch:2.1 python train.py --lr 1e-3\n"
)
KUBERNETES = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: pi
spec:
  parallelism: 2
  completions: 5
  backoffLimit: 4
  completionMode: Indexed
  template:
    spec:
      containers:
      - name: main
        image: perl:5.34
        command: ["perl", "-wle", "print 1"]
        resources: {limits: {cpu: "2", memory: 1Gi}}
      restartPolicy: Never
"""


def sample(name: str) -> str:
    return (DATA / f"{name}.txt").read_text(encoding="utf-8")


def accepted(text: str) -> CheckResult:
    checked = check(Document(text))
    assert not checked.problems
    assert checked.parsed is not None
    return checked


def at(text: str, told: Note | Problem) -> str:
    """What stands where something is told."""
    assert told.line is not None
    assert told.column is not None
    return text.splitlines()[told.line - 1][told.column - 1 :]


def codes(checked: CheckResult) -> list[str]:
    return [note.code for note in checked.notes]


@pytest.mark.parametrize(
    ("name", "dialect", "first", "where", "job"),
    [
        ("sdk-public", "dlc", "read_from_python", "{", "sample-dlc-job"),
        ("sdk-quota", "dlc", "read_from_python", "CreateJobRequest(", "sample-dlc-job"),
        ("sdk-flattened-quota", "dlc", "read_from_python", "CreateJobRequest(", "sample-dlc-job"),
        ("sdk-flattened-discount", "dlc", "read_from_python", "{ 'WorkspaceId'", "sample-spot-job"),
        ("sdk-flattened-price", "dlc", "read_from_python", "{ 'WorkspaceId'", "sample-spot-job"),
        ("http-dlc", "dlc", "read_from_http", "{", "tf-mnist-test"),
        ("http-aihc", "aihc", "read_from_http", "1{", "api-0513-2"),
    ],
)
def test_vendor_samples_are_read_as_printed(
    name: str, dialect: str, first: str, where: str, job: str
) -> None:
    text = sample(name)
    checked = accepted(text)
    assert checked.parsed
    assert (checked.document.known_dialect, checked.parsed.spec.name, checked.notes[0].code) == (
        dialect,
        job,
        first,
    )
    assert at(text, checked.notes[0]).startswith(where)
    again = checks.apply_all_fixes(checked)
    assert again.parsed
    assert not again.problems
    assert again.parsed.spec == checked.parsed.spec
    assert not [note for note in again.notes if note.code.startswith("read_from")], "it is the job file now"


def test_sdk_program_is_read_and_its_unread_parts_are_reported() -> None:
    text = sample("sdk-quota")
    spec = accepted(text).parsed.spec  # type: ignore[union-attr]
    (role,) = spec.roles
    assert role.image.endswith("tensorflow-training:1.15-cpu-py36-ubuntu18.04")
    assert (role.resources.cpu_milli, role.resources.memory_mib) == (1000, 2048)
    assert role.command == 'echo "Hello World"'
    checked = accepted(sample("sdk-public"))
    left = {note.params["key"]: note for note in checked.notes if note.code == "value_not_in_text"}
    assert list(left) == ["WorkspaceId", "Image", "EcsSpec", "DataSourceId"]
    assert at(sample("sdk-public"), left["Image"]).startswith("image_uri,")
    assert "ecs_specs.body.ecs_specs[0].instance_type" in note_message(left["EcsSpec"])


def test_python_dict_is_read_with_problems_at_its_lines() -> None:
    text = """job = {
  'DisplayName': 'é', "JobType": 'PyTorchJob',   # the name
  'JobSpecs': [{'Type': 'Worker', 'Image': None, 'UseSpotInstance': False, 'PodCount': 0,},],
  'UserCommand': ("echo 'a' "
                  "b"),
}
"""
    (problem,) = [each for each in check(Document(text)).problems if each.code == "too_small"]
    assert at(text, problem) == "0,},],"
    text = text.replace("'é'", "'e'").replace("0,},]", "1,},]")
    fixed = checks.apply_all_fixes(check(Document(text.replace("'PyTorchJob'", "'PyTorchJo'"))))
    assert not fixed.problems
    assert fixed.parsed
    assert fixed.parsed.spec.roles[0].command == "echo 'a' b"
    assert json.loads(fixed.document.text)["JobType"] == "PyTorchJob"


def test_pasted_program_is_never_executed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def forbidden(*_args: Any, **_more: Any) -> None:
        raise AssertionError("executed")

    monkeypatch.setattr(builtins, "eval", forbidden)
    monkeypatch.setattr(builtins, "exec", forbidden)
    mark = tmp_path / "mark"
    call = f"__import__('pathlib').Path({str(mark)!r}).touch()"
    text = f"x = {call}\nclient.create_job(CreateJobRequest(display_name={call}, job_type='PyTorchJob', "
    text += f"job_specs=[JobSpec(type='Worker', pod_count=1)], user_command='run', priority=[{call}][0]))\n"
    checked = check(Document(text))
    assert [each.code for each in checked.problems] == ["required"]
    assert at(text, checked.problems[0]).startswith("CreateJobRequest(")
    assert not mark.exists()


@pytest.mark.parametrize(
    "text",
    [
        "{'a': " * 5000,
        "{" + "'a': [" * 60 + "1" + "]" * 60 + "}",
        "CreateJobRequest(" * 20_000,
        "a = 'x' * 9\n" * 4000 + "CreateJobRequest(user_command=a)",
        "a=JobSpec(" * 6000 + "CreateJobRequest(job_specs=[a])",
        "b = '" + "x" * 40_000 + "'\nCreateJobRequest(tags=[" + "b, " * 900 + "])",
        "a0 = [1]\n"
        + "".join(f"a{n} = [{', '.join([f'a{n - 1}'] * 9)}]\n" for n in range(1, 12))
        + "CreateJobRequest(tags=a11)",
        "curl -d '" + "{" * 500_000,
        'curl -d "' + '\\"' * 500_000,
        "POST /x\n" + "a: b\n" * 200_000 + "{" * 100,
        "```\n" * 250_000,
        "docker run " + "-e a=b " * 140_000,
        "docker run -v" * 80_000,
    ],
    ids=range(13),
)
def test_hostile_pasted_text_is_checked_soon(text: str) -> None:
    begun = time.process_time()
    check(Document(text))
    assert time.process_time() - begun < 2


def test_http_request_is_read_with_or_without_blank_line() -> None:
    body = json.dumps(DLC, indent=1)
    for head in (
        "POST /api/v1/jobs HTTP/1.1\n",
        "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\n\r\n",
        "post /x\nA:b\n",
    ):
        assert codes(accepted(head + body))[0] == "read_from_http"
    wrong = "POST /x HTTP/1.1\nHost:x\n\n" + body.replace('"PodCount": 1', '"PodCount": 0')
    (problem,) = check(Document(wrong)).problems
    assert at(wrong, problem).startswith("0")


@pytest.mark.parametrize(
    "command",
    [
        "curl -X POST http://x \\\n  -H 'Authorization: Bearer s3cret' \\\n  -d '{body}'\n",
        "$ curl http://x --data-raw='{body}' -s",
        "curl -s -d'{body}' http://x",
        "curl --json $'{body}' http://x | jq .",
    ],
)
def test_curl_body_is_read(command: str) -> None:
    text = command.replace("{body}", json.dumps(DLC, indent=1).replace("PyTorchJob", "PyTorchJo"))
    (problem,) = check(Document(text)).problems
    assert at(text, problem).startswith('"PyTorchJo"')
    fixed = checks.apply_all_fixes(check(Document(text)))
    assert not fixed.problems
    assert "s3cret" not in fixed.document.text


def test_curl_body_in_double_quotes_keeps_problem_places() -> None:
    text = 'curl --json "' + json.dumps({**DLC, "JobType": "PyTorchJo"}).replace('"', '\\"') + '" http://x'
    (problem,) = check(Document(text)).problems
    assert (problem.code, problem.pointer) == ("not_a_choice", "/JobType")
    assert at(text, problem).startswith('"PyTorchJo\\"')


def test_markdown_page_with_job_file_is_read() -> None:
    script = SBATCH.replace("\n", "\n   ")
    text = f"# Run\n\nFirst:\n\n```\nls\n```\n\n1. then\n\n   ```bash\n   {script}```\n"
    (problem,) = check(Document(text)).problems
    assert (problem.code, at(text, problem)) == ("option_value", "zwei")
    nested = "~~~sh\ncurl -d '" + json.dumps(DLC) + "' http://x\n~~~\n"
    assert codes(accepted(nested))[:2] == ["read_from_markdown", "read_from_curl"]


def test_container_command_becomes_job_of_one_replica() -> None:
    checked = accepted(DOCKER)
    assert checked.parsed
    spec = checked.parsed.spec
    (role,) = spec.roles
    has = role.resources
    assert (spec.name, spec.framework, role.image, role.replicas) == (
        "my_run",
        None,
        "pytorch/pytorch:2.1",
        1,
    )
    assert role.command == "cd /work && python train.py --lr 1e-3"
    assert (has.cpu_milli, has.memory_mib, has.shm_mib, has.gpus) == (4000, 16384, 8192, 2)
    assert (spec.env, spec.mounts) == ({"A": "1"}, (Mount(uri="file:///data", path="/in", read_only=True),))
    assert [port.begin_at for port in role.ports] == [80]
    told = {note.code: note for note in checked.notes if note.line}
    assert list(told) == ["read_from_docker", "flag_left_out", "variable_left_out"]
    assert at(DOCKER, told["variable_left_out"]).startswith("HF_TOKEN ")


@pytest.mark.parametrize(
    ("gpus", "count", "is_told"),
    [("3", 3, False), ("all", 1, True), ("'\"device=0,2\"'", 2, False), ("count=2", 2, False)],
)
def test_container_command_gpus_are_counted(gpus: str, count: int, is_told: bool) -> None:
    checked = accepted(f"sudo podman run --gpus {gpus} a/b:1 bash -c 'echo $A && ls'")
    assert checked.parsed
    (role,) = checked.parsed.spec.roles
    assert (role.resources.gpus, role.command) == (count, "echo $A && ls")
    assert ("gpus_taken_as_one" in codes(checked)) == is_told


def test_container_command_without_command_requires_one() -> None:
    (problem,) = check(Document("docker run -d nginx")).problems
    assert problem.pointer == "/UserCommand"


def test_kubernetes_job_is_read_as_one_role() -> None:
    checked = accepted(KUBERNETES)
    assert checked.parsed
    assert checked.document.known_dialect == "kubeflow"
    spec = checked.parsed.spec
    (role,) = spec.roles
    assert (spec.name, spec.framework, role.replicas, spec.retry.limit) == ("pi", Framework.PYTORCH, 2, 4)
    assert (role.image, role.command) == ("perl:5.34", "perl -wle 'print 1'")
    told = {note.code: at(KUBERNETES, note) for note in checked.notes if note.line}
    assert told["completions_ignored"] == "5"
    assert told["key_left_out"] == "Indexed"
    wrong = KUBERNETES.replace("name: pi", "name: Pi")
    (problem,) = check(Document(wrong)).problems
    assert at(wrong, problem) == "Pi"
    as_json = json.dumps({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "Pi"}, "spec": {}})
    assert {each.code for each in check(Document(as_json)).problems} >= {"bad_label"}


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("python train.py --lr 1e-3", "python train.py --lr 1e-3"),
        ("$ torchrun --nproc_per_node=2 train.py\n", "torchrun --nproc_per_node=2 train.py"),
        ("cd /x\npip install numpy\npython a.py\n", "cd /x\npip install numpy\npython a.py"),
        ("A=1 ./run.sh -x > log", "A=1 ./run.sh -x > log"),
        (
            "import os\nprint(os.getpid())\n",
            "python3 - <<'END_OF_SCRIPT'\nimport os\nprint(os.getpid())\nEND_OF_SCRIPT",
        ),
    ],
)
def test_plain_command_is_offered_as_start_command(text: str, command: str) -> None:
    checked = check(Document(text))
    (problem,) = checked.problems
    assert (problem.code, checked.document.known_dialect) == ("is_a_command", None)
    assert problem.fix is not None
    assert problem.fix.pointer == ""
    assert "start command" in problem_message(problem)
    fixed = checks.apply_all_fixes(checked)
    assert fixed.parsed
    assert fixed.document.text == problem.fix.value
    (role,) = fixed.parsed.spec.roles
    assert (fixed.parsed.spec.framework, role.command) == (None, command)


@pytest.mark.parametrize(
    "text",
    ["Hello, what is this?", "python is a nice language.", "foo: bar", "<html>", "", "time flies."],
)
def test_other_texts_are_not_taken_for_commands(text: str) -> None:
    assert check(Document(text)).problems[0].code in {"unknown_dialect", "empty_text"}


PLAIN = {
    "a fence in a command": "protocolVersion: 2\nname: a\ntype: job\n"
    "prerequisites:\n- {type: dockerimage, name: i, uri: i}\ntaskRoles:\n  a:\n    dockerImage: i\n"
    "    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}\n    commands:\n"
    "    - |\n      cat <<E\n      ```\n      {}\n      ```\n      E\n",
    "a call in a script": "#!/bin/bash\n#SBATCH -n1\npython - <<E\nCreateJobRequest(display_name='x')\nE\n",
    "Python in JSON": json.dumps(
        {**DLC, "UserCommand": "python -c \"x = {'a': None, 'b': [True, 'c']}  # x\""}
    ),
    "curl in parameters": "name=a\nworkers=1\nworker_image=i\nworker_cpu=1\n"
    "worker_memory=1Gi\ncommand=curl -d '{}' http://x\n",
}


@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN.keys())
def test_job_file_is_never_unwrapped_as_pasted_text(text: str) -> None:
    assert extract(Document(text)) is None
    assert not [note for note in check(Document(text)).notes if note.code.startswith("read_from")]


def test_pasted_text_changes_are_made_in_its_job_file() -> None:
    text = "POST /x HTTP/1.1\n\n" + json.dumps(DLC, indent=2)
    dialect = dialects.get("dlc")
    parsed = dialect.parse(Document(text))
    changed = parsed.spec.model_copy(update={"name": "other"})
    rendered = dialect.render(changed, parsed.extras, base=Document(text))
    assert rendered.text == json.dumps({**DLC, "DisplayName": "other"}, indent=2)
    assert dialect.apply_fixes(Document(text), [Fix("/DisplayName", "y")]) == json.dumps(
        {**DLC, "DisplayName": "y"}, indent=2
    )
    assert parsed.text == json.dumps(DLC, indent=2), "what is stored is the job file alone"


def test_pasted_text_is_converted() -> None:
    made = dialects.convert(Document(DOCKER), "openpai-v1")
    assert made.source.dialect == "dlc"
    assert dialects.parse(made.document.text)[1].spec.roles[0].resources.gpus == 2
    with pytest.raises(Refused):
        dialects.convert(Document("POST /x\n\n{"), "openpai-v1")


def test_fences_nested_too_deep_are_refused() -> None:
    text = "".join("`" * number + "\n" for number in range(3, 1_400))
    with pytest.raises(Refused):
        dialects.parse(text)

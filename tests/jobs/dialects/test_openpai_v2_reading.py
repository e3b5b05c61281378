"""The field rules of OpenPAI v2, one by one."""

import json
import time
from typing import Any

import pytest

from jobs import dialects
from jobs.dialects.base import Fix, Parsed, Problem, Refused
from jobs.dialects.document import Document
from jobs.spec import (
    CompletionPolicy,
    Mount,
    MountPurpose,
    Port,
    RegistryAuth,
    RetryPolicy,
    SecretRef,
    TensorBoard,
)

V2 = dialects.get("openpai-v2")


def role(**changes: Any) -> dict[str, Any]:
    complete = {
        "instances": 2,
        "dockerImage": "image",
        "resourcePerInstance": {"cpu": 1, "memoryMB": 1000, "gpu": 0},
        "commands": ["run"],
    }
    return {**complete, **changes}


def job(roles: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    return {
        "protocolVersion": 2,
        "name": "j",
        "type": "job",
        "prerequisites": [{"type": "dockerimage", "name": "image", "uri": "a/b:c"}],
        "taskRoles": roles if roles is not None else {"main": role()},
        **changes,
    }


def one(**changes: Any) -> dict[str, Any]:
    return job({"main": role(**changes)})


def resources(**changes: Any) -> dict[str, Any]:
    return one(resourcePerInstance={"cpu": 1, "memoryMB": 1000, "gpu": 0, **changes})


def without(value: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: each for name, each in value.items() if name != key}


def prerequisite(**item: Any) -> dict[str, Any]:
    return job(prerequisites=[*job()["prerequisites"], item])


def parse(value: Any) -> Parsed:
    return V2.parse(Document(json.dumps(value)))


def problems(value: Any) -> tuple[Problem, ...]:
    with pytest.raises(Refused) as caught:
        parse(value)
    return caught.value.problems


def noted(parsed: Parsed) -> list[tuple[str, str]]:
    return [(note.code, note.pointer) for note in parsed.notes]


def test_complete_file_needs_no_note() -> None:
    assert parse(job()).notes == ()


@pytest.mark.parametrize(
    ("value", "code", "pointer"),
    [
        ([], "wrong_type", ""),
        (without(job(), "protocolVersion"), "required", "/protocolVersion"),
        (job(protocolVersion=3), "not_a_choice", "/protocolVersion"),
        (job(protocolVersion=None), "wrong_type", "/protocolVersion"),
        (without(job(), "name"), "required", "/name"),
        (job(name="a.b"), "bad_name", "/name"),
        (job(name="a" * 256), "too_long", "/name"),
        (job(name=7), "wrong_type", "/name"),
        (without(job(), "type"), "required", "/type"),
        (job(type="jobs"), "not_a_choice", "/type"),
        (job(version=[]), "wrong_type", "/version"),
        (job(contributor=None), "wrong_type", "/contributor"),
        (job(description={}), "wrong_type", "/description"),
        (job(jobRetryCount=-1), "too_small", "/jobRetryCount"),
        (job(jobRetryCount=1.5), "not_whole", "/jobRetryCount"),
        (job(parameters=[]), "wrong_type", "/parameters"),
        (job(secrets=None), "wrong_type", "/secrets"),
        (job(extras=None), "wrong_type", "/extras"),
        (job(defaults=[]), "wrong_type", "/defaults"),
        (job(defaults={"virtualCluster": 1}), "wrong_type", "/defaults/virtualCluster"),
        (job(defaults={"deployment": "x"}), "no_deployment", "/defaults/deployment"),
        (job(deployments=[{"name": "a"}, {"name": "a"}]), "duplicate_deployment", "/deployments/1"),
        (prerequisite(type="data", uri=["x"]), "required", "/prerequisites/1/name"),
        (prerequisite(name="x", uri="x"), "required", "/prerequisites/1/type"),
        (prerequisite(name="x", type="video"), "not_a_choice", "/prerequisites/1/type"),
        (prerequisite(name="x", type="dockerimage"), "required", "/prerequisites/1/uri"),
        (prerequisite(name="x", type="script", uri=["a"]), "wrong_type", "/prerequisites/1/uri"),
        (prerequisite(name="x", type="data", uri=[1]), "wrong_type", "/prerequisites/1/uri/0"),
        (
            prerequisite(name="image", type="dockerimage", uri="x"),
            "duplicate_prerequisite",
            "/prerequisites/1",
        ),
        (job({}), "too_few", "/taskRoles"),
        (job([]), "wrong_type", "/taskRoles"),  # type: ignore[arg-type]
        (job({"a-b": role()}), "bad_member", "/taskRoles/a-b"),
        (job({"1a": role()}), "bad_member", "/taskRoles/1a"),
        (job({"main": 7}), "wrong_type", "/taskRoles/main"),
        (job({f"r{n}": role() for n in range(1001)}), "too_many", "/taskRoles"),
        (one(instances=0), "too_small", "/taskRoles/main/instances"),
        (one(instances=100_001), "too_great", "/taskRoles/main/instances"),
        (
            job({"a": role(instances=60_000), "b": role(instances=60_000)}),
            "too_many_replicas",
            "/taskRoles",
        ),
        (one(completion=None), "wrong_type", "/taskRoles/main/completion"),
        (one(completion={"minFailed": 1}), "forbidden_key", "/taskRoles/main/completion/minFailed"),
        (one(taskRetryCount="x"), "wrong_type", "/taskRoles/main/taskRetryCount"),
        (job({"main": without(role(), "dockerImage")}), "required", "/taskRoles/main/dockerImage"),
        (one(dockerImage="imago"), "no_prerequisite", "/taskRoles/main/dockerImage"),
        (one(data="image"), "no_prerequisite", "/taskRoles/main/data"),
        (
            job({"main": without(role(), "resourcePerInstance")}),
            "required",
            "/taskRoles/main/resourcePerInstance",
        ),
        (resources(cpu="many"), "wrong_type", "/taskRoles/main/resourcePerInstance/cpu"),
        (resources(gpu=0.5), "not_whole", "/taskRoles/main/resourcePerInstance/gpu"),
        (resources(ports=[1]), "wrong_type", "/taskRoles/main/resourcePerInstance/ports"),
        (resources(ports={"a-b": 1}), "bad_member", "/taskRoles/main/resourcePerInstance/ports/a-b"),
        (resources(ports={"a": "x"}), "wrong_type", "/taskRoles/main/resourcePerInstance/ports/a"),
        (
            one(extraContainerOptions={"shmMB": "x"}),
            "wrong_type",
            "/taskRoles/main/extraContainerOptions/shmMB",
        ),
        (job({"main": without(role(), "commands")}), "required", "/taskRoles/main/commands"),
        (one(commands=[]), "too_few", "/taskRoles/main/commands"),
        (one(commands=[""]), "empty", "/taskRoles/main/commands"),
        (one(commands=["a", 1]), "wrong_type", "/taskRoles/main/commands/1"),
    ],
)  # fmt: skip
def test_value_forbidden_by_openpai_is_refused(value: Any, code: str, pointer: str) -> None:
    (found,) = problems(value)
    assert (found.code, found.pointer) == (code, pointer)
    assert found.line == 1
    assert found.source


def test_problems_are_reported_at_once_in_text_order() -> None:
    text = """
protocolVersion: 2
taskRoles:
  main:
    instances: 0
    dockerImage: none
    resourcePerInstance: {cpu: 1, memoryMB: 1}
    commands:
      - <% $parameters.x %>
name: a b
"""
    with pytest.raises(Refused) as caught:
        V2.parse(Document(text))
    told = [(each.code, each.pointer, each.line, each.column) for each in caught.value.problems]
    assert told == [
        ("required", "/type", 2, 1),
        ("too_small", "/taskRoles/main/instances", 5, 16),
        ("no_prerequisite", "/taskRoles/main/dockerImage", 6, 18),
        ("required", "/taskRoles/main/resourcePerInstance/gpu", 7, 26),
        ("bad_name", "/name", 10, 7),
    ]


@pytest.mark.parametrize(
    ("value", "fix"),
    [
        (job(name="my job"), Fix("/name", "my_job")),
        (job(protocolVersion=1), Fix("/protocolVersion", 2)),
        (job(extras=None), Fix("/extras")),
        (one(dockerImage="imago"), Fix("/taskRoles/main/dockerImage", "image")),
        (
            one(completion={"minSucceededTaskCount": 1}),
            Fix("/taskRoles/main/completion/minSucceededTaskCount", key="minSucceededInstances"),
        ),
    ],
)
def test_fix_solves_its_problem(value: Any, fix: Fix) -> None:
    (found,) = problems(value)
    assert found.fix == fix
    assert parse(json.loads(V2.apply_fixes(Document(json.dumps(value)), [fix]))).spec.roles


def test_role_with_forbidden_name_is_renamed_by_its_fix() -> None:
    text = "protocolVersion: 2\nname: a\ntype: job\nprerequisites:\n- {type: dockerimage, name: i, uri: i}\n"
    text += "taskRoles:\n  g2p-train: # ours\n    dockerImage: i\n    commands: [run]\n"
    text += "    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}\n"
    with pytest.raises(Refused) as caught:
        V2.parse(Document(text))
    (found,) = caught.value.problems
    assert found.fix is not None
    assert [
        each.name for each in V2.parse(Document(V2.apply_fixes(Document(text), [found.fix]))).spec.roles
    ] == ["g2p_train"]


def test_missing_fields_get_openpai_defaults() -> None:
    (only,) = parse(job({"main": without(role(), "instances")})).spec.roles
    assert (only.replicas, only.resources.shm_mib) == (1, 512)
    assert only.completion == CompletionPolicy(min_failed=1, min_succeeded=None)


@pytest.mark.parametrize(
    ("said", "policy"),
    [
        ({"minFailedInstances": None, "minSucceededInstances": None}, (None, None)),
        ({"minFailedInstances": -1, "minSucceededInstances": -1}, (None, None)),
        ({"minFailedInstances": 2, "minSucceededInstances": 1}, (2, 1)),
        ({}, (1, None)),
    ],
)
def test_completion_counts_below_one_never_decide(
    said: dict[str, Any], policy: tuple[int | None, int | None]
) -> None:
    (only,) = parse(one(completion=said)).spec.roles
    assert (only.completion.min_failed, only.completion.min_succeeded) == policy


def test_mounts_are_those_requested_by_roles() -> None:
    value = job({"a": role(data="d", output="o", script="s"), "b": role(data="d")})
    value["prerequisites"] += [
        {"type": "data", "name": "d", "uri": ["hdfs://a", "hdfs://b"]},
        {"type": "output", "name": "o", "uri": "hdfs://o"},
        {"type": "script", "name": "s", "uri": "github.com/x"},
        {"type": "script", "name": "unused", "uri": "github.com/y"},
    ]
    assert parse(value).spec.mounts == (
        Mount(uri="hdfs://a"),
        Mount(uri="hdfs://b"),
        Mount(purpose=MountPurpose.OUTPUT, uri="hdfs://o"),
        Mount(purpose=MountPurpose.CODE, uri="github.com/x", read_only=True),
    )


def command(*commands: str, **changes: Any) -> str:
    return parse({**one(commands=list(commands)), **changes}).spec.roles[0].command


def test_commands_are_joined_into_one_script() -> None:
    assert command("a\n", " b ", "if c\nthen d; fi") == "a\nb\nif c\nthen d; fi"
    assert command(" alone\n") == " alone\n"


def test_templates_resolve_as_in_openpai() -> None:
    value = one(
        data="d",
        commands=[
            "<% $parameters.n %>/<%$parameters.f%>/<% $parameters.on %> <% $data.uri[1] %>/<% $data.name %>"
        ],
    )
    value["parameters"] = {"n": 32, "f": 1.0, "on": True}
    value["prerequisites"].append({"type": "data", "name": "d", "uri": ["a", "b"]})
    assert parse(value).spec.roles[0].command == "32/1/true b/d"
    assert command("<% other %> <% $x.y %>") == "<% other %> <% $x.y %>", "what is no template stays"


def test_chosen_deployment_wraps_the_commands() -> None:
    deployments = [
        {"name": "other", "taskRoles": {"main": {"preCommands": ["no"]}}},
        {"name": "prod", "taskRoles": {"main": {"preCommands": ["before"], "postCommands": ["after"]}}},
    ]
    assert command("run", deployments=deployments, defaults={"deployment": "prod"}) == "before\nrun\nafter"
    assert command("run", deployments=deployments) == "run"


def test_leading_exports_become_environment() -> None:
    value = job(
        {
            "a": role(commands=["export A=1", "export B='x y'", 'export C="<% $parameters.p %>"', "run"]),
            "b": role(commands=["export A=1", "run", "export D=1"]),
            "c": role(commands=["export A=1", "export P=$PATH:/x", "export A=2"]),
        },
        parameters={"p": "q"},
    )
    spec = parse(value).spec
    assert spec.env == {"A": "1"}
    assert [each.env for each in spec.roles] == [{"B": "x y", "C": "q"}, {}, {}]
    assert [each.command for each in spec.roles] == [
        "run",
        "run\nexport D=1",
        "export P=$PATH:/x\nexport A=2",
    ]


def test_secrets_leave_text_and_never_reach_a_command() -> None:
    text = """
protocolVersion: 2
name: a
type: job
prerequisites:
  - type: dockerimage
    name: i
    uri: i
    auth:
      username: user
      password: <% $secrets.docker %>
      registryuri: r.io
  - {type: data, name: d, uri: ["https://u:p4ss@h/x"]}
parameters:
  VNC_PASSWD: pa'ss
secrets:
  docker: "p: 1"
  token: 12345
taskRoles:
  main:
    dockerImage: i
    data: d
    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}
    commands:
      - export HF=<% $secrets.token %>
      - curl https://x:<% $secrets.token %>@h "<% $secrets.token %>" '<% $secrets.token %>'
      - vnc <% $parameters.VNC_PASSWD %>
"""
    parsed = V2.parse(Document(text))
    assert sorted(parsed.secrets.values()) == ["12345", "p4ss", "p: 1", "pa'ss"]
    spec = parsed.spec
    (only,) = spec.roles
    assert only.command == (
        'curl https://x:"${SECRET_token}"@h "${SECRET_token}" \'\'"${SECRET_token}"\'\'\n'
        'vnc "${SECRET_VNC_PASSWD}"'
    )
    assert {name: ref.name for name, ref in spec.secret_env.items()} == {
        "HF": "token",
        "SECRET_token": "token",
        "SECRET_VNC_PASSWD": "VNC_PASSWD",
    }
    assert spec.registry_auth == RegistryAuth(
        registry="r.io", username="user", password=SecretRef(name="docker")
    )
    for value in ("p: 1", "12345", "pa'ss", "p4ss"):
        assert value not in parsed.text
        assert value not in spec.model_dump_json()
        assert value not in json.dumps(parsed.extras)
    again = V2.parse(Document(parsed.text))
    assert (again.spec, again.secrets) == (spec, {})
    filled = V2.parse(Document(V2.with_secrets(Document(parsed.text), parsed.secrets)))
    assert (filled.spec, filled.secrets) == (spec, parsed.secrets)


def test_secret_missing_in_file_refers_to_user_secret() -> None:
    value = one(commands=["run <% $secrets.mine %>"])
    parsed = parse(value)
    assert parsed.spec.secret_env == {"SECRET_mine": SecretRef(name="mine")}
    assert noted(parsed) == [("secret_wanted", "/taskRoles/main/commands/0")]


def test_extras_known_to_others_are_understood() -> None:
    extras = {
        "hivedScheduler": {
            "jobPriorityClass": "prod",
            "taskRoles": {"main": {"skuType": "K80", "skuNum": 1}, "gone": {"gpuType": "M60"}},
        },
        "com.microsoft.pai.runtimeplugin": [
            {"plugin": "tensorboard", "parameters": {"port": 1, "logdir": {"a": "/logs"}}},
            {"plugin": "teamwise_storage", "parameters": {"storageConfigNames": ["nfs"]}},
            {"plugin": "ssh", "parameters": {"jobssh": True}},
        ],
        "storages": [{"name": "blob", "mountPath": "/blob"}],
        "jobConsole": {
            "retryCount": -2,
            "keepFailedSeconds": 60,
            "authFile": "hdfs://auth",
            "taskRoles": {"main": {"beginAt": {"http": 3000}, "diskMB": 2048}},
        },
        "gangAllocation": False,
    }
    parsed = parse({**resources(ports={"http": 2}), "extras": extras})
    spec, (only,) = parsed.spec, parsed.spec.roles
    assert (spec.priority, spec.tensorboard) == (7, TensorBoard(log_path="/logs"))
    assert spec.mounts == (Mount(id="blob", path="/blob"), Mount(id="nfs"))
    assert spec.retry == RetryPolicy(limit=None, on_success=True, fancy=False)
    assert (spec.keep_failed_s, spec.registry_auth) == (60, RegistryAuth(file_uri="hdfs://auth"))
    assert (only.resources.gpu_type, only.resources.disk_mib) == ("K80", 2048)
    assert only.ports == (Port(label="http", begin_at=3000, count=2),)
    assert noted(parsed) == [
        ("kept_unused", "/extras/com.microsoft.pai.runtimeplugin/2"),
        ("kept_unused", "/extras/gangAllocation"),
        ("kept_unused", "/extras/hivedScheduler/taskRoles/main/skuNum"),
    ]


@pytest.mark.parametrize(
    "extras",
    [
        {"hivedScheduler": 1, "storages": {}, "com.microsoft.pai.runtimeplugin": "x"},
        {"hivedScheduler": {"taskRoles": {"main": None}, "jobPriorityClass": 5}},
        {"com.microsoft.pai.runtimeplugin": [1, {"plugin": 2}, {"plugin": "tensorboard", "parameters": []}]},
        {"jobConsole": {"retryCount": "x", "taskRoles": {"main": {"beginAt": [], "diskMB": -1}}}},
    ],
)
def test_extras_may_hold_anything(extras: dict[str, Any]) -> None:
    parsed = parse(job(extras=extras))
    assert V2.render(parsed.spec, parsed.extras, base=Document(json.dumps(job(extras=extras)))).notes == ()


def test_scm_form_reads_environment_from_parameters() -> None:
    value = one(
        shmMB=128,
        resourcePerInstance={"cpu": 1, "memoryMB": 1, "gpu": 0, "storageGB": 5, "ports": {"vnc": 0}},
    )
    value["parameters"] = {"VNC_PASSWD": "s", "PATH_TO": 5, "a-b": 1, "paiAzRDMA": "true", "isDebug": True}
    parsed = parse(value)
    spec, (only,) = parsed.spec, parsed.spec.roles
    assert (only.resources.shm_mib, only.resources.disk_mib, only.resources.rdma) == (128, 5120, True)
    assert only.ports == (Port(label="vnc"),)
    assert (spec.env, spec.secret_env) == ({"PATH_TO": "5"}, {"VNC_PASSWD": SecretRef(name="VNC_PASSWD")})
    assert spec.keep_failed_s == 604800
    assert "scm_only" in {note.code for note in parsed.notes}
    openpai = one()
    openpai["parameters"] = {"A": "1"}
    assert parse(openpai).spec.env == {}, "OpenPAI sets no variables"


def test_unknown_keys_are_stored_and_reported() -> None:
    value = job({"main": role(instance=3)}, contributors="me")
    parsed = parse(value)
    told = {note.pointer: note.params["meant"] for note in parsed.notes if note.code == "unknown_key"}
    assert told == {"/contributors": "contributor", "/taskRoles/main/instance": None}
    assert {"/contributors", "/taskRoles/main/instance"} <= parsed.extras.keys()


def test_yaml_words_mean_the_same_as_in_openpai() -> None:
    text = "protocolVersion: '2'\nname: yes\ntype: job\nversion: 1.0\nprerequisites:\n"
    text += "- {type: dockerimage, name: on, uri: i}\ntaskRoles:\n  main:\n    dockerImage: on\n"
    text += "    resourcePerInstance: {cpu: 0x2, memoryMB: 1_000, gpu: 0}\n    commands: [no]\n"
    parsed = V2.parse(Document(text))
    (only,) = parsed.spec.roles
    assert (parsed.spec.name, only.command) == ("yes", "no")
    assert (only.resources.cpu_milli, only.resources.memory_mib) == (2000, 1000)
    assert parsed.extras["/version"] == 1.0


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("protocolVersion: 2\ntaskRoles: {a: {}}", "protocol_version"),
        ('{"protocolVersion": "2", "taskRoles": {}}', "protocol_version"),
        ("# mine\nprotocolVersion: 2", "protocol_version"),
        ("taskRoles: {a: {}}", "roles_named"),
        ("protocolVersion: 2\ntaskRoles:\n  a: b: c", "keys_seen"),
        ('{"protocolVersion": 2, "taskRoles": {', "keys_seen"),
    ],
)
def test_v2_file_is_recognised_with_reason(text: str, why: str) -> None:
    assert Document(text).dialect == "openpai-v2"
    assert Document(text).candidates[0].why == why


@pytest.mark.parametrize("text", ["", "a: 1", "taskRoles: []", "#!/bin/sh\n#SBATCH -n 1\nsrun x", "- 1"])
def test_other_texts_are_not_recognised_as_v2(text: str) -> None:
    assert V2.sniff(Document(text)) is None


def test_locate_accepts_role_number_or_name() -> None:
    text = "taskRoles:\n  a: {}\n  b:\n    commands: []\n"
    assert (
        V2.locate(Document(text), "/taskRoles/1/commands")
        == V2.locate(Document(text), "/taskRoles/b/commands")
        == (4, 15)
    )
    assert V2.locate(Document("a: ["), "/a") is None


ROLE = "    dockerImage: i\n    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}\n"
HEAD = "protocolVersion: 2\nname: a\ntype: job\nprerequisites:\n- {type: dockerimage, name: i, uri: i}\n"
HOSTILE = {
    "unresolved templates": HEAD
    + "parameters: {"
    + ", ".join(f"parameter_{n}: 1" for n in range(3000))
    + "}\ntaskRoles:\n  a:\n"
    + ROLE
    + "    instances: 0\n"
    + "    commands:\n"
    + "    - <% $parameters.paramether_7 %>\n" * 10_000,
    "a MiB of templates": HEAD
    + "taskRoles:\n  a:\n"
    + ROLE
    + "    instances: 0\n"
    + "    commands:\n    - "
    + "<% $data.x %>" * 70_000,
    "templates that never end": HEAD
    + "taskRoles:\n  a:\n"
    + ROLE
    + "    instances: 0\n"
    + "    commands:\n    - "
    + "<% $a" * 150_000
    + "<% $data.x %>",
    "prerequisites that are not there": HEAD
    + "taskRoles:\n"
    + "".join(f"  r{n}:\n{ROLE.replace(' i', f' j{n}', 1)}    commands: [a]\n" for n in range(1000)),
    "quotes and exports": HEAD
    + "taskRoles:\n  a:\n"
    + ROLE
    + "    instances: 0\n    commands:\n    - export A="
    + "'a'\"b\"" * 100_000
    + "$",
    "too many secrets": HEAD + "secrets: {" + ", ".join(f"s{n}: x" for n in range(5000)) + "}\n",
    "unknown keys": HEAD + "taskRoles: {}\n" + "".join(f"unknown_{n}: 1\n" for n in range(20_000)),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_files_are_refused_soon(text: str) -> None:
    taken = []
    for _attempt in range(3):
        begun = time.process_time()
        with pytest.raises(Refused):
            V2.parse(Document(text))
        taken.append(time.process_time() - begun)
    assert min(taken) < 5


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        ("wget <% $data.uri[0] %> -P data", None),
        ("run <% $parameters.x %>", None),
        ("run <% $parameters.epoch %>", "$parameters.epochs"),
    ],
)
def test_unresolved_template_stays_and_is_reported(command: str, meant: str | None) -> None:
    value = {**one(commands=[command]), "parameters": {"epochs": 1}}
    parsed = parse(value)
    assert parsed.spec.roles[0].command == command
    (note,) = parsed.notes
    assert (note.code, note.pointer) == ("template_unresolved", "/taskRoles/main/commands/0")
    assert note.params["meant"] == meant
    assert (note.fix is None) == (meant is None)
    if note.fix:
        fixed = V2.apply_fixes(Document(json.dumps(value)), [note.fix])
        assert V2.parse(Document(fixed)).spec.roles[0].command == "run 1"

"""JobSpec → OpenPAI v2, in the syntax of the text that is changed, with everything else kept."""

import cProfile
import json
from typing import Any

import pytest
import yaml

from jobs import dialects
from jobs.dialects.base import Note
from jobs.dialects.document import Document
from jobs.spec import (
    Bid,
    CodeSource,
    CompletionPolicy,
    JobSpec,
    Mount,
    Resources,
    RestartPolicy,
    RoleSpec,
    SecretRef,
    TensorBoard,
)

V1, V2 = dialects.get("openpai-v1"), dialects.get("openpai-v2")

BASE = """\
# ours
protocolVersion: 2
name: 'train' # a comment
type: job
prerequisites:
  - name: image   # what we run
    type: dockerimage
    uri: a/b:1
  - {name: cifar, type: data, uri: [hdfs://cifar]}
parameters:
  lr: 0.10 # learning rate
  unused: 1
taskRoles:
  worker:
    instances: 2
    completion: {minFailedInstances: 1}
    dockerImage: image
    data: cifar
    # how much
    resourcePerInstance:
      cpu: 4
      memoryMB: 8192
      gpu: 1
      ports: {http: 1}
    commands:
      # get it
      - wget <% $data.uri[0] %>
      - >-
        python train.py
        --lr <% $parameters.lr %>
  ps:
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 1024, gpu: 0}
    commands: [python ps.py]
    mine: kept

extras:
  hivedScheduler: {taskRoles: {worker: {skuType: K80, skuNum: 1}}}
  submitFrom: here
"""


def changed(base: str = BASE, **changes: Any) -> tuple[str, tuple[Note, ...]]:
    parsed = V2.parse(Document(base))
    rendered = V2.render(parsed.spec.model_copy(update=changes), parsed.extras, base=Document(base))
    return rendered.text, rendered.notes


def roles(**changes: Any) -> tuple[RoleSpec, ...]:
    first, *rest = V2.parse(Document(BASE)).spec.roles
    return (first.model_copy(update=changes), *rest)


def both(**changes: Any) -> tuple[RoleSpec, ...]:
    return tuple(role.model_copy(update=changes) for role in V2.parse(Document(BASE)).spec.roles)


def resources(**changes: Any) -> Resources:
    return V2.parse(Document(BASE)).spec.roles[0].resources.model_copy(update=changes)


COMMAND = "wget hdfs://cifar\npython train.py --lr 0.1"


@pytest.mark.parametrize(
    ("changes", "old", "new"),
    [
        ({"name": "other"}, "'train'", "'other'"),
        ({"description": "x"}, "  submitFrom: here\n", "  submitFrom: here\ndescription: x\n"),
        ({"quota": "vc"}, "  submitFrom: here\n", "  submitFrom: here\ndefaults:\n  virtualCluster: vc\n"),
        ({"roles": roles(replicas=3)}, "instances: 2", "instances: 3"),
        ({"roles": roles(resources=resources(gpus=2))}, "gpu: 1", "gpu: 2"),
        ({"roles": roles(resources=resources(gpu_type="P100"))}, "skuType: K80", "skuType: P100"),
        (
            {"roles": roles(completion=CompletionPolicy(min_failed=1, min_succeeded=2))},
            "{minFailedInstances: 1}",
            "{minFailedInstances: 1, minSucceededInstances: 2}",
        ),
        (
            {"roles": roles(restart=RestartPolicy(limit=2))},
            ".lr %>\n",
            ".lr %>\n    taskRetryCount: 2\n",
        ),
        ({"roles": both(image="c/d:2")}, "uri: a/b:1", "uri: c/d:2"),
        (
            {"roles": roles(command=COMMAND + " --epochs 5")},
            "      - >-\n        python train.py\n        --lr <% $parameters.lr %>\n",
            "      - python train.py --lr 0.1 --epochs 5\n",
        ),
        ({"roles": roles(command=COMMAND + "\nls")}, ".lr %>\n", ".lr %>\n      - ls\n"),
        ({"roles": roles(name="chief")}, "worker", "chief"),
    ],
)
def test_v2_render_changes_only_the_changed_place(changes: dict[str, Any], old: str, new: str) -> None:
    assert old in BASE
    assert changed(**changes) == (BASE.replace(old, new), ())


def test_v2_render_gives_role_its_own_image() -> None:
    text, told = changed(roles=roles(image="c/d:2"))
    assert told == ()
    assert [role.image for role in V2.parse(Document(text)).spec.roles] == ["c/d:2", "a/b:1"]
    assert "# what we run" in text


def test_v2_render_exports_variables_before_commands() -> None:
    text, told = changed(env={"A": "it's", "B": ""}, secret_env={"KEY": SecretRef(name="mine")})
    assert told == ()
    assert "      - export A='it'\"'\"'s'\n      - export B=''\n" in text
    assert "secrets:\n  mine: $SECRET:mine\n" in text
    for line in ("# get it", "- wget <% $data.uri[0] %>", "--lr <% $parameters.lr %>"):
        assert line in text, "what runs stays as it was written"
    spec = V2.parse(Document(text)).spec
    assert (spec.env, spec.secret_env) == ({"A": "it's", "B": ""}, {"KEY": SecretRef(name="mine")})


def test_v2_render_adds_and_removes_roles() -> None:
    first, second = V2.parse(Document(BASE)).spec.roles
    text, told = changed(roles=(first,))
    assert (told, "mine: kept" in text, "# how much" in text) == ((), False, True)
    third = second.model_copy(update={"name": "third"})
    text, told = changed(roles=(first, second, third))
    assert told == ()
    assert [role.name for role in V2.parse(Document(text)).spec.roles] == ["worker", "ps", "third"]
    assert "mine: kept" in text


def test_v2_render_rewrites_reordered_roles_with_unknown_keys() -> None:
    first, second = V2.parse(Document(BASE)).spec.roles
    text, told = changed(roles=(second, first))
    assert [note.code for note in told] == ["written_anew"]
    parsed = V2.parse(Document(text))
    assert [role.name for role in parsed.spec.roles] == ["ps", "worker"]
    assert parsed.extras["/taskRoles/ps/mine"] == "kept"


def test_v2_render_of_scm_json_stays_json_in_scm_form() -> None:
    base = json.dumps(
        {
            "protocolVersion": 2,
            "name": "a",
            "type": "job",
            "prerequisites": [{"type": "dockerimage", "uri": "i", "name": "n"}],
            "parameters": {"A": "1"},
            "taskRoles": {
                "admin": {
                    "shmMB": 64,
                    "dockerImage": "n",
                    "resourcePerInstance": {"cpu": 1, "gpu": 0, "memoryMB": 1, "storageGB": 5},
                    "commands": ["run"],
                }
            },
        },
        indent=2,
    )
    spec = V2.parse(Document(base)).spec
    has = spec.roles[0].resources.model_copy(update={"shm_mib": 128, "disk_mib": 10240})
    role = spec.roles[0].model_copy(update={"resources": has})
    text, told = changed(base, env={"A": "2", "B": "3"}, roles=(role,))
    assert told == ()
    expected = json.loads(base)
    expected["parameters"] = {"A": "2", "B": "3"}
    expected["taskRoles"]["admin"]["shmMB"] = 128
    expected["taskRoles"]["admin"]["resourcePerInstance"]["storageGB"] = 10
    assert json.loads(text) == expected


def test_v2_render_preserves_v1_fields_upstream_converter_loses() -> None:
    v1 = {
        "jobName": "j",
        "image": "i",
        "authFile": "hdfs://auth",
        "retryCount": -2,
        "gpuType": "P100",
        "jobEnvs": {"A": "b c", "MY_TOKEN": "hidden", "isDebug": True},
        "taskRoles": [
            {
                "name": "main",
                "gpuNumber": 2,
                "storageGB": 5,
                "command": "first\nsecond",
                "minFailedTaskCount": None,
                "portList": [{"label": "ssh", "beginAt": 3000, "portNumber": 1}],
            }
        ],
    }
    parsed = V1.parse(Document(json.dumps(v1)))
    rendered = V2.render(parsed.spec, {})
    assert rendered.notes == ()
    assert V2.parse(Document(rendered.text)).spec == parsed.spec
    text = rendered.text
    for line in (
        "      minFailedInstances: null\n",
        "      minSucceededInstances: null\n",
        "        skuType: P100\n",
        "          - label: ssh\n            begin_at: 3000\n",
        "      - |-\n        first\n        second\n",
        "  MY_TOKEN: $SECRET:MY_TOKEN\n",
    ):
        assert line in text
    assert "hidden" not in text
    assert "ports: {}" not in text, "OpenPAI wants at least one port"


def test_v2_render_adapts_names_forbidden_in_v2() -> None:
    tasks = tuple(RoleSpec(name=name, command="x", image="i") for name in ("a.b", "a~b", "1"))
    rendered = V2.render(JobSpec(name="a.b", roles=tasks), {})
    job = yaml.safe_load(rendered.text)
    assert (job["name"], [*job["taskRoles"]]) == ("a_b", ["a_b", "a_b_2", "task_1"])
    spec = V2.parse(Document(rendered.text)).spec
    assert (spec.name, [role.name for role in spec.roles]) == ("a.b", ["a.b", "a~b", "1"])
    assert rendered.notes == ()


@pytest.mark.parametrize(
    ("changes", "ours"),
    [
        ({"time_limit_s": 60}, {"time_limit_s": 60}),
        ({"code": CodeSource(uri="github.com/x")}, {"code": {"uri": "github.com/x"}}),
        (
            {"mounts": (Mount(uri="nfs://a", path="/a"),)},
            {"mounts": [{"uri": "nfs://a", "path": "/a"}]},
        ),
        ({"tags": {"a": "b"}}, {"tags": {"a": "b"}}),
        ({"priority": 8}, {"priority": 8}),
        ({"workspace": "w"}, {"workspace": "w"}),
    ],
)
def test_v2_render_stores_inexpressible_fields_in_own_object(
    changes: dict[str, Any], ours: dict[str, Any]
) -> None:
    task = RoleSpec(name="a", command="x", image="i")
    rendered = V2.render(JobSpec(name="a", roles=(task,), **changes), {})
    assert rendered.notes == ()
    assert yaml.safe_load(rendered.text)["extras"]["jobConsole"] == ours


def test_v2_render_preserves_bid_and_fraction_of_core() -> None:
    task = RoleSpec(
        name="a", command="x", image="i", bid=Bid(discount_percent=50), resources=Resources(cpu_milli=1500)
    )
    rendered = V2.render(JobSpec(name="a", roles=(task,)), {})
    assert rendered.notes == ()
    assert V2.parse(Document(rendered.text)).spec.roles == (task,)


def test_v2_render_without_image_is_reported() -> None:
    rendered = V2.render(JobSpec(name="a", roles=(RoleSpec(name="a", command="x"),)), {})
    assert [note.code for note in rendered.notes] == ["no_image"]
    assert V2.parse(Document(rendered.text)).spec.roles[0].image == ""


def test_v2_render_adds_and_removes_tensorboard() -> None:
    text, told = changed(tensorboard=TensorBoard(log_path="/logs"))
    assert told == ()
    assert V2.parse(Document(text)).spec.tensorboard == TensorBoard(log_path="/logs")
    without, told = changed(text, tensorboard=None)
    assert told == ()
    assert V2.parse(Document(without)).spec == V2.parse(Document(BASE)).spec


def test_v2_render_rewrites_unreadable_base() -> None:
    task = RoleSpec(name="a", command="x", image="i")
    rendered = V2.render(JobSpec(name="a", roles=(task,)), {}, base=Document("a: ["))
    assert [note.code for note in rendered.notes] == ["written_anew"]
    assert V2.parse(Document(rendered.text)).spec.name == "a"


def test_v2_work_grows_linearly_with_number_of_roles() -> None:
    head, _, rest = BASE.partition("  worker:\n")
    role, _, _ = rest.partition("  ps:\n")

    def calls(roles: int) -> int:
        """How many functions are called to read and write so many roles."""
        text = head + "".join(f"  r{number}:\n{role}" for number in range(roles))
        profile = cProfile.Profile()
        profile.enable()
        parsed = V2.parse(Document(text))
        V2.render(parsed.spec, parsed.extras)
        profile.disable()
        assert len(parsed.spec.roles) == roles
        return sum(entry.callcount for entry in profile.getstats())

    calls(1)  # what is made once is made
    assert calls(400) < 2.2 * calls(200)

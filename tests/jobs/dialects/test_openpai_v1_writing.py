"""JobSpec → OpenPAI v1: what is lost is named, what was there stays."""

import json
from typing import Any

import pytest

from jobs import dialects
from jobs.dialects.base import Note
from jobs.dialects.document import Document
from jobs.dialects.openpai_v1 import keys
from jobs.spec import (
    CompletionPolicy,
    Framework,
    JobSpec,
    Mount,
    MountPurpose,
    Port,
    RegistryAuth,
    Resources,
    RetryPolicy,
    RoleSpec,
    SecretRef,
)

V1 = dialects.get("openpai-v1")
OUTPUT = Mount(purpose=MountPurpose.OUTPUT, uri=keys.DEFAULT_OUTPUT)


def spec(**changes: Any) -> JobSpec:
    role = changes.pop("role", {})
    made = RoleSpec(**{"name": "main", "command": "run", "image": "i", **role})
    return JobSpec(**{"name": "j", "roles": (made,), "mounts": (OUTPUT,), **changes})


def notes(wanted: JobSpec) -> list[tuple[str, str]]:
    return [(note.code, note.pointer) for note in V1.render(wanted, {}).notes]


def test_v1_render_of_expressible_spec_loses_nothing() -> None:
    assert notes(spec()) == []


@pytest.mark.parametrize(
    ("wanted", "ours"),
    [
        (spec(description="d"), {"description": "d"}),
        (spec(tags={"a": "b"}), {"tags": {"a": "b"}}),
        (spec(framework=Framework.PYTORCH), {"framework": "pytorch"}),
        (spec(time_limit_s=60), {"time_limit_s": 60}),
        (spec(hold=True), {"hold": True}),
        (spec(role={"env": {"A": "b"}}), {"env": {"A": None}, "roles": {"main": {"env": {"A": "b"}}}}),
        (
            spec(role={"resources": Resources(cpu_milli=1500)}),
            {"roles": {"main": {"resources": {"cpu_milli": 1500}}}},
        ),
        (
            spec(role={"completion": CompletionPolicy(min_failed=3)}),
            {"roles": {"main": {"completion": {"min_failed": 3}}}},
        ),
        (spec(name="my job"), {"name": "my job"}),
        (spec(role={"name": "a-b"}), {"roles": {"a_b": {"name": "a-b"}}}),
        (
            spec(role={"ports": (Port(label="a-b"),)}),
            {"roles": {"main": {"ports": [{"label": "a-b"}]}}},
        ),
        (spec(retry=RetryPolicy(limit=2, on_success=True)), {"retry": {"on_success": True}}),
        (spec(keep_failed_s=60), {"keep_failed_s": 60}),
        (spec(mounts=()), {"mounts": [None]}),
        (
            spec(registry_auth=RegistryAuth(username="u", password=SecretRef(name="p"))),
            {"registry_auth": {"username": "u", "password": "$SECRET:p"}},
        ),
    ],
)
def test_v1_render_stores_inexpressible_fields_in_own_object(
    wanted: JobSpec, ours: dict[str, object]
) -> None:
    assert notes(wanted) == []
    assert json.loads(V1.render(wanted, {}).text)["extras"] == {"jobConsole": ours}


def test_v1_render_without_image_is_reported() -> None:
    assert notes(spec(role={"image": ""})) == [("no_image", "/image")]


def test_v1_render_stores_differing_images_and_gpu_types_in_own_object() -> None:
    one = RoleSpec(name="a", command="x", image="i", resources=Resources(gpus=1, gpu_type="P100"))
    two = RoleSpec(name="b", command="x", image="k", resources=Resources(gpus=1, gpu_type="TITANX"))
    rendered = V1.render(spec(roles=(one, two)), {})
    value = json.loads(rendered.text)
    assert (value["image"], value["gpuType"]) == ("i", "P100")
    assert value["extras"]["jobConsole"] == {
        "roles": {"b": {"image": "k", "resources": {"gpu_type": "TITANX"}}}
    }
    assert rendered.notes == ()


def test_v1_render_keeps_colliding_role_names_distinct() -> None:
    roles = tuple(RoleSpec(name=name, command="x", image="i") for name in ("a-b", "a+b", "a_b"))
    written = json.loads(V1.render(spec(roles=roles), {}).text)["taskRoles"]
    assert len({role["name"] for role in written}) == 3


def test_v1_render_writes_secrets_as_placeholders() -> None:
    text = V1.render(spec(secret_env={"KEY": SecretRef(name="mine")}), {}).text
    assert json.loads(text)["jobEnvs"] == {"KEY": "$SECRET:mine"}


BASE = """{
  // ours
  "jobName": "j", "image": "i",
  "gpuType": "P100", // the old ones
  "taskRoles": [
    {"command": "run", "name": "main", "memoryMB": "2048", "x": [1]},
    {"name": "side", "command": "help"}
  ],
  "jobEnvs": {"A": 1, "B": "b"},
  "tmp": {"a": 1},
}
"""


def changed(**changes: Any) -> tuple[str, tuple[Note, ...]]:
    parsed = V1.parse(Document(BASE))
    rendered = V1.render(parsed.spec.model_copy(update=changes), parsed.extras, base=Document(BASE))
    return rendered.text, rendered.notes


def roles(**changes: Any) -> tuple[RoleSpec, ...]:
    first, *rest = V1.parse(Document(BASE)).spec.roles
    return (first.model_copy(update=changes), *rest)


def test_v1_render_changes_only_the_changed_place() -> None:
    assert changed(name="k") == (BASE.replace('"j"', '"k"'), ())
    assert changed(roles=roles(command="go")) == (BASE.replace('"run"', '"go"'), ())
    assert changed(roles=roles(replicas=2)) == (BASE.replace('"x": [1]}', '"x": [1], "taskNumber": 2}'), ())
    assert changed(env={"A": "1", "B": "c"}) == (BASE.replace('"b"', '"c"'), ())
    assert changed(env={"B": "b"}) == (BASE.replace('"A": 1, ', ""), ())
    assert changed(quota="q")[0] == BASE.replace('"a": 1},', '"a": 1},\n  "virtualCluster": "q",')


def test_v1_render_of_renamed_role_keeps_place_comments_and_keys() -> None:
    assert changed(roles=roles(name="chief")) == (BASE.replace('"name": "main"', '"name": "chief"'), ())


def test_v1_render_changes_the_effective_one_of_two_equal_roles() -> None:
    base = BASE.replace('"side"', '"main"')
    parsed = V1.parse(Document(base))
    (only,) = parsed.spec.roles
    wanted = parsed.spec.model_copy(update={"roles": (only.model_copy(update={"command": "go"}),)})
    assert V1.render(wanted, {}, base=Document(base)).text == base.replace('"help"', '"go"')


def test_v1_render_adds_and_removes_roles() -> None:
    first, second = V1.parse(Document(BASE)).spec.roles
    assert changed(roles=(first,))[0] == BASE.replace("]},\n", "]}\n").replace(
        '    {"name": "side", "command": "help"}\n', ""
    )
    third = second.model_copy(update={"name": "third"})
    text, told = changed(roles=(first, second, third))
    assert told == ()
    assert text.startswith(BASE[: BASE.index('"help"}')])
    assert [role.name for role in V1.parse(Document(text)).spec.roles] == ["main", "side", "third"]


def test_v1_render_rewrites_unpatchable_file_with_unknown_keys() -> None:
    first, second = V1.parse(Document(BASE)).spec.roles
    text, told = changed(roles=(second, first))
    assert [note.code for note in told] == ["written_anew"]
    parsed = V1.parse(Document(text))
    assert [role.name for role in parsed.spec.roles] == ["side", "main"]
    assert parsed.extras == V1.parse(Document(BASE)).extras


def test_v1_render_rewrites_unreadable_base() -> None:
    rendered = V1.render(spec(), {}, base=Document("{"))
    assert [note.code for note in rendered.notes] == ["written_anew"]
    assert V1.parse(Document(rendered.text)).spec == spec()

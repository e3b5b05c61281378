"""Our own object inside of other systems' files: what it says counts, and nothing a job says is lost."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.documentation.reference.spec_paths import list_paths
from jobs import dialects
from jobs.dialects.base import Fix, Refused
from jobs.dialects.document import Document
from jobs.dialects.losses import losses
from jobs.dialects.ours.keys import HELPS
from jobs.dialects.placeholders import looks_secret
from jobs.spec import After, JobSpec, Software, When
from tests.jobs.dialects.aihc_strategies import aihc_specs
from tests.jobs.dialects.dlc_strategies import dlc_specs
from tests.jobs.dialects.kubeflow_strategies import kubeflow_specs
from tests.jobs.dialects.sbatch_strategies import sbatch_specs
from tests.jobs.dialects.strategies import v1_specs

AT = {"dlc": "/JobConsole", "openpai-v1": "/extras/jobConsole", "openpai-v2": "/extras/jobConsole"}
any_spec = st.one_of(v1_specs(), dlc_specs(), aihc_specs(), sbatch_specs(), kubeflow_specs())


def written(name: str, ours: Any) -> str:
    if name == "dlc":
        value: dict[str, Any] = {
            "DisplayName": "a",
            "JobType": "PyTorchJob",
            "JobSpecs": [{"Type": "Worker", "Image": "i", "PodCount": 2}],
            "UserCommand": "true",
            "JobConsole": ours,
        }
    elif name == "openpai-v1":
        role = {"name": "Worker", "taskNumber": 2, "command": "true"}
        value = {"jobName": "a", "image": "i", "taskRoles": [role], "extras": {"jobConsole": ours}}
    else:
        given = {"cpu": 1, "gpu": 0, "memoryMB": 1024}
        role = {"instances": 2, "dockerImage": "i", "resourcePerInstance": given, "commands": ["true"]}
        value = {
            "protocolVersion": 2,
            "name": "a",
            "type": "job",
            "prerequisites": [{"type": "dockerimage", "name": "i", "uri": "i"}],
            "taskRoles": {"Worker": role},
            "extras": {"jobConsole": ours},
        }
    return json.dumps(value, indent=1)


def problems(name: str, ours: Any) -> list[tuple[str, str, Fix | None]]:
    with pytest.raises(Refused) as caught:
        dialects.get(name).parse(Document(written(name, ours)))
    return [(each.code, each.pointer.removeprefix(AT[name]), each.fix) for each in caught.value.problems]


def test_job_fields_all_have_help_text() -> None:
    assert [path for path, _default in list_paths() if path not in HELPS] == ["secret_env"]


@pytest.mark.parametrize("name", AT)
@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
    deadline=None,
)
@given(spec=any_spec)
def test_own_object_loses_no_field_of_a_job(name: str, spec: JobSpec) -> None:
    dialect = dialects.get(name)
    rendered = dialect.render(spec, {})
    try:
        parsed = dialect.parse(Document(rendered.text))
    except Refused:  # OpenPAI runs nothing without an image
        assert not all(role.image for role in spec.roles)
        return
    variables = [*spec.env, *(variable for role in spec.roles for variable in role.env)]
    if not any(map(looks_secret, variables)):
        assert losses(spec, parsed.spec, name) == ()
    again = dialect.parse(Document(dialect.render(parsed.spec, parsed.extras).text))
    assert (again.spec, again.extras) == (parsed.spec, parsed.extras)


@pytest.mark.parametrize("name", AT)
def test_own_object_overrides_the_rest_of_the_file(name: str) -> None:
    ours = {
        "name": "b c",
        "hold": True,
        "roles": {"Worker": {"name": "trainer", "replicas": 3}},
        "after": [{"job": "k3v9x0q2m7ab"}, {"job": "ada~x", "when": "failed"}],
        "software": {"modules": ["gcc/13"], "venv": "/venv"},
    }
    spec = dialects.get(name).parse(Document(written(name, ours))).spec
    assert (spec.name, spec.hold, spec.roles[0].name, spec.roles[0].replicas) == ("b c", True, "trainer", 3)
    assert spec.after == (After(job="k3v9x0q2m7ab"), After(job="ada~x", when=When.FAILED))
    assert spec.software == Software(modules=("gcc/13",), venv="/venv")


@pytest.mark.parametrize("name", AT)
def test_own_object_change_stays_in_place_and_keeps_unknown_keys(name: str) -> None:
    ours = {"priority": 5, "retry": {"limit": 1, "mine": 2}, "own": [1], "roles": {"Worker": {"x": 1}}}
    dialect, text = dialects.get(name), written(name, ours)
    parsed = dialect.parse(Document(text))
    told = {note.pointer.removeprefix(AT[name]) for note in parsed.notes if note.code == "unknown_key"}
    assert told >= {"/retry/mine", "/own", "/roles/Worker/x"}
    for base in (Document(text), None):
        assert dialect.render(parsed.spec, parsed.extras, base=base).notes == ()
        changed = parsed.spec.model_copy(update={"priority": 8})
        made = dialect.render(changed, parsed.extras, base=base)
        assert [note.code for note in made.notes] == []
        assert dialect.parse(Document(made.text)).spec == changed
        for stranger in ("mine", "own", "x"):
            assert stranger in made.text


def test_own_object_entry_for_missing_role_skips_new_role() -> None:
    job = {
        "DisplayName": "a",
        "JobType": "TFJob",
        "JobSpecs": [{"Type": "PS"}],
        "UserCommand": "c",
        "JobConsole": {"roles": {"Worker": {"name": "other", "mine": 1}}},
    }
    dialect = dialects.get("dlc")
    parsed = dialect.parse(Document(json.dumps(job)))
    role = parsed.spec.roles[0].model_copy(update={"name": "Worker"})
    wanted = parsed.spec.model_copy(update={"roles": (role,)})
    for base in (Document(parsed.text), None):
        made = dialect.render(wanted, parsed.extras, base=base).text
        assert dialect.parse(Document(made)).spec == wanted
        assert '"mine"' in made


def test_own_object_is_removed_when_empty() -> None:
    dlc, text = dialects.get("dlc"), written("dlc", {"hold": True})
    parsed = dlc.parse(Document(text))
    without = dlc.render(parsed.spec.model_copy(update={"hold": False}), parsed.extras, base=Document(text))
    assert "JobConsole" not in without.text


@pytest.mark.parametrize("name", AT)
@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        ({"priority": 99}, [("too_great", "/priority", None)]),
        ({"hold": "maybe"}, [("wrong_type", "/hold", None)]),
        ({"retry": 1}, [("wrong_type", "/retry", None)]),
        ({"roles": []}, [("wrong_type", "/roles", None)]),
        ({"roles": {"Worker": 1}}, [("wrong_type", "/roles/Worker", None)]),
        ({"mounts": [1]}, [("wrong_type", "/mounts/0", None)]),
        ({"after": {}}, [("wrong_type", "/after", None)]),
        ({"after": [{}]}, [("required", "/after/0/job", None)]),
        ({"after": [{"job": "a", "when": "suceeded"}]}, [("not_a_choice", "/after/0/when", "succeeded")]),
        ({"software": {"modules": ["a; rm"]}}, [("bad_name", "/software/modules/0", None)]),
        ({"software": {"venv": "/a", "conda": "/b"}}, [("not_possible", "/software", None)]),
        ({"code": {"branch": "main"}}, [("not_possible", "/code", None)]),
        ({"reserve_after": {"when": "failed"}}, [("required", "/reserve_after/seconds", None)]),
        (
            {"roles": {"Worker": {"ports": [{"label": "a"}, {"label": "a"}]}}},
            [("not_possible", "/roles/Worker", None)],
        ),
    ],
)
def test_own_object_problems_are_reported_at_their_place(
    name: str, ours: dict[str, Any], expected: list[tuple[str, str, Any]]
) -> None:
    found = [(code, at, fix.value if fix else None) for code, at, fix in problems(name, ours)]
    assert found == expected


@pytest.mark.parametrize("name", ["dlc", "openpai-v1"])
def test_own_object_of_wrong_type_is_reported(name: str) -> None:
    assert [(code, at) for code, at, _fix in problems(name, [1])] == [("wrong_type", "")]


@pytest.mark.parametrize("name", AT)
def test_own_object_secrets_leave_the_text(name: str) -> None:
    ours = {
        "env": {"MY_TOKEN": "hidden-1"},
        "roles": {"Worker": {"env": {"API_KEY": "hidden-2"}}},
        "registry_auth": {"username": "ada", "password": "hidden-3"},
        "mounts": [{"uri": "redis://u:hidden-4@host/0"}],
    }
    parsed = dialects.get(name).parse(Document(written(name, ours)))
    assert sorted(parsed.secrets.values()) == ["hidden-1", "hidden-2", "hidden-3", "hidden-4"]
    assert "hidden" not in f"{parsed.text}{parsed.spec}{parsed.extras}{parsed.notes}"
    assert {*parsed.spec.secret_env} == {"MY_TOKEN", "API_KEY"}
    again = dialects.get(name).parse(
        Document(dialects.get(name).with_secrets(Document(parsed.text), parsed.secrets))
    )
    assert (again.spec, again.secrets) == (parsed.spec, parsed.secrets)


@pytest.mark.parametrize("name", AT)
def test_own_object_schema_supports_editor_completion(name: str) -> None:
    schema: Any = dialects.get(name).schema()
    for key in AT[name].split("/")[1:]:
        schema = schema["properties"][key]
    known = schema["properties"]
    assert known["after"]["items"]["properties"]["when"]["enum"] == ["succeeded", "ended", "failed"]
    assert known["roles"]["additionalProperties"]["properties"]["replicas"]["minimum"] == 1
    assert known["hold"] == {
        "description": HELPS["hold"],
        "$comment": "Job Console",
        "type": "boolean",
        "default": False,
    }

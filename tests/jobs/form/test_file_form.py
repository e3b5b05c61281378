"""A text as a form and back: the text changes where the form did, and nowhere else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from jobs import dialects
from jobs.dialects.document import Document
from jobs.form.changes import RowActions
from jobs.form.dialect_support import DEFAULT_DIALECT, unsupported_fields
from jobs.form.envfile import MAX_CHARACTERS
from jobs.form.file_form import ENV_PASTE, apply, read
from jobs.messages.form_fields import field_message
from jobs.spec import Framework, JobSpec, PodContainer, RoleSpec
from tests.jobs.dialects.dlc_strategies import dlc_specs
from tests.jobs.dialects.strategies import v1_texts
from tests.jobs.web.new_job.test_form_change import DLC, LOCKED, SBATCH
from tests.jobs.web.test_new import HELLO

V2 = """protocolVersion: 2
name: yaml_job   # kept
type: job
prerequisites:
  - {name: image, type: dockerimage, uri: "a/b:1"}
taskRoles:
  main:
    instances: 1
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 1024, gpu: 0}
    commands:
      - echo one
"""


@given(v1_texts())
def test_file_form_without_changes_leaves_text(text: str) -> None:
    shown = read(Document(text, "openpai-v1"))
    if shown.parsed is not None:
        again = apply(Document(text, "openpai-v1"), shown.values, shown.values)
        assert (again.reading.text, again.problems) == (text, {})


@given(dlc_specs())
def test_file_form_leaves_unshown_only_roles_retry_and_mounts(spec: JobSpec) -> None:
    shown = read(Document(dialects.get("dlc").render(spec, {}).text, "dlc"))
    assert shown.parsed is not None
    assert set(shown.unshown) <= {
        pointer for pointer in shown.unshown if pointer.startswith(("/roles/", "/retry", "/mounts"))
    }


@pytest.mark.parametrize(("text", "dialect"), [(DLC, "dlc"), (HELLO, "openpai-v1"), (V2, "openpai-v2")])
def test_file_form_changes_name_in_place(text: str, dialect: str) -> None:
    before = read(Document(text))
    assert before.dialect == dialect
    now = apply(Document(text), {"name": "another"}).reading
    assert now.text == text.replace(before.values["name"], "another", 1)
    assert now.values["name"] == "another"


def test_secret_value_stays_in_text_and_out_of_form_values() -> None:
    now = apply(Document(LOCKED), {"roles-0-cpu": "9"}).reading
    assert now.text == LOCKED.replace('"CPU": "4"', '"CPU": "9"')
    assert "canary-51f0" not in json.dumps(dict(now.values))


def test_secret_value_of_container_goes_to_text_and_out_of_form_values() -> None:
    posted = {
        "roles-0-sidecars-0-name": "agent",
        "roles-0-sidecars-0-env": "MODE=fast\nAPI_TOKEN=canary-90aa",
    }
    now = apply(Document(DLC), posted)
    assert now.problems == {}
    assert now.reading.values["roles-0-sidecars-0-env"] == "MODE=fast\nAPI_TOKEN=$SECRET:API_TOKEN"
    other = {"roles-0-sidecars-0-env": "MODE=slow\nAPI_TOKEN=$SECRET:API_TOKEN"}
    again = apply(Document(now.reading.text), other).reading
    assert "canary-90aa" in again.text
    assert '"slow"' in again.text


def test_container_setting_without_field_is_listed_and_stays() -> None:
    pod = '"ExtraPodSpec": {"SideCarContainers": [{"Name": "a", "Args": ["--x"], "WorkingDir": "/w"}]}'
    text = DLC.replace('"PodCount"', f'{pod},\n     "PodCount"')
    assert {"/roles/0/sidecars/0/args/0", "/roles/0/sidecars/0/working_dir"} <= set(
        read(Document(text)).unshown
    )
    now = apply(Document(text), {"roles-0-sidecars-0-name": "b"}).reading.parsed
    assert now is not None
    assert now.spec.roles[0].sidecars == (PodContainer(name="b", args=("--x",), working_dir="/w"),)


def test_unreadable_text_stays_and_typed_values_are_returned() -> None:
    posted = {"name": "typed"}
    now = apply(Document("{ half"), posted)
    assert (now.reading.text, now.rejected) == ("{ half", posted)
    assert now.reading.refused


def test_change_unsupported_by_dialect_is_rejected_and_text_stays() -> None:
    now = apply(Document(SBATCH), {"priority": "3"})
    assert now.reading.text == SBATCH
    assert now.problems["priority"].code == "not_said"
    assert now.rejected == {"priority": "3"}


def test_file_form_convert_applies_unsupported_change_as_dlc() -> None:
    now = apply(Document(SBATCH), {"priority": "3"}, convert=True)
    assert now.reading.dialect == DEFAULT_DIALECT
    assert now.reading.values["priority"] == "3"
    assert now.problems == {}


def test_unknown_keys_are_listed_and_stay_in_text() -> None:
    assert read(Document(DLC)).unshown == ("/Mine",)
    assert '"Mine": {"kept": true}' in apply(Document(DLC), {}, acts=RowActions(add="roles")).reading.text


def test_role_variables_without_field_are_listed_as_unshown() -> None:
    master = RoleSpec(name="Master", command="true", image="a/b:1")
    worker = RoleSpec(name="Worker", command="true", image="a/b:1", env={"OWN": "1"})
    spec = JobSpec(name="job", framework=Framework.PYTORCH, roles=(master, worker))
    text = dialects.get("kubeflow").render(spec, {}).text
    assert "/roles/1/env/OWN" in read(Document(text)).unshown


def test_pasted_env_file_updates_known_variables_and_adds_others() -> None:
    text = DLC.replace('"UserCommand"', '"Envs": {"A": "old", "B": "2"},\n  "UserCommand"')
    now = apply(Document(text), {ENV_PASTE: "A=new\nC='$HOME'"}).reading
    assert now.parsed is not None
    assert now.parsed.spec.env == {"A": "new", "B": "2", "C": "$HOME"}


def test_pasted_env_file_over_limit_is_rejected_unread() -> None:
    pasted = "A=new\n" * (MAX_CHARACTERS // 6 + 1)
    applied = apply(Document(DLC), {ENV_PASTE: pasted})
    assert applied.reading.text == DLC
    problem = applied.problems[ENV_PASTE]
    assert problem.params == {"count": len(pasted.strip()), "most": MAX_CHARACTERS}
    assert f"maximum {MAX_CHARACTERS}" in field_message(problem.code, problem.params)
    assert applied.rejected[ENV_PASTE] == pasted


def test_pasted_env_file_bad_lines_are_reported_and_paste_is_returned() -> None:
    pasted = "A=1\nB='open\nthis: is ]\n# note\n" + "=\n" * 9
    applied = apply(Document(DLC), {ENV_PASTE: pasted})
    assert applied.reading.text == DLC
    problem = applied.problems[ENV_PASTE]
    assert field_message(problem.code, problem.params).startswith("Can't read line 2, 3, 5, 6, 7 …. ")
    assert applied.rejected[ENV_PASTE] == pasted


def test_pasted_env_file_is_accepted_beside_odd_field_names() -> None:
    posted = {ENV_PASTE: "A=1", "env--name": "B", "env-x-name": "C", f"env-{'9' * 5000}-name": "D"}
    now = apply(Document(DLC), posted).reading
    assert now.parsed is not None
    assert now.parsed.spec.env["A"] == "1"


@pytest.mark.parametrize("dialect", dialects.NAMES)
def test_unsupported_fields_are_those_the_dialect_loses(dialect: str) -> None:
    off = unsupported_fields(dialect)
    assert not {"name", "roles-*-command", "roles-*-replicas", "env"} & off
    assert ("priority" in off) is (dialect in ("kubeflow", "sbatch"))

"""Fields that are one part of a value, roles that a framework has, and sizes by name."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import submission
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.form.fields import FIELDS
from jobs.form.file_form import apply, read
from jobs.form.roles import next_role
from jobs.form.subfields import MapMember, TextArgument
from jobs.models import JobFile
from jobs.spec import Framework, Resources
from quotas.models import Role, Spec
from tests.factories import make_cluster, make_quota, make_user, make_workspace

TEXT = json.dumps(
    {
        "DisplayName": "j",
        "JobType": "PyTorchJob",
        "JobSpecs": [{"Type": "Worker", "PodCount": 1, "ResourceConfig": {"CPU": "1", "Memory": "1Gi"}}],
        "UserCommand": "true",
        "Settings": {
            "EnableErrorMonitoringInAIMaster": True,
            "ErrorMonitoringArgs": "--job-execution-mode Sync --mine=1",
            "AdvancedSettings": {"createSvcForAllWorkers": "true", "Own": "x"},
        },
    }
)


def settings(text: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(text)["Settings"]
    return found


def test_subfield_shows_its_part_of_the_value() -> None:
    values = read(Document(TEXT)).values
    assert values["option-createSvcForAllWorkers"] == "true"
    assert values["option-customPortList"] == ""
    assert (values["fault-job-execution-mode"], values["fault-enable-job-restart"]) == ("Sync", "")


def test_subfield_change_keeps_other_parts() -> None:
    changed = apply(Document(TEXT), {"option-customPortList": "10000", "fault-enable-job-restart": "True"})
    assert not changed.problems
    now = settings(changed.reading.text)
    assert now["AdvancedSettings"] == {
        "createSvcForAllWorkers": "true",
        "Own": "x",
        "customPortList": "10000",
    }
    assert now["ErrorMonitoringArgs"] == "--job-execution-mode Sync --mine=1 --enable-job-restart=True"


def test_subfield_emptied_is_removed() -> None:
    posted = {"option-createSvcForAllWorkers": "", "fault-job-execution-mode": ""}
    now = settings(apply(Document(TEXT), posted).reading.text)
    assert now["AdvancedSettings"] == {"Own": "x"}
    assert now["ErrorMonitoringArgs"] == "--mine=1"


def test_subfield_rejects_non_number_at_its_field() -> None:
    changed = apply(Document(TEXT), {"fault-max-num-of-job-restart": "often"})
    assert [problem.code for problem in changed.problems.values()] == ["no_number"]
    assert settings(changed.reading.text) == settings(TEXT)


def test_advanced_settings_accept_one_text() -> None:
    for text in ("a=1,b=2", '{"a": "1", "b": "2"}', "a=1\nb=2"):
        now = settings(apply(Document(TEXT), {"options": text}).reading.text)
        assert now["AdvancedSettings"] == {"a": "1", "b": "2"}


@given(st.dictionaries(st.sampled_from("abc"), st.text(min_size=1)), st.sampled_from("abc"), st.text())
def test_map_member_is_set_and_found(whole: dict[str, str], name: str, text: str) -> None:
    member = MapMember(name)
    after = member.replace(whole, text)
    assert member.show(after) == text
    assert {key: value for key, value in after.items() if key != name} == {
        key: value for key, value in whole.items() if key != name
    }


def test_text_argument_is_set_and_found() -> None:
    argument = TextArgument("job-hang-interval")
    assert argument.show(argument.replace("--x", "60")) == "60"


def test_subfield_names_its_parent_path() -> None:
    parts = [field for field in FIELDS.values() if field.subfield]
    assert len(parts) == 14 + 16 + 4
    assert {field.path for field in parts} == {
        "/framework_options",
        "/fault_tolerance/arguments",
        "/sanity_check/arguments",
    }


@pytest.mark.parametrize(
    ("framework", "last", "taken", "name"),
    [
        (Framework.TENSORFLOW, "Worker", {"Worker"}, "PS"),
        (Framework.TENSORFLOW, "PS", {"Worker", "ps", "Chief"}, "Evaluator"),
        (Framework.PYTORCH, "Worker", {"Worker", "Master"}, "Worker-2"),
        (Framework.RAY, "Head", {"Head", "Worker"}, "Worker-2"),
        (Framework.RAY, "Worker-2", {"Head", "Worker", "Worker-2"}, "Worker-3"),
        (Framework.MPI, "Launcher", {"Launcher"}, "Launcher-2"),
        (None, "main", {"main"}, "main-2"),
    ],
)
def test_next_role_follows_framework(
    framework: Framework | None, last: str, taken: set[str], name: str
) -> None:
    assert next_role(framework, last, taken) == name


@pytest.mark.django_db
def test_size_from_console_list_sets_job_resources() -> None:
    alice, cluster = make_user("alice"), make_cluster()
    quota = make_quota(make_workspace(members={alice: Role.DEVELOPER}), cluster)
    Spec.objects.create(name="own.large", cpu_milli=1000, memory_mib=1024)
    Spec.objects.create(name="own.large", cluster=cluster, cpu_milli=8000, memory_mib=65536, gpus={"A100": 1})
    role = {"Type": "Worker", "PodCount": 2, "EcsSpec": "own.large"}
    text = json.dumps(
        {"DisplayName": "j", "JobType": "PyTorchJob", "JobSpecs": [role], "UserCommand": "true"}
    )
    submitted = submission.submit(alice, Document(text))
    held = JobFile.objects.get(job=submitted.job).spec.roles[0].resources
    assert (held.cpu_milli, held.memory_mib, held.gpus, held.gpu_type) == (8000, 65536, 1, "A100")
    assert held.instance_type == "own.large"
    assert "amounts_unknown" not in {note.code for note in submitted.notes}
    assert submitted.job.quota == quota


@pytest.mark.django_db
def test_size_missing_from_list_is_rejected() -> None:
    alice = make_user("alice")
    make_quota(make_workspace(members={alice: Role.DEVELOPER}))
    role = {"Type": "Worker", "PodCount": 1, "EcsSpec": "ecs.nobody"}
    text = json.dumps(
        {"DisplayName": "j", "JobType": "PyTorchJob", "JobSpecs": [role], "UserCommand": "true"}
    )
    with pytest.raises(Refused) as refused:
        submission.submit(alice, Document(text))
    assert "size_not_known" in {problem.code for problem in refused.value.problems}


def submit_with_size(name: str) -> Resources:
    alice = make_user("alice")
    make_quota(make_workspace(members={alice: Role.DEVELOPER}))
    role = {"Type": "Worker", "PodCount": 1, "EcsSpec": name}
    text = json.dumps(
        {"DisplayName": "j", "JobType": "PyTorchJob", "JobSpecs": [role], "UserCommand": "true"}
    )
    return JobFile.objects.get(job=submission.submit(alice, Document(text)).job).spec.roles[0].resources


@pytest.mark.django_db
def test_size_of_vendor_is_known_without_a_console_list() -> None:
    held = submit_with_size("ecs.g6.large")
    assert (held.cpu_milli, held.memory_mib, held.instance_type) == (2000, 8192, "ecs.g6.large")


@pytest.mark.django_db
def test_size_of_vendor_is_rejected_beside_a_console_list() -> None:
    Spec.objects.create(name="own.large", cpu_milli=1000, memory_mib=1024)
    with pytest.raises(Refused):
        submit_with_size("ecs.g6.large")

"""The field rules of the SCM page and of OpenPAI v0.14, one by one."""

import json
from typing import Any

import pytest

from jobs import dialects
from jobs.dialects.base import Fix, Parsed, Problem, Refused
from jobs.dialects.document import Document
from jobs.dialects.openpai_v1 import keys
from jobs.spec import (
    CompletionPolicy,
    Mount,
    MountPurpose,
    Port,
    RegistryAuth,
    RetryPolicy,
    SecretRef,
)

V1 = dialects.get("openpai-v1")


def role(**changes: Any) -> dict[str, Any]:
    complete = {"name": "main", "taskNumber": 2, "cpuNumber": 1, "memoryMB": 1000, "gpuNumber": 0}
    return {**complete, "command": "run", **changes}


def job(*roles: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"jobName": "j", "image": "i", "taskRoles": list(roles) or [role()], **changes}


def parse(value: Any) -> Parsed:
    return V1.parse(Document(json.dumps(value)))


def problems(value: Any) -> tuple[Problem, ...]:
    with pytest.raises(Refused) as caught:
        parse(value)
    return caught.value.problems


def problem(value: Any) -> Problem:
    (only,) = problems(value)
    return only


def noted(parsed: Parsed) -> list[tuple[str, str]]:
    return [(note.code, note.pointer) for note in parsed.notes]


def without(value: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: each for name, each in value.items() if name != key}


def test_complete_file_needs_no_note() -> None:
    assert parse(job()).notes == ()


@pytest.mark.parametrize(
    ("value", "code", "pointer"),
    [
        ([], "wrong_type", ""),
        (without(job(), "jobName"), "required", "/jobName"),
        (without(job(), "image"), "required", "/image"),
        (without(job(), "taskRoles"), "required", "/taskRoles"),
        (job(jobName=""), "empty", "/jobName"),
        (job(jobName=None), "wrong_type", "/jobName"),
        (job(jobName="a b"), "bad_name", "/jobName"),
        (job(jobName="名"), "bad_name", "/jobName"),
        (job(jobName="a\n"), "bad_name", "/jobName"),
        (job(jobName="a" * 257), "too_long", "/jobName"),
        (job(authFile=None), "wrong_type", "/authFile"),
        (job(dataDir=7), "wrong_type", "/dataDir"),
        (job(outputDir=[]), "wrong_type", "/outputDir"),
        (job(codeDir={}), "wrong_type", "/codeDir"),
        (job(virtualCluster=None), "wrong_type", "/virtualCluster"),
        (job(gpuType=None), "wrong_type", "/gpuType"),
        (job(retryCount=-3), "too_small", "/retryCount"),
        (job(retryCount=None), "wrong_type", "/retryCount"),
        (job(killAllOnCompletedTaskNumber=None), "wrong_type", "/killAllOnCompletedTaskNumber"),
        (job(jobEnvs=[]), "wrong_type", "/jobEnvs"),
        (job(jobEnvs={"-": 1}), "bad_key", "/jobEnvs"),
        (job(extras=None), "wrong_type", "/extras"),
        (job(extras={"-": 1}), "bad_key", "/extras"),
        (job(taskRoles=[]), "too_few", "/taskRoles"),
        (job(taskRoles={}), "wrong_type", "/taskRoles"),
        (job(taskRoles=[7]), "wrong_type", "/taskRoles/0"),
        (job(*[role(name=f"r{n}") for n in range(1001)]), "too_many", "/taskRoles"),
        (job(role(name="g2p-train")), "bad_name", "/taskRoles/0/name"),
        (job(without(role(), "name")), "required", "/taskRoles/0/name"),
        (job(without(role(), "command")), "required", "/taskRoles/0/command"),
        (job(role(command="")), "empty", "/taskRoles/0/command"),
        (job(role(taskNumber="two")), "wrong_type", "/taskRoles/0/taskNumber"),
        (job(role(taskNumber=True)), "wrong_type", "/taskRoles/0/taskNumber"),
        (job(role(taskNumber=1.5)), "not_whole", "/taskRoles/0/taskNumber"),
        (job(role(taskNumber=100_001)), "too_great", "/taskRoles/0/taskNumber"),
        (job(role(taskNumber=60_000), role(name="b", taskNumber=60_000)), "too_many_replicas", "/taskRoles"),
        (job(role(cpuNumber=None)), "wrong_type", "/taskRoles/0/cpuNumber"),
        (job(role(shmMB=1001)), "above_memory", "/taskRoles/0/shmMB"),
        (job(role(gpuNumber="")), "wrong_type", "/taskRoles/0/gpuNumber"),
        (job(role(minFailedTaskCount=0)), "too_small", "/taskRoles/0/minFailedTaskCount"),
        (job(role(minFailedTaskCount=3)), "above_task_number", "/taskRoles/0/minFailedTaskCount"),
        (job(role(minSucceededTaskCount=3)), "above_task_number", "/taskRoles/0/minSucceededTaskCount"),
        (job(role(portList=None)), "wrong_type", "/taskRoles/0/portList"),
        (job(role(portList=[{}])), "required", "/taskRoles/0/portList/0/label"),
        (job(role(portList=[{"label": "a-b"}])), "bad_name", "/taskRoles/0/portList/0/label"),
        (
            job(role(portList=[{"label": "a", "beginAt": 65536}])),
            "too_great",
            "/taskRoles/0/portList/0/beginAt",
        ),
    ],
)
def test_value_forbidden_by_both_pages_is_refused(value: Any, code: str, pointer: str) -> None:
    found = problem(value)
    assert (found.code, found.pointer) == (code, pointer)
    assert found.source


def test_problems_are_reported_at_once_in_text_order() -> None:
    value = {"taskRoles": [role(shmMB=9000, name="a-b")], "jobName": "a b", "retryCount": -3}
    found = problems(value)
    assert [each.pointer for each in found] == [
        "/image",
        "/taskRoles/0/name",
        "/taskRoles/0/shmMB",
        "/jobName",
        "/retryCount",
    ]
    assert all(each.line == 1 and each.column for each in found)


def test_problems_over_one_hundred_are_summarised_by_count() -> None:
    found = problems(job(*[role(name="a b", command="") for _ in range(600)]))
    assert len(found) == 101
    assert (found[-1].code, found[-1].params["count"]) == ("more_problems", 1100)


@pytest.mark.parametrize(
    ("value", "fix"),
    [
        (job(role(shmMB=9000)), Fix("/taskRoles/0/shmMB", 1000)),
        (job(role(minFailedTaskCount=5)), Fix("/taskRoles/0/minFailedTaskCount", 2)),
        (job(jobName="my job (2)"), Fix("/jobName", "my_job_2")),
        (job(jobName="作业"), Fix("/jobName", "job")),
        (job(jobName=7), Fix("/jobName", "7")),
        (job(role(name="g2p-train")), Fix("/taskRoles/0/name", "g2p_train")),
        (job(role(cpuNumber=0.5)), Fix("/taskRoles/0/cpuNumber", 1)),
        (job(gpuType=None), Fix("/gpuType")),
        (job(jobEnvs=None), Fix("/jobEnvs")),
    ],
)
def test_fix_is_offered_and_solves_its_problem(value: Any, fix: Fix) -> None:
    text = json.dumps(value)
    assert problem(value).fix == fix
    V1.parse(Document(V1.apply_fixes(Document(text), [fix])))


def test_proposed_role_name_avoids_names_of_other_roles() -> None:
    found = problems(job(role(name="a_b"), role(name="a-b"), role(name="a b")))
    assert [each.fix and each.fix.value for each in found] == ["a_b_2", "a_b_3"]


def test_numbers_below_minimum_are_raised_with_a_note() -> None:
    parsed = parse(
        job(
            role(
                taskNumber=0,
                cpuNumber=-1,
                memoryMB=0,
                gpuNumber=-1,
                portList=[{"label": "a", "beginAt": -1, "portNumber": 0}],
            )
        )
    )
    (made,) = parsed.spec.roles
    has = made.resources
    assert (made.replicas, has.cpu_milli, has.memory_mib, has.gpus) == (1, 1000, 100, 0)
    assert made.ports == (Port(label="a", begin_at=0, count=1),)
    assert [note.params["key"] for note in parsed.notes if note.code == "raised"] == [
        "memoryMB",
        "taskNumber",
        "cpuNumber",
        "gpuNumber",
        "beginAt",
        "portNumber",
    ]


def test_small_memory_is_accepted_with_a_note() -> None:
    parsed = parse(job(role(memoryMB=64)))
    assert parsed.spec.roles[0].resources.memory_mib == 64
    assert noted(parsed) == [("below_advised", "/taskRoles/0/memoryMB")]


def test_missing_fields_get_openpai_defaults_with_notes() -> None:
    parsed = parse(job({"name": "main", "command": "run", "portList": [{"label": "a"}]}))
    (made,) = parsed.spec.roles
    has = made.resources
    assert (made.replicas, has.cpu_milli, has.memory_mib, has.shm_mib, has.gpus) == (1, 1000, 100, 64, 0)
    assert made.completion == CompletionPolicy(min_failed=1, min_succeeded=None)
    assert made.ports == (Port(label="a", begin_at=0, count=1),)
    told = {note.params["key"]: note.params["value"] for note in parsed.notes if note.code == "default_taken"}
    assert told == {
        "memoryMB": 100,
        "taskNumber": 1,
        "cpuNumber": 1,
        "gpuNumber": 0,
        "beginAt": 0,
        "portNumber": 1,
    }


def test_shared_memory_default_may_exceed_memory() -> None:
    assert parse(job(role(memoryMB=32))).spec.roles[0].resources.shm_mib == 64


@pytest.mark.parametrize("number", ["2", " 2 ", "2.0", "+2", "2e0", 2.0])
def test_numbers_in_quotes_are_read_as_numbers(number: str | float) -> None:
    parsed = parse(job(role(taskNumber=number)))
    assert parsed.spec.roles[0].replicas == 2
    codes = [note.code for note in parsed.notes]
    assert codes == (["number_from_text"] if isinstance(number, str) else [])


@pytest.mark.parametrize(
    ("counts", "policy"),
    [
        ({}, CompletionPolicy(min_failed=1, min_succeeded=None)),
        ({"minFailedTaskCount": None}, CompletionPolicy(min_failed=None, min_succeeded=None)),
        (
            {"minFailedTaskCount": 2, "minSucceededTaskCount": 1},
            CompletionPolicy(min_failed=2, min_succeeded=1),
        ),
    ],
)
def test_null_counts_differ_from_default(counts: dict[str, Any], policy: CompletionPolicy) -> None:
    assert parse(job(role(**counts))).spec.roles[0].completion == policy


@pytest.mark.parametrize(
    ("count", "policy"),
    [
        (0, RetryPolicy(limit=0)),
        (3, RetryPolicy(limit=3)),
        (-1, RetryPolicy(limit=None)),
        (-2, RetryPolicy(limit=None, on_success=True, fancy=False)),
    ],
)
def test_retry_count_below_zero_follows_openpai(count: int, policy: RetryPolicy) -> None:
    parsed = parse(job(retryCount=count))
    assert parsed.spec.retry == policy
    assert noted(parsed) == ([("looser_rule", "/retryCount")] if count < 0 else [])


def test_tilde_in_job_name_is_accepted_by_scm_page_rule() -> None:
    (note,) = parse(job(jobName="a~b")).notes
    assert (note.code, note.params["applied"]) == ("looser_rule", "SCM page")


def test_duplicate_role_or_port_name_uses_the_later_one() -> None:
    ports = [{"label": "p", "beginAt": 1, "portNumber": 1}, {"label": "p", "beginAt": 2, "portNumber": 1}]
    parsed = parse(job(role(command="old"), role(name="b"), role(command="new", portList=ports)))
    assert [(each.name, each.command) for each in parsed.spec.roles] == [("main", "new"), ("b", "run")]
    assert parsed.spec.roles[0].ports == (Port(label="p", begin_at=2),)
    assert noted(parsed) == [
        ("duplicate_label", "/taskRoles/2/portList/1"),
        ("duplicate_role", "/taskRoles/0"),
    ]


def test_names_unusable_in_shell_are_reported() -> None:
    ports = [{"label": "a.b", "beginAt": 0, "portNumber": 1}]
    assert noted(parse(job(role(name="a~b", portList=ports)))) == [
        ("name_unexpandable", "/taskRoles/0/portList/0/label"),
        ("name_unexpandable", "/taskRoles/0/name"),
    ]


def test_directories_and_auth_file_keep_their_variables() -> None:
    parsed = parse(
        job(
            authFile="hdfs://a",
            dataDir="$PAI_DEFAULT_FS_URI/d",
            outputDir="hdfs://o/$PAI_JOB_NAME",
            codeDir="c",
        )
    )
    assert parsed.spec.registry_auth == RegistryAuth(file_uri="hdfs://a")
    assert parsed.spec.mounts == (
        Mount(purpose=MountPurpose.DATA, uri="$PAI_DEFAULT_FS_URI/d"),
        Mount(purpose=MountPurpose.OUTPUT, uri="hdfs://o/$PAI_JOB_NAME"),
        Mount(purpose=MountPurpose.CODE, uri="c", read_only=True),
    )


def test_output_directory_has_openpai_default() -> None:
    default = Mount(purpose=MountPurpose.OUTPUT, uri=keys.DEFAULT_OUTPUT)
    assert parse(job(outputDir="")).spec.mounts == (default,)


def test_job_wide_settings_reach_every_role() -> None:
    spec = parse(job(role(), role(name="b"), gpuType="P100", jobEnvs={"paiAzRDMA": True})).spec
    assert {(each.image, each.resources.gpu_type, each.resources.rdma) for each in spec.roles} == {
        ("i", "P100", True)
    }
    assert spec.env == {}


def test_variables_are_converted_to_texts() -> None:
    parsed = parse(
        job(jobEnvs={"A": "x", "B": 1, "C": 1.5, "D": True, "E": None, "F": {"a": [1]}, "G": 2.0, "a_1": "y"})
    )
    assert parsed.spec.env == {
        "A": "x",
        "B": "1",
        "C": "1.5",
        "D": "true",
        "E": "",
        "F": '{"a":[1]}',
        "G": "2",
        "a_1": "y",
    }
    assert noted(parsed) == [("env_value_converted", "/jobEnvs/F")]


def test_variables_unusable_in_shell_are_stored_for_export_only() -> None:
    parsed = parse(job(jobEnvs={"a-b": "x", "1a": "y", "a/b": "z"}))
    assert parsed.spec.env == {}
    assert parsed.extras == {"/jobEnvs/a-b": "x", "/jobEnvs/1a": "y", "/jobEnvs/a~1b": "z"}
    assert {code for code, _pointer in noted(parsed)} == {"env_name_unusable"}


@pytest.mark.parametrize(("value", "seconds"), [(True, 604_800), (False, 0), ("true", 0), (1, 0)])
def test_is_debug_sets_retention_of_failed_container(value: Any, seconds: int) -> None:
    assert parse(job(jobEnvs={"isDebug": value})).spec.keep_failed_s == seconds


def test_unused_keys_are_stored_and_reported() -> None:
    value = job(role(storageGB=5, x=1), extras={"a": [1]}, killAllOnCompletedTaskNumber=1, tmp={}, gpuTyp="x")
    parsed = parse(value)
    assert parsed.extras == {
        "/taskRoles/main/x": 1,
        "/killAllOnCompletedTaskNumber": 1,
        "/extras": {"a": [1]},
        "/tmp": {},
        "/gpuTyp": "x",
    }
    assert noted(parsed) == [
        ("scm_only", "/taskRoles/0/storageGB"),
        ("unknown_key", "/taskRoles/0/x"),
        ("obsolete_key", "/killAllOnCompletedTaskNumber"),
        ("kept_unused", "/extras"),
        ("form_snapshot", "/tmp"),
        ("unknown_key", "/gpuTyp"),
    ]
    assert [note.params["meant"] for note in parsed.notes if note.code == "unknown_key"] == [None, "gpuType"]


def test_secrets_leave_the_text() -> None:
    text = json.dumps(
        job(
            dataDir="hdfs://me:s3cret@nn/d",
            jobEnvs={"WANDB_API_KEY": "k3y", "dbPassword": 'p"w', "HF_TOKEN": "", "KEYBOARD": "us"},
        )
    )
    parsed = V1.parse(Document(text))
    assert parsed.secrets == {"dataDir": "s3cret", "WANDB_API_KEY": "k3y", "dbPassword": 'p"w'}
    assert parsed.spec.secret_env == {
        "WANDB_API_KEY": SecretRef(name="WANDB_API_KEY"),
        "dbPassword": SecretRef(name="dbPassword"),
    }
    assert parsed.spec.env == {"HF_TOKEN": "", "KEYBOARD": "us"}
    assert parsed.spec.mounts[0].uri == "hdfs://me:$SECRET:dataDir@nn/d"
    for value in ("s3cret", "k3y", 'p\\"w'):
        assert value not in parsed.text
        assert value not in repr(parsed.spec) + repr(parsed.extras) + repr(parsed.notes)
    assert V1.with_secrets(Document(parsed.text), parsed.secrets) == text


def test_text_without_secrets_means_the_same_and_has_none() -> None:
    first = V1.parse(Document(json.dumps(job(jobEnvs={"API_KEY": "x"}, codeDir="ftp://a:b@c"))))
    second = V1.parse(Document(first.text))
    assert second.spec == first.spec
    assert second.secrets == {}
    assert second.text == first.text


def test_secret_reference_written_by_hand_is_read() -> None:
    parsed = parse(job(jobEnvs={"ANYTHING": "$SECRET:my.key"}))
    assert parsed.spec.secret_env == {"ANYTHING": SecretRef(name="my.key")}
    assert parsed.secrets == {}


def test_password_or_invisible_character_in_command_is_reported() -> None:
    found = parse(job(role(command="git clone https://me:pw@host/x &&\u200brun")))
    assert {code for code, _pointer in noted(found)} == {"password_in_command", "invisible_character"}
    assert noted(parse(job(role(command="git clone https://me:$PASSWORD@host/x")))) == []


def test_image_with_blanks_is_reported() -> None:
    assert noted(parse(job(image="a b"))) == [("image_with_blanks", "/image")]


@pytest.mark.parametrize(
    ("values", "taken"), [(("null", "1"), 1), (("1", "null"), None), (("2", "1"), 1), (("true", "2"), 2)]
)
def test_repeated_key_counts_as_in_openpai(values: tuple[str, str], taken: int | None) -> None:
    first, last = (f'"minFailedTaskCount": {value},\n' for value in values)
    text = json.dumps(job(), indent=2).replace('"taskNumber"', f'{first}{last}"taskNumber"')
    parsed = V1.parse(Document(text))
    assert parsed.spec.roles[0].completion.min_failed == taken
    assert noted(parsed) == [("repeated_key", "/taskRoles/0/minFailedTaskCount")]
    line = text[: text.index(last.strip(), text.index(first) + len(first))].count("\n") + 1
    assert Document(text, "openpai-v1").locate_notes(parsed.notes)[0].line == line
    assert V1.render(parsed.spec, parsed.extras, base=Document(text)).text == text
    without_any = V1.apply_fixes(Document(text), [Fix("/taskRoles/0/minFailedTaskCount")])
    assert "minFailedTaskCount" not in without_any
    assert V1.parse(Document(without_any)).spec.roles[0].completion.min_failed == 1


@pytest.mark.parametrize(
    "members", ['"a": "x", "a": "y"', '"a": {}, "a": 1', '"PASSWORD": "x", "PASSWORD": null']
)
def test_repeated_key_hiding_a_text_is_refused(members: str) -> None:
    text = json.dumps(job()).replace('"jobName"', f'"jobEnvs": {{{members}}}, "jobName"')
    with pytest.raises(Refused) as caught:
        V1.parse(Document(text))
    assert [each.code for each in caught.value.problems] == ["duplicate_key"]

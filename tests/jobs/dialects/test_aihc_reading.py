"""What AIHC bodies mean, in every spelling in which they are met."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobs import dialects
from jobs.dialects.base import Note, Parsed, Problem, Refused
from jobs.dialects.document import Document
from jobs.messages.notes import note_message
from jobs.spec import (
    CompletionPolicy,
    FaultTolerance,
    Framework,
    JobSpec,
    Mount,
    RegistryAuth,
    Resources,
    SecretRef,
    TensorBoard,
)

AIHC = dialects.get("aihc")
SEED = (Path(__file__).parents[2] / "data" / "seeds" / "aihc-pytorchjob.json").read_text()
GPU = {"name": "baidu.com/a800_80g_cgpu", "quantity": 8}
WHOLE = [GPU, {"name": "cpu", "quantity": "96"}, {"name": "memory", "quantity": "512GB"}]


def body(spec: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    role = {"image": "i", "replicas": 1, "resources": [{"name": "cpu", "quantity": 1}], **(spec or {})}
    return {"name": "a", "queue": "q", "command": "c", "jobSpec": role, **more}


def parse(value: dict[str, Any]) -> Parsed:
    return AIHC.parse(Document(json.dumps(value)))


def spec_of(value: dict[str, Any]) -> JobSpec:
    return parse(value).spec


def note(parsed: Parsed, code: str) -> Note:
    (found,) = [each for each in parsed.notes if each.code == code]
    return found


def problem(value: dict[str, Any]) -> Problem:
    with pytest.raises(Refused) as caught:
        parse(value)
    (found,) = caught.value.problems
    return found


def test_aihc_page_sample_is_read_as_printed() -> None:
    parsed = AIHC.parse(Document(SEED))
    assert Document(SEED).dialect == "aihc"
    spec = parsed.spec
    (role,) = spec.roles
    assert (spec.name, spec.quota, spec.framework) == ("api-0513-2", "default", Framework.PYTORCH)
    assert (role.command, role.replicas, role.resources) == ("sleep 1d", 1, Resources(rdma=True))
    assert spec.env == {"NCCL_DEBUG": "DEBUG", "NCCL_IB_DISABLE": "0"}
    assert spec.mounts == (Mount(uri="pfs://pfs-pxE6jz", path="/mnt/cluster"),)
    assert {each.code for each in parsed.notes} == {"tolerated_line_numbers", "no_amounts"}
    assert AIHC.render(spec, parsed.extras, base=Document(SEED)).text == SEED


def test_aihc_listing_when_changed_loses_only_line_numbers() -> None:
    parsed = AIHC.parse(Document(SEED))
    again = AIHC.render(
        parsed.spec.model_copy(update={"quota": "other"}), parsed.extras, base=Document(SEED)
    ).text
    assert again.startswith('{\n "name": "api-0513-2",\n "queueId": "other",')
    assert AIHC.parse(Document(again)).spec.env == parsed.spec.env


@pytest.mark.parametrize("key", ["queue", "queueId", "queueID"])
def test_queue_key_under_any_name_is_read_and_written_back(key: str) -> None:
    value = body()
    value[key] = value.pop("queue")
    parsed = parse(value)
    assert parsed.spec.quota == "q"
    assert json.loads(AIHC.render(parsed.spec, parsed.extras).text)[key] == "q"


@pytest.mark.parametrize("key", ["datasources", "datasource", "dataSources"])
def test_data_sources_under_any_key_name_are_read(key: str) -> None:
    parsed = parse(body() | {key: [{"type": "pfs", "name": "p", "sourcePath": "/d", "mountPath": "/m"}]})
    assert parsed.spec.mounts == (Mount(uri="pfs://p/d", path="/m"),)
    assert key in json.loads(AIHC.render(parsed.spec, parsed.extras).text)


@pytest.mark.parametrize(
    ("source", "mount"),
    [
        ({"name": "p", "mountPath": "/m"}, Mount(uri="pfs://p", path="/m")),
        ({"type": "hostPath", "sourcePath": "/d"}, Mount(uri="file:///d")),
        ({"type": "hostpath", "sourcePath": "/d"}, Mount(uri="file:///d")),
        ({"type": "bos", "name": "", "sourcePath": "bucket/x"}, Mount(uri="bos://bucket/x")),
        ({"type": "cfs", "name": "c"}, Mount(uri="cfs://c")),
        ({"type": "CFS", "name": "c", "odd": 1}, Mount(uri="cfs://c")),
        ({"type": "rapidfs", "name": "r", "sourcePath": "d"}, Mount(uri="rapidfs://r/d")),
        ({"type": "dataset", "name": "ds"}, Mount(id="ds")),
        (
            {"type": "pfs", "name": "p", "options": {"readOnly": True, "medium": "ssd", "sizeLimit": "1Gi"}},
            Mount(uri="pfs://p", read_only=True, options={"medium": "ssd", "sizeLimit": "1Gi"}),
        ),
    ],
)
def test_data_source_of_each_type_becomes_a_mount(source: dict[str, Any], mount: Mount) -> None:
    parsed = parse(body(datasources=[source]))
    assert parsed.spec.mounts == (mount,)
    again = AIHC.parse(Document(AIHC.render(parsed.spec, parsed.extras).text))
    assert (again.spec, again.extras) == (parsed.spec, parsed.extras)


def test_data_source_of_unknown_type_is_stored_but_not_mounted() -> None:
    parsed = parse(body(datasources=[{"type": "tape", "name": "t", "mountPath": "/m"}]))
    assert parsed.spec.mounts == ()
    assert note(parsed, "unknown_word").pointer == "/datasources/0/type"
    assert '"tape"' in AIHC.render(parsed.spec, parsed.extras).text


def test_aihc_v1_body_has_inner_command_and_own_keys() -> None:
    spec = body({"command": "python a.py"}, jobFramework="PyTorchJob")["jobSpec"]
    value = {
        "name": "a",
        "queue": "default",
        "jobFramework": "PyTorchJob",
        "jobSpec": spec,
        "faultTolerance": True,
        "faultToleranceConfig": {"enabledHangDetection": True, "hangDetectionTimeoutMinutes": 5},
        "tensorboardConfig": {"enableTensorboard": True, "logPath": "/l"},
    }
    parsed = parse(value)
    assert parsed.spec.roles[0].command == "python a.py"
    assert parsed.spec.framework is Framework.PYTORCH
    arguments = "--enable-hang-detection=true --hang-detection-log-timeout-minutes=5"
    assert parsed.spec.fault_tolerance == FaultTolerance(enabled=True, arguments=arguments)
    assert parsed.spec.tensorboard == TensorBoard(enabled=True, log_path="/l")
    written = json.loads(AIHC.render(parsed.spec, parsed.extras).text)
    assert written.pop("jobSpec")["command"] == "python a.py"
    assert written == {key: inner for key, inner in value.items() if key != "jobSpec"}
    value["faultToleranceConfig"]["faultToleranceLimit"] = 2
    value["faultToleranceArgs"] = "--enable-hang-detection=false"
    both = parse(value)
    limited = "--hang-detection-log-timeout-minutes=5 --max-num-of-unconditional-retry=2"
    assert both.spec.fault_tolerance.arguments == f"{value['faultToleranceArgs']} {limited}"
    text = json.loads(AIHC.render(both.spec, both.extras).text)
    assert (text["faultToleranceConfig"], text["faultToleranceArgs"]) == (
        value["faultToleranceConfig"],
        value["faultToleranceArgs"],
    )


def test_outer_command_overrides_inner_command() -> None:
    parsed = parse(body({"command": "inner"}))
    assert parsed.spec.roles[0].command == "c"
    assert note(parsed, "two_commands").pointer == "/jobSpec/command"


@pytest.mark.parametrize(
    ("word", "framework"),
    [
        ("PyTorchJob", Framework.PYTORCH),
        ("pytorch", Framework.PYTORCH),
        ("TFJob", Framework.TENSORFLOW),
        ("MPIJob", Framework.MPI),
        ("", Framework.PYTORCH),
    ],
)
def test_job_type_maps_to_framework(word: str, framework: Framework) -> None:
    assert spec_of(body(jobType=word)).framework is framework


def test_misspelt_job_type_is_refused_with_suggestion() -> None:
    found = problem(body(jobType="PytorchJob"))
    assert (found.code, found.pointer) == ("not_a_choice", "/jobType")
    assert found.fix is not None
    assert found.fix.value == "PyTorchJob"


def test_tensorflow_job_has_role_map_and_chief_decides_success() -> None:
    role = body()["jobSpec"]
    value = body(jobType="TFJob") | {"jobSpec": {"Chief": role, "worker": role | {"replicas": 3}}}
    parsed = parse(value)
    assert [(each.name, each.replicas) for each in parsed.spec.roles] == [("Chief", 1), ("Worker", 3)]
    assert parsed.spec.roles[0].completion == CompletionPolicy(min_succeeded=1)
    assert note(parsed, "completion_applied").pointer == "/jobSpec/Chief"
    assert list(json.loads(AIHC.render(parsed.spec, parsed.extras).text)["jobSpec"]) == ["Chief", "worker"]


def test_role_defined_twice_is_refused() -> None:
    role = body()["jobSpec"]
    with pytest.raises(Refused) as caught:
        parse(body() | {"jobSpec": {"Worker": role, "worker": role}})
    assert {(each.code, each.pointer) for each in caught.value.problems} == {
        ("role_twice", "/jobSpec/Worker"),
        ("role_twice", "/jobSpec/worker"),
    }


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        (WHOLE, Resources(cpu_milli=96_000, memory_mib=2**19, gpus=8, gpu_type="a800_80g_cgpu")),
        ([{"name": "cpu", "quantity": "500m"}], Resources(cpu_milli=500)),
        ([{"name": "memory", "quantity": 16}], Resources(memory_mib=16384)),
        ([{"name": "memory", "quantity": "16"}], Resources(memory_mib=16384)),
        ([{"name": "memory", "quantity": "1.5"}], Resources(memory_mib=1536)),
        ([{"name": "sharedMemory", "quantity": 10}], Resources(shm_mib=10240)),
        ([{"name": "nvidia.com/gpu", "quantity": 2}], Resources(gpus=2)),
        ([], Resources()),
    ],
)
def test_quantities_are_read_as_numbers_or_texts_with_optional_units(
    resources: list[dict[str, Any]], expected: Resources
) -> None:
    parsed = parse(body({"resources": resources}))
    assert parsed.spec.roles[0].resources == expected
    assert AIHC.parse(Document(AIHC.render(parsed.spec, parsed.extras).text)).spec == parsed.spec


def test_empty_resource_list_is_reported_and_not_filled_in() -> None:
    parsed = parse(body({"resources": []}))
    assert note(parsed, "no_amounts").pointer == "/jobSpec"
    assert "resources" not in json.loads(AIHC.render(parsed.spec, parsed.extras).text)["jobSpec"]


def test_rdma_sets_shared_memory_within_replica_memory() -> None:
    parsed = parse(body({"enableRDMA": True, "resources": WHOLE}))
    assert parsed.spec.roles[0].resources.shm_mib == 10 * 1024
    assert note(parsed, "rdma_shared_memory").params["mib"] == 10 * 1024
    small = spec_of(body({"enableRDMA": True, "resources": [{"name": "memory", "quantity": 4}]}))
    assert small.roles[0].resources.shm_mib == 4096


def test_rdma_device_implies_rdma_and_missing_gpus_are_reported() -> None:
    parsed = parse(
        body({"resources": [{"name": "cpu", "quantity": 4}, {"name": "rdma/hca", "quantity": "1"}]})
    )
    assert parsed.spec.roles[0].resources.rdma
    assert note(parsed, "condition_unmet").params["lacking"] == "GPU (Worker)"


@pytest.mark.parametrize(
    ("role", "lacking"),
    [
        ({"replicas": 2, "resources": WHOLE, "enableRDMA": True}, None),
        ({"replicas": 1, "resources": WHOLE, "enableRDMA": True}, "replicas ≥ 2"),
        ({"replicas": 2, "resources": WHOLE}, "enableRDMA"),
        ({"replicas": 2, "resources": [GPU | {"quantity": 4}], "enableRDMA": True}, "8 GPUs"),
        (
            {
                "replicas": 2,
                "resources": [{"name": "baidu.com/v100_32g_cgpu", "quantity": 8}],
                "enableRDMA": True,
            },
            "A800/HPAS",
        ),
        ({}, "replicas ≥ 2, 8 GPUs, enableRDMA, A800/HPAS"),
    ],
)
def test_bccl_reports_unmet_conditions(role: dict[str, Any], lacking: str | None) -> None:
    parsed = parse(body(role, enableBccl=True))
    assert parsed.spec.software.bccl
    unmet = [each.params["lacking"] for each in parsed.notes if each.code == "condition_unmet"]
    assert unmet == ([lacking] if lacking else [])


def test_registry_password_leaves_the_text() -> None:
    parsed = parse(body({"imageConfig": {"username": "u", "password": "hunter2"}}))
    (name,) = parsed.secrets
    assert parsed.spec.registry_auth == RegistryAuth(username="u", password=SecretRef(name=name))
    assert "hunter2" not in parsed.text
    assert "hunter2" in AIHC.with_secrets(Document(parsed.text), parsed.secrets)


def test_variables_shared_by_all_roles_become_job_variables() -> None:
    role = body()["jobSpec"]
    shared, own = {"name": "A", "value": "1"}, {"name": "B", "value": 2}
    spec = spec_of(
        body(jobType="TFJob")
        | {"jobSpec": {"PS": role | {"envs": [shared]}, "Worker": role | {"envs": [shared, own]}}}
    )
    assert spec.env == {"A": "1"}
    assert [each.env for each in spec.roles] == [{}, {"B": "2"}]


def test_aihc_only_keys_are_stored_and_reported() -> None:
    alert = {"alertIds": "1", "alertItems": ["jobFailed"], "for": "1m"}
    parsed = parse(body({"hostNetwork": True}, alertConfig=alert))
    kept = {each.pointer for each in parsed.notes if each.code == "kept_unused"}
    assert kept == {"/jobSpec/hostNetwork"}
    assert [each.params["items"] for each in parsed.notes if each.code == "alerts_told"] == ["jobFailed"]
    written = json.loads(AIHC.render(parsed.spec, parsed.extras).text)
    assert (written["alertConfig"], written["jobSpec"]["hostNetwork"]) == (alert, True)


def test_keys_left_unset_by_sdk_have_no_effect() -> None:
    unset: dict[str, Any] = {
        "enableBccl": None,
        "faultTolerance": None,
        "labels": None,
        "datasources": [],
        "alertConfig": {},
    }
    parsed = parse(body({"envs": None, "imageConfig": None}) | unset)
    assert parsed.spec == spec_of(body())
    assert {each.code for each in parsed.notes} == set()


def test_priority_words_map_to_numbers() -> None:
    assert [spec_of(body(priority=word)).priority for word in ("high", "normal", "low")] == [8, 5, 2]
    assert spec_of(body()).priority is None


def test_labels_become_tags() -> None:
    assert spec_of(body(labels=[{"key": "team", "value": "x"}])).tags == {"team": "x"}


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ('{\n "queue": "q",\n "command": "c",\n "jobSpec": {"replicas": 1}\n}', "required", (1, 1)),
        ('{\n "name": "a",\n "jobSpec": {\n  "replicas": 0\n },\n "command": "c"}', "too_small", (4, 15)),
        ('{\n "name": "a",\n "command": "c",\n "jobSpec": "x"\n}', "wrong_type", (4, 13)),
        (
            (
                '{"name": "a", "command": "c", "jobSpec": {"resources": [\n  {"name": "cpu",\n'
                '   "quantity": "many"}\n]}}'
            ),
            "not_an_amount",
            (3, 16),
        ),
    ],
)
def test_problems_have_line_column_and_source(text: str, code: str, place: tuple[int, int]) -> None:
    with pytest.raises(Refused) as caught:
        AIHC.parse(Document(text))
    (found,) = caught.value.problems
    assert (found.code, (found.line, found.column)) == (code, place)
    assert found.source


def test_problem_positions_in_listing_refer_to_the_listing() -> None:
    listing = SEED.replace('"replicas": 1', '"replicas": "x"')
    with pytest.raises(Refused) as caught:
        AIHC.parse(Document(listing))
    (found,) = caught.value.problems
    assert (found.line, found.column) == (7, listing.splitlines()[6].index('"x"') + 1)
    assert AIHC.locate(Document(listing), "/jobSpec/replicas") == (found.line, found.column)


def test_render_of_one_changed_value_changes_one_line() -> None:
    text = """{
  // mine
  "name": "a",
  "queueId": "q",
  "command": "c",
  "jobSpec": {
    "replicas": 1, "image": "i",
    "resources": [
      {"name": "cpu", "quantity": 4},
      {"name": "memory", "quantity": "8GB"}, // enough
    ],
    "envs": [{"name": "A", "value": "1"}]
  }
}
"""
    parsed = AIHC.parse(Document(text))
    (role,) = parsed.spec.roles
    bigger = role.model_copy(update={"resources": role.resources.model_copy(update={"memory_mib": 16384})})
    spec = parsed.spec.model_copy(update={"roles": (bigger,), "env": {"A": "1", "B": "2"}})
    changed = AIHC.render(spec, parsed.extras, base=Document(text)).text
    assert AIHC.parse(Document(changed)).spec == spec
    assert "// mine" in changed
    assert "// enough" in changed
    assert '"quantity": 16' in changed
    assert '"queueId"' in changed


def test_missing_queue_is_reported_in_full_sentence() -> None:
    value = body()
    del value["queue"]
    told = note_message(note(parse(value), "default_taken"))
    assert told == "queue is missing but required (AIHC page)."


@pytest.mark.parametrize("kind", ["TFJob", "MPIJob"])
def test_job_type_of_newer_page_only_is_reported(kind: str) -> None:
    told = note(parse(body(jobType=kind)), "looser_rule")
    assert (told.pointer, told.params["value"]) == ("/jobType", kind)
    assert not [each for each in parse(body(jobType="PyTorchJob")).notes if each.code == "looser_rule"]


@pytest.mark.parametrize(
    ("text", "seconds"), [("90m", 5400), ("1h", 3600), ("2D", 172_800), ("", 0), ("0d", 0)]
)
def test_retention_period_keeps_ended_job(text: str, seconds: int) -> None:
    kept = spec_of(body(retentionPeriod=text)).reserve_after
    assert (kept.seconds if kept else 0) == seconds


def test_retention_period_in_no_known_unit_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        parse(body(retentionPeriod="1 week"))
    assert [(each.code, each.pointer) for each in refused.value.problems] == [
        ("not_a_period", "/retentionPeriod")
    ]

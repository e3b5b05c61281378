"""What `CreateJob` requests mean, as the pages and three generations of the SDK write them."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobs import dialects
from jobs.dialects.base import Note, Parsed, Problem, Refused
from jobs.dialects.document import Document
from jobs.spec import (
    Bid,
    Check,
    CodeSource,
    CompletionPolicy,
    FaultTolerance,
    Framework,
    Idle,
    JobSpec,
    Mount,
    Network,
    NodeChoice,
    PodContainer,
    Port,
    RegistryAuth,
    Requirements,
    Reservation,
    Resources,
    SecretRef,
    Visibility,
)

DLC = dialects.get("dlc")
SEEDS = Path(__file__).parents[2] / "data" / "seeds"


def seed(name: str) -> str:
    return (SEEDS / f"{name}.json").read_text()


def request(role: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    worker = {"Type": "Worker", "Image": "i", "PodCount": 1, "EcsSpec": "ecs.c6.large", **(role or {})}
    return {
        "DisplayName": "a",
        "JobType": "PyTorchJob",
        "JobSpecs": [worker],
        "UserCommand": "c",
        "JobMaxRunningTimeMinutes": 0,
    } | more


def quota(role: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    size = {"EcsSpec": "", "ResourceConfig": {"CPU": "4", "Memory": "16Gi"}}
    return request(size | (role or {}), ResourceId="q", **more)


def parse(value: dict[str, Any]) -> Parsed:
    return DLC.parse(Document(json.dumps(value)))


def spec_of(value: dict[str, Any]) -> JobSpec:
    return parse(value).spec


def codes(parsed: Parsed) -> set[str]:
    return {each.code for each in parsed.notes}


def note(parsed: Parsed, code: str) -> Note:
    (found,) = [each for each in parsed.notes if each.code == code]
    return found


def problem(value: dict[str, Any]) -> Problem:
    with pytest.raises(Refused) as caught:
        parse(value)
    (found,) = caught.value.problems
    return found


def again(parsed: Parsed) -> None:
    """Written anew it says the same, and byte for byte where it stands."""
    once_more = DLC.parse(Document(DLC.render(parsed.spec, parsed.extras).text))
    assert (once_more.spec, once_more.extras) == (parsed.spec, parsed.extras)
    assert DLC.render(parsed.spec, parsed.extras, base=Document(parsed.text)).text == parsed.text


def test_create_job_page_sample_is_read_with_trailing_comma() -> None:
    parsed = DLC.parse(Document(seed("dlc-tfjob")))
    (role,) = parsed.spec.roles
    assert (parsed.spec.name, parsed.spec.framework) == ("tf-mnist-test", Framework.TENSORFLOW)
    assert (role.name, role.replicas, role.command) == ("Worker", 3, "python /root/code/mnist.py")
    assert role.resources == Resources(
        cpu_milli=12_000, gpus=1, gpu_type="V100", instance_type="ecs.gn6e-c12g1.3xlarge"
    )
    assert parsed.spec.mounts == (Mount(id="d-*****"),)
    assert parsed.spec.code == CodeSource(id="code-****", branch="master", commit="44da109b5****")
    assert parsed.spec.network == Network(vpc="vpc******", security_group="g*****")
    assert parsed.spec.requirements == Requirements(packages=("numpy==1.16.1",), directory="/root/code/")
    assert parsed.spec.time_limit_s == 1024 * 60
    assert {"tolerated_trailing_commas", "amounts_unknown"} <= codes(parsed)
    again(parsed)


def test_sdk_sample_for_public_resources_is_read() -> None:
    parsed = DLC.parse(Document(seed("dlc-sdk-public")))
    (role,) = parsed.spec.roles
    assert role.resources.instance_type == "ecs.c6.large"
    assert (role.bid, parsed.spec.quota, parsed.spec.workspace) == (None, "", "12345")
    assert parsed.spec.time_limit_s is None
    again(parsed)


def test_sdk_sample_for_quota_leaves_blanks_to_fill() -> None:
    parsed = DLC.parse(Document(seed("dlc-sdk-quota")))
    assert (parsed.spec.quota, parsed.spec.workspace) == ("", "")
    assert [each.pointer for each in parsed.notes if each.code == "blank_to_fill"] == [
        "/WorkspaceId",
        "/ResourceId",
    ]
    assert parsed.spec.roles[0].resources == Resources(cpu_milli=1000, memory_mib=2048)
    assert DLC.render(parsed.spec, parsed.extras, base=Document(seed("dlc-sdk-quota"))).text == seed(
        "dlc-sdk-quota"
    )


@pytest.mark.parametrize(
    ("name", "bid"),
    [
        ("dlc-sdk-spot-discount", Bid(discount_percent=40)),
        ("dlc-sdk-spot-price", Bid(price_micro=11_000)),
    ],
)
def test_sdk_samples_for_preemptible_machines_are_read(name: str, bid: Bid) -> None:
    parsed = DLC.parse(Document(seed(name)))
    assert parsed.spec.roles[0].bid == bid
    assert parsed.spec.network.switch == "vsw-0jlc46eg4k3pivwpz8****"
    assert {each.code for each in parsed.notes} == {"amounts_unknown", "no_limit_here"}
    again(parsed)


@pytest.mark.parametrize(
    ("role", "bid"),
    [
        ({}, None),
        ({"UseSpotInstance": False}, None),
        ({"UseSpotInstance": True}, Bid()),
        ({"UseSpotInstance": "True"}, Bid()),
        ({"SpotSpec": {"SpotStrategy": "SpotWithPriceLimit"}}, Bid()),
        (
            {"SpotSpec": {"SpotStrategy": "SpotWithPriceLimit", "SpotDiscountLimit": 0.9}},
            Bid(discount_percent=90),
        ),
        (
            {"SpotSpec": {"SpotStrategy": "SpotWithPriceLimit", "SpotDiscountLimit": 0.455}},
            Bid(discount_percent=45),
        ),
        ({"SpotSpec": {"SpotDiscountLimit": 0.4}}, None),
    ],
)
def test_spot_spec_maps_to_bid(role: dict[str, Any], bid: Bid | None) -> None:
    parsed = parse(request(role))
    assert parsed.spec.roles[0].bid == bid
    again(parsed)


def test_spot_discount_without_strategy_is_reported() -> None:
    assert "limit_without_strategy" in codes(parse(request({"SpotSpec": {"SpotDiscountLimit": 0.4}})))


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        ({"SpotDiscountLimit": 0.05}, "too_small"),
        ({"SpotDiscountLimit": 0.95}, "too_great"),
        ({"SpotDiscountLimit": 0.5, "SpotPriceLimit": 1}, "exclusive"),
    ],
)
def test_spot_spec_with_invalid_limits_is_refused(limits: dict[str, float], code: str) -> None:
    found = problem(request({"SpotSpec": {"SpotStrategy": "SpotWithPriceLimit", **limits}}))
    assert found.code == code
    assert (found.fix is None) == (code == "exclusive")


def test_keys_left_unset_by_any_sdk_generation_have_no_effect() -> None:
    plain = spec_of(request())
    first: dict[str, Any] = {
        "CodeSource": None,
        "DataSources": [],
        "ElasticSpec": None,
        "Envs": {},
        "Settings": None,
    }
    second = first | {"CredentialConfig": None, "UserVpc": {}, "Accessibility": None, "SuccessPolicy": None}
    third = second | {"CustomEnvs": None, "Description": None, "TemplateId": None, "TemplateVersion": None}
    role: dict[str, Any] = {"AssignNodeSpec": None, "SpotSpec": {}, "ExtraPodSpec": None, "ImageConfig": None}
    for unset in (first, second, third):
        parsed = parse(request(role, **unset))
        assert parsed.spec == plain
        again(parsed)


def test_newest_sdk_keys_are_understood() -> None:
    parsed = parse(
        request(
            {
                "UserCommand": "own",
                "SystemDisk": {"Category": "cloud_essd", "Size": 100},
                "ServiceSpec": {"DefaultPort": 80, "ExtraPorts": [81], "ServiceMode": "PerPod"},
                "IsCheif": True,
            },
            Description="d",
            CustomEnvs=[{"Key": "A", "Value": "1", "Visible": "all"}],
            Settings={"TerminationGracePeriodSeconds": 60, "EnableCPUAffinity": True},
        )
    )
    (role,) = parsed.spec.roles
    assert (role.command, role.resources.disk_mib) == ("own", 100 * 1024)
    assert role.ports == (Port(label="default", begin_at=80), Port(label="port-81", begin_at=81))
    assert (parsed.spec.description, parsed.spec.env) == ("d", {"A": "1"})
    assert (parsed.spec.grace_s, parsed.spec.cpu_affinity) == (60, True)
    assert parsed.extras["/JobSpecs/Worker/SystemDisk/Category"] == "cloud_essd"
    again(parsed)


def test_quota_takes_amounts_and_public_resources_take_instance_type() -> None:
    both = {"EcsSpec": "ecs.gn6e-c12g1.3xlarge", "ResourceConfig": {"CPU": "4", "Memory": "8Gi"}}
    of_quota, public = parse(request(both, ResourceId="q")), parse(request(both))
    assert of_quota.spec.roles[0].resources == Resources(cpu_milli=4000, memory_mib=8192)
    assert of_quota.spec.roles[0].resources.instance_type == ""
    assert public.spec.roles[0].resources.instance_type == "ecs.gn6e-c12g1.3xlarge"
    assert public.spec.roles[0].resources.gpu_type == "V100"
    assert note(public, "two_sizes").params["taken"] == "EcsSpec"


def test_unknown_instance_type_never_replaces_amounts() -> None:
    both = {"EcsSpec": "ecs.g9.huge", "ResourceConfig": {"CPU": "4", "Memory": "8Gi"}}
    parsed = parse(request(both))
    resources = parsed.spec.roles[0].resources
    assert (resources.cpu_milli, resources.memory_mib) == (4000, 8192)
    assert resources.instance_type == "ecs.g9.huge"
    assert note(parsed, "two_sizes").params["taken"] == "ResourceConfig"
    again(parsed)


def test_amounts_with_units_are_read_and_missing_unit_has_no_fix() -> None:
    config = {"CPU": "500m", "Memory": "1.5Gi", "SharedMemory": "512Mi", "GPU": "8", "GPUType": "A100"}
    assert spec_of(quota({"ResourceConfig": config})).roles[0].resources == Resources(
        cpu_milli=500, memory_mib=1536, shm_mib=512, gpus=8, gpu_type="A100"
    )
    found = problem(quota({"ResourceConfig": {"CPU": "1", "Memory": "16"}}))
    assert (found.code, found.fix) == ("unit_missing", None)


def test_amounts_over_public_limit_are_reported() -> None:
    config = {"ResourceConfig": {"CPU": "9", "Memory": "1Gi", "GPU": "3"}, "EcsSpec": ""}
    told = [each.params["key"] for each in parse(request(config)).notes if each.code == "over_public_limit"]
    assert told == ["GPU", "CPU"]
    assert "over_public_limit" not in codes(parse(request(config, ResourceId="q")))


@pytest.mark.parametrize(
    ("job_type", "framework", "roles"),
    [
        ("TFJob", Framework.TENSORFLOW, ["Worker", "PS", "Chief", "Evaluator", "GraphLearn"]),
        ("PyTorchJob", Framework.PYTORCH, ["Master", "Worker"]),
        ("MPIJob", Framework.MPI, ["Launcher", "Worker"]),
        ("XGBoostJob", Framework.XGBOOST, ["Master", "Worker"]),
        ("OneFlowJob", Framework.ONEFLOW, ["Master", "Worker"]),
        ("ElasticBatchJob", Framework.ELASTIC_BATCH, ["Master", "Worker"]),
        ("SlurmJob", Framework.SLURM, ["Node"]),
        ("RayJob", Framework.RAY, ["Head", "Worker", "Worker-big"]),
        ("DataJuicerJob", Framework.DATA_JUICER, ["Worker"]),
    ],
)
def test_job_types_are_read_with_their_roles(job_type: str, framework: Framework, roles: list[str]) -> None:
    specs = [{"Type": name, "Image": "i", "PodCount": 1, "EcsSpec": "e"} for name in roles]
    parsed = parse(request(JobType=job_type) | {"JobSpecs": specs})
    assert parsed.spec.framework is framework
    assert [role.name for role in parsed.spec.roles] == roles
    again(parsed)


def test_unknown_roles_and_job_types_are_refused() -> None:
    assert problem(request(JobType="pytorchjob")).fix == problem(request(JobType="PytorchJob")).fix
    found = problem(request({"Type": "PS"}))
    assert (found.code, found.pointer) == ("not_a_choice", "/JobSpecs/0/Type")


def test_role_type_in_lower_case_is_understood_and_left_unchanged() -> None:
    parsed = parse(request({"Type": "worker"}))
    assert parsed.spec.roles[0].name == "Worker"
    assert note(parsed, "other_case").params["meant"] == "Worker"
    assert '"worker"' in DLC.render(parsed.spec, parsed.extras, base=Document(parsed.text)).text


def test_success_policy_of_chief_worker_lets_chief_decide() -> None:
    roles = [{"Type": name, "Image": "i", "PodCount": 2, "EcsSpec": "e"} for name in ("Worker", "PS")]
    value = request(JobType="TFJob") | {"JobSpecs": roles}
    assert spec_of(value).roles[0].completion == CompletionPolicy(min_succeeded=2)
    chief = [*roles, {"Type": "Chief", "Image": "i", "PodCount": 1, "EcsSpec": "e"}]
    by_chief = spec_of(value | {"JobSpecs": chief, "SuccessPolicy": "ChiefWorker"})
    assert [role.completion.min_succeeded for role in by_chief.roles] == [None, None, 1]


def test_node_names_count_only_when_assignment_is_enabled() -> None:
    names = {"NodeNames": "n1, n2", "AntiAffinityNodeNames": "n3"}
    on = parse(quota({"AssignNodeSpec": {"EnableAssignNode": True, **names}}))
    assert on.spec.roles[0].nodes == NodeChoice(only=("n1", "n2"), never=("n3",))
    off = parse(quota({"AssignNodeSpec": names}))
    assert off.spec.roles[0].nodes == NodeChoice()
    assert note(off, "switched_off").pointer == "/JobSpecs/0/AssignNodeSpec"
    again(on)
    again(off)


def test_extra_containers_are_read_and_what_else_a_pod_says_is_stored() -> None:
    pod = {
        "InitContainers": [{"Name": "i", "Image": "x", "Command": ["sh"], "Args": ["-c"], "WorkingDir": "/"}],
        "SideCarContainers": [
            {"Name": "s", "Env": [{"Name": "A", "Value": "1"}], "Resources": {"Limits": {"cpu": "1"}}}
        ],
        "SharedVolumeMountPaths": ["/tmp"],
        "PodAnnotations": {"a": "b"},
        "PodLabels": {"c": "d"},
        "Lifecycle": {"PostStart": {"Exec": {"Command": ["true"]}}},
    }
    parsed = parse(request({"ExtraPodSpec": pod}))
    only = parsed.spec.roles[0]
    assert only.init_containers == (
        PodContainer(name="i", image="x", command=("sh",), args=("-c",), working_dir="/"),
    )
    assert (only.sidecars, only.shared_paths) == ((PodContainer(name="s", env={"A": "1"}),), ("/tmp",))
    assert {
        each.pointer.removeprefix("/JobSpecs/0/ExtraPodSpec")
        for each in parsed.notes
        if each.code == "kept_unused"
    } == {"/SideCarContainers/0/Resources", "/PodAnnotations", "/PodLabels", "/Lifecycle"}
    assert json.loads(DLC.render(parsed.spec, parsed.extras).text)["JobSpecs"][0]["ExtraPodSpec"] == pod
    again(parsed)


def test_elastic_spec_is_stored() -> None:
    elastic = {"EnableElasticTraining": True, "MinParallelism": 1, "MaxParallelism": 4}
    parsed = parse(request(ElasticSpec=elastic))
    assert parsed.extras["/ElasticSpec"] == elastic
    again(parsed)


@pytest.mark.parametrize(
    ("items", "role"),
    [
        ([], "default"),
        ([{"Key": "0", "Type": "Role", "Roles": [{"RoleType": "service"}]}], "default"),
        (
            [{"Key": "0", "Type": "Role", "Roles": [{"RoleArn": "acs:ram::1:role/x", "RoleType": "user"}]}],
            "acs:ram::1:role/x",
        ),
        (
            [
                {"Key": "1", "Type": "Role", "Roles": [{"RoleArn": "acs:ram::1:role/other"}]},
                {
                    "Key": "0",
                    "Type": "RoleChain",
                    "Roles": [{"RoleArn": "acs:ram::1:role/x"}, {"RoleArn": "acs:ram::2:role/y"}],
                },
            ],
            "acs:ram::2:role/y",
        ),
        (
            [{"Key": "0", "Roles": [{"RoleArn": "acs:ram::1:role/AliyunPAIDLCDefaultRole"}]}],
            "default",
        ),
    ],
)
def test_credential_config_maps_to_instance_role(items: list[dict[str, Any]], role: str) -> None:
    config = {"EnableCredentialInject": True, "AliyunEnvRoleKey": "0", "CredentialConfigItems": items}
    parsed = parse(request(CredentialConfig=config))
    assert parsed.spec.instance_role == role
    again(parsed)
    off = parse(request(CredentialConfig=config | {"EnableCredentialInject": False}))
    assert off.spec.instance_role == ""
    again(off)


def test_credential_config_is_removed_with_instance_role() -> None:
    role = {"RoleArn": "acs:ram::1:role/x", "RoleType": "user", "AssumeRoleFor": "1"}
    items = [{"Key": "0", "Type": "Role", "Roles": [role]}]
    config = {"EnableCredentialInject": True, "AliyunEnvRoleKey": "0", "CredentialConfigItems": items}
    parsed = parse(request(CredentialConfig=config))
    without = parsed.spec.model_copy(update={"instance_role": ""})
    assert "CredentialConfig" not in json.loads(DLC.render(without, parsed.extras).text)
    assert (
        DLC.parse(Document(DLC.render(without, parsed.extras, base=Document(parsed.text)).text)).spec
        == without
    )


def test_job_settings_are_read() -> None:
    parsed = parse(
        quota(
            Settings={
                "BusinessUserId": "7",
                "Driver": "535.54.03",
                "OversoldType": "AcceptQuotaOverSold",
                "EnableErrorMonitoringInAIMaster": True,
                "ErrorMonitoringArgs": "--job-execution-mode Sync --enable-job-restart True",
                "EnableSanityCheck": True,
                "SanityCheckArgs": "--sanity-check-timing=AfterJobFaultTolerant",
                "EnableRDMA": True,
                "JobReservedMinutes": 30,
                "JobReservedPolicy": "OnFailure",
                "Tags": {"team": "x"},
                "AdvancedSettings": {"createSvcForAllWorkers": True, "customPortList": "10000;10001-10010"},
            }
        )
    )
    spec = parsed.spec
    assert spec.idle is Idle.ACCEPT
    assert spec.fault_tolerance == FaultTolerance(
        enabled=True, arguments="--job-execution-mode Sync --enable-job-restart True"
    )
    assert spec.sanity_check == Check(enabled=True, arguments="--sanity-check-timing=AfterJobFaultTolerant")
    assert note(parsed, "condition_unmet").params["lacking"] == "GPU"
    assert spec.roles[0].resources.rdma
    assert spec.reserve_after == Reservation(seconds=1800, when="failed")
    assert spec.tags == {"team": "x"}
    assert spec.framework_options == {
        "createSvcForAllWorkers": "true",
        "customPortList": "10000;10001-10010",
    }
    assert parsed.extras["/Settings/Driver"] == "535.54.03"
    again(parsed)


@pytest.mark.parametrize(
    ("options", "job_type", "code"),
    [
        ({"customPortList": "10000-30000"}, "PyTorchJob", "master_port_listed"),
        ({"customPortList": "one"}, "PyTorchJob", "not_a_port_list"),
        ({"customPortNumPerWorker": "65537"}, "PyTorchJob", "not_a_port_number"),
        ({"customPortList": "1", "customPortNumPerWorker": "1"}, "PyTorchJob", "exclusive_options"),
        ({"createSvcForAllWorkers": "true"}, "XGBoostJob", "option_elsewhere"),
        ({"RayRedisAddress": "h:1"}, "PyTorchJob", "option_elsewhere"),
    ],
)
def test_advanced_settings_rejected_by_dlc_are_reported(
    options: dict[str, str], job_type: str, code: str
) -> None:
    parsed = parse(request(JobType=job_type, Settings={"AdvancedSettings": options}))
    assert note(parsed, code).pointer.startswith("/Settings/AdvancedSettings")
    assert parsed.spec.framework_options == options


def test_advanced_settings_in_one_string_are_read() -> None:
    parsed = parse(request(Settings={"AdvancedSettings": "createSvcForAllWorkers=true,customPortList=1;2"}))
    assert parsed.spec.framework_options == {"createSvcForAllWorkers": "true", "customPortList": "1;2"}


def test_secrets_leave_the_text() -> None:
    parsed = parse(
        request(
            {"ImageConfig": {"DockerRegistry": "r", "Username": "u", "Password": "pw1"}},
            Envs={"HF_TOKEN": "tok1", "A": "1"},
            Settings={"AdvancedSettings": {"RayRedisPassword": "pw2"}},
        )
    )
    assert set(parsed.secrets.values()) == {"pw1", "tok1", "pw2"}
    assert not {"pw1", "tok1", "pw2"} & set(parsed.text.split('"'))
    auth = parsed.spec.registry_auth
    assert auth is not None
    assert auth == RegistryAuth(registry="r", username="u", password=auth.password)
    assert parsed.spec.secret_env == {"HF_TOKEN": SecretRef(name="HF_TOKEN")}
    again(parsed)


def test_mounts_are_read_by_id_and_uri_with_options() -> None:
    sources = [
        {"DataSourceId": "d-1", "MountPath": "/a", "DataSourceVersion": "v1"},
        {"Uri": "oss://b.e/p/", "MountPath": "/b", "MountAccess": "RO", "Options": '{"mountType":"ossfs"}'},
    ]
    parsed = parse(request(DataSources=sources))
    assert parsed.spec.mounts == (
        Mount(id="d-1", path="/a"),
        Mount(uri="oss://b.e/p/", path="/b", read_only=True, options={"mountType": "ossfs"}),
    )
    assert parsed.extras["/DataSources/d-1/DataSourceVersion"] == "v1"
    again(parsed)


def test_visibility_and_gateway_are_read() -> None:
    network = {"VpcId": "v", "ExtendedCidrs": ["10.0.0.0/8"], "DefaultRoute": "eth1"}
    parsed = parse(request(Accessibility="PUBLIC", UserVpc=network))
    assert parsed.spec.visibility is Visibility.PUBLIC
    assert parsed.spec.network == Network(vpc="v", cidrs=("10.0.0.0/8",), gateway="eth1")
    assert "ExtendedCidrs" in DLC.render(parsed.spec, parsed.extras).text
    again(parsed)


def test_dlc_limits_are_reported_when_exceeded() -> None:
    parsed = parse(request(Envs={f"V{n}": "1" for n in range(21)}))
    told = note(parsed, "over_vendor_limit")
    assert (told.params["value"], told.params["most"], told.params["source"]) == (21, 20, "DLC page")
    long = parse(request(Envs={"A": "x" * 70_000}))
    assert note(long, "over_vendor_limit").params["most"] == 65_536


def test_running_time_left_unset_is_reported_and_stays_unset() -> None:
    value = request()
    del value["JobMaxRunningTimeMinutes"]
    parsed = parse(value)
    assert parsed.spec.time_limit_s is None
    assert note(parsed, "no_limit_here").params["minutes"] == 30 * 60
    assert "JobMaxRunningTimeMinutes" not in DLC.render(parsed.spec, parsed.extras).text
    assert '"JobMaxRunningTimeMinutes": 0' in DLC.render(parsed.spec, {}).text


def test_problems_are_all_reported_at_once_with_places() -> None:
    text = """{
  "DisplayName": "a b",
  "JobType": "TfJob",
  "JobSpecs": [
    {"Type": "Worker", "PodCount": 0, "EcsSpec": "e"},
    {"Type": "Worker", "PodCount": 1, "EcsSpec": "e"}
  ],
  "Priority": 10
}"""
    with pytest.raises(Refused) as caught:
        DLC.parse(Document(text))
    assert [(each.code, each.line) for each in caught.value.problems] == [
        ("required", 1),
        ("bad_name", 2),
        ("not_a_choice", 3),
        ("too_small", 5),
        ("role_twice", 6),
        ("too_great", 8),
    ]
    fixed = DLC.apply_fixes(Document(text), [each.fix for each in caught.value.problems if each.fix])
    with pytest.raises(Refused) as left:
        DLC.parse(Document(fixed))
    assert {each.code for each in left.value.problems} == {"required", "role_twice", "too_small"}


def test_elastic_job_goes_on_with_minimum_of_replicas() -> None:
    scaling = {"MinReplicas": 2, "MaxReplicas": 4}
    value = request({"PodCount": 4, "AutoScalingSpec": scaling}, JobType="ElasticBatchJob")
    parsed = parse(value)
    assert parsed.spec.roles[0].completion == CompletionPolicy(min_failed=3)
    again(parsed)
    written = json.loads(DLC.render(parsed.spec, {}).text)
    assert written["JobSpecs"][0]["AutoScalingSpec"] == {"MinReplicas": 2}
    assert spec_of(value | {"JobType": "PyTorchJob"}).roles[0].completion == CompletionPolicy()

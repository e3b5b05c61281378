"""The objects of an attempt, as they are given to the API server."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import Person, Refused, Submission
from jobs.backends.kubernetes.config import KubernetesConfig
from jobs.backends.kubernetes.discovery import Operators
from jobs.backends.kubernetes.objects import attempt as attempt_objects
from jobs.backends.kubernetes.objects.attempt import AttemptObjects, ClaimState
from jobs.backends.kubernetes.objects.kubeflow import choose_kind
from jobs.backends.kubernetes.objects.pods import GATE
from jobs.backends.kubernetes.refused_fields import find_pointer
from jobs.dialects.kubeflow.kinds import BY_NAME
from jobs.facilities import StorageMapping
from jobs.spec import (
    CodeSource,
    CompletionPolicy,
    Framework,
    JobSpec,
    Mount,
    MountPurpose,
    NodeChoice,
    PodContainer,
    Port,
    RegistryAuth,
    Resources,
    RoleSpec,
    SecretRef,
)
from jobs.states import ReasonCode
from jobs.trees import Entry, Kind, Supplied, Tree
from tests.jobs.backends.local import goods

HOST = "oss://sets.oss-cn-beijing.aliyuncs.com"
BUCKET = {HOST: StorageMapping(bucket="s3://site", access_key="AK", secret_key="hunter")}


def make_config(**settings: Any) -> KubernetesConfig:
    return KubernetesConfig.from_settings(Path("/console"), {"image": "registry.example/base:1", **settings})


def make(spec: JobSpec, **more: Any) -> Submission:
    given = {"person": Person("alice", 7), "workspace": "vision", **more}
    return Submission(key="inst-abc-1", job_id="abc", attempt=1, spec=spec, **given)


def job(*roles: RoleSpec, **spec: Any) -> JobSpec:
    return JobSpec(**{"name": "train", "roles": roles or (role(),), **spec})


def role(command: str = "true", name: str = "worker", **more: Any) -> RoleSpec:
    return RoleSpec(name=name, command=command, **more)


def render(spec: JobSpec, config: KubernetesConfig | None = None, **more: Any) -> AttemptObjects:
    return attempt_objects.render(make(spec, **more), config or make_config())


def pods_of(objects: AttemptObjects) -> list[dict[str, Any]]:
    return [item for item in objects.owned if item["kind"] == "Pod"]


def main_of(pod: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = pod["spec"]["containers"][0]
    return found


def env_of(objects: AttemptObjects, number: int = 0) -> dict[str, str]:
    own = {
        each["name"]: each["value"] for each in main_of(pods_of(objects)[number])["env"] if "value" in each
    }
    return {**objects.variables, **own}


def why(refused: pytest.ExceptionInfo[Refused]) -> object:
    assert refused.value.reason.code is ReasonCode.REFUSED
    return refused.value.reason.params["why"]


def test_pods_are_restricted_and_have_no_token_of_the_cluster() -> None:
    pod = pods_of(render(job()))[0]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 200_007
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"] + pod["initContainers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    assert [volume for volume in pod["volumes"] if "hostPath" in volume] == []


def test_pods_of_people_have_different_user_ids() -> None:
    ids = {
        pods_of(render(job(), person=Person(name, number)))[0]["spec"]["securityContext"]["runAsUser"]
        for name, number in (("alice", 7), ("bob", 8))
    }
    assert len(ids) == 2


def test_secret_values_are_in_the_secret_alone() -> None:
    spec = job(
        role(init_containers=(PodContainer(command=("true",), env={"KEY": "$SECRET:other"}),)),
        secret_env={"WANDB_API_KEY": SecretRef(name="wandb")},
        registry_auth=RegistryAuth(registry="r.example", username="u", password=SecretRef(name="pull")),
        code=CodeSource(uri="https://bob:$SECRET:git@git.example/a.git"),
    )
    secrets = {"wandb": "hunter-1", "other": "hunter-2", "pull": "hunter-3", "git": "hunter-4"}
    objects = render(spec, secrets=secrets, endpoint_token="hunter-5")
    public = json.dumps([objects.claim(), dict(objects.variables), list(objects.owned), list(objects.parts)])
    assert "hunter" not in public
    values = objects.secrets[0]["stringData"]
    assert values["WANDB_API_KEY"] == "hunter-1"
    assert values["JOB_CONSOLE_ENDPOINT_TOKEN"] == "hunter-5"
    references = {
        each["name"]: each["valueFrom"]["secretKeyRef"]["key"]
        for pod in pods_of(objects)
        for container in pod["spec"]["initContainers"] + pod["spec"]["containers"]
        for each in container["env"]
        if "secretKeyRef" in each.get("valueFrom", {})
    }
    assert values[references["KEY"]] == "hunter-2"
    assert values[references["JOB_CONSOLE_GIT_PASSWORD"]] == "hunter-4"
    assert "hunter-3" in objects.secrets[1]["stringData"][".dockerconfigjson"]


def test_job_without_a_value_for_its_secret_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        render(job(secret_env={"TOKEN": SecretRef(name="none")}))
    assert why(refused) == "no_secret"


def test_kubelet_expands_nothing_in_commands_and_variables() -> None:
    command = 'echo $(date) $$ ${A} "$(HOME)"'
    objects = render(job(role(command), env={"A": "$(PAI_USER_NAME) $5"}))
    main = main_of(pods_of(objects)[0])
    assert main["command"][-1] == command.replace("$", "$$")
    assert {"name": "A", "value": "$$(PAI_USER_NAME) $$5"} in main["env"]


def test_replicas_have_names_ranks_and_ports_of_the_attempt() -> None:
    spec = job(
        role(name="worker", replicas=2, ports=(Port(label="tb", begin_at=6006), Port(label="rpc", count=2))),
        role(name="Master"),
        framework=Framework.PYTORCH,
    )
    objects = render(spec)
    master, worker = env_of(objects, 2), env_of(objects, 1)
    assert (master["RANK"], worker["RANK"], worker["WORLD_SIZE"]) == ("0", "2", "3")
    assert (master["PET_NODE_RANK"], worker["PET_NODE_RANK"]) == ("0", "2")
    assert worker["MASTER_ADDR"] == worker["PET_MASTER_ADDR"] == "master-0.inst-abc-1"
    assert worker["MASTER_PORT"] == worker["PET_MASTER_PORT"]
    assert worker["PAI_HOST_IP_worker_1"] == "worker-1.inst-abc-1"
    assert worker["PAI_PORT_LIST_worker_0_tb"] == "6006"
    assert worker["PAI_CONTAINER_HOST_rpc_PORT_LIST"] == "20000,20001"
    names = [(pod["metadata"]["name"], pod["spec"]["hostname"]) for pod in pods_of(objects)]
    assert names[2] == ("inst-abc-1-master-0", "master-0")
    assert {pod["spec"]["subdomain"] for pod in pods_of(objects)} == {"inst-abc-1"}
    service = objects.owned[0]
    assert (service["kind"], service["metadata"]["name"]) == ("Service", "inst-abc-1")
    assert service["spec"]["clusterIP"] == "None"


def test_tensorflow_replicas_find_their_cluster() -> None:
    spec = job(role(name="ps"), role(name="worker", replicas=2), framework=Framework.TENSORFLOW)
    config = json.loads(env_of(render(spec), 2)["TF_CONFIG"].replace("$$", "$"))
    assert config["task"] == {"type": "worker", "index": 1}
    assert [each.split(":")[0] for each in config["cluster"]["worker"]] == [
        "worker-0.inst-abc-1",
        "worker-1.inst-abc-1",
    ]


def test_job_variables_win_except_for_gpus() -> None:
    given = {"MASTER_ADDR": "elsewhere", "NVIDIA_VISIBLE_DEVICES": "all", "CUDA_VISIBLE_DEVICES": "0"}
    found = env_of(render(job(env=given)))
    assert found["MASTER_ADDR"] == "elsewhere"
    assert (found["NVIDIA_VISIBLE_DEVICES"], found["CUDA_VISIBLE_DEVICES"]) == ("void", "")


def test_gpu_type_chooses_nodes_by_label_and_tolerates_their_taint() -> None:
    config = make_config(gpu_types={"A100": "NVIDIA-A100-SXM4-80GB"})
    resources = Resources(gpus=2, gpu_type="A100", cpu_milli=1500, memory_mib=2048, shm_mib=512)
    pod = pods_of(render(job(role(resources=resources)), config))[0]["spec"]
    limits = pod["containers"][0]["resources"]["limits"]
    assert limits == {"cpu": "1500m", "memory": "2048Mi", "nvidia.com/gpu": "2"}
    assert pod["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    required = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required["nodeSelectorTerms"][0]["matchExpressions"] == [
        {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-A100-SXM4-80GB"]}
    ]
    shm = {"emptyDir": {"medium": "Memory", "sizeLimit": "512Mi"}}
    assert any(shm.items() <= volume.items() for volume in pod["volumes"])


def test_chosen_and_excluded_nodes_become_affinity() -> None:
    nodes = NodeChoice(only=("n1", "n2"), never=("n3",), labels={"zone": "a"})
    pod = pods_of(render(job(role(nodes=nodes))))[0]["spec"]
    terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert [term["matchFields"][0]["values"] for term in terms["nodeSelectorTerms"]] == [["n1"], ["n2"]]
    for term in terms["nodeSelectorTerms"]:
        assert {"key": "metadata.name", "operator": "NotIn", "values": ["n3"]} in term["matchFields"]
        assert term["matchExpressions"] == [{"key": "zone", "operator": "In", "values": ["a"]}]


def test_claim_alone_decides_whether_containers_start() -> None:
    objects = render(job(role(init_containers=(PodContainer(command=("true",)),))))
    patch = objects.submission_patch("5")
    assert GATE not in patch["data"]
    pod = pods_of(objects)[0]["spec"]
    for container in pod["initContainers"] + pod["containers"]:
        gate = next(each for each in container["env"] if each["name"] == GATE)
        assert gate["valueFrom"] == {"configMapKeyRef": {"name": "inst-abc-1", "key": GATE}}
    claim = {**objects.claim(), "binaryData": patch["binaryData"]}
    assert attempt_objects.unpack(claim) == list(objects.owned)
    assert attempt_objects.state_of(claim) is ClaimState.PREPARING
    *checked, gate = attempt_objects.release_patch("inst-abc-1")
    assert [(each["op"], each["value"]) for each in checked] == [
        ("test", ClaimState.SUBMITTED),
        ("replace", ClaimState.RELEASED),
    ]
    assert (gate["path"], gate["value"]) == (f"/data/{GATE}", "inst-abc-1")
    assert attempt_objects.end_patch()["data"] == {GATE: None}


def test_claim_lists_what_ends_with_the_attempt_and_nothing_of_others() -> None:
    objects = render(job(role()), endpoint_token="hunter-5")
    patch = objects.submission_patch("5")
    claim = {"metadata": {**objects.claim()["metadata"], "annotations": patch["metadata"]["annotations"]}}
    own = [(f"{each['kind'].lower()}s", each["metadata"]["name"]) for each in objects.list_prepared()]
    assert attempt_objects.list_prepared(claim) == own == [("secrets", "inst-abc-1")]
    foreign = (
        "secrets/other configmaps/inst-abc-1x nodes/inst-abc-1 secrets/inst-abc-1/x secrets/inst-abc-1-pull"
    )
    claim["metadata"]["annotations"][attempt_objects.PREPARED] = foreign
    assert attempt_objects.list_prepared(claim) == [("secrets", "inst-abc-1-pull")]
    assert attempt_objects.list_prepared(objects.claim()) is None


@pytest.mark.parametrize(
    "uri",
    ["/etc", "/", "/data/../etc", "/srv/other", "/data", "/data/team/bob", "file:///proc/1/root"],
)
def test_folder_of_nodes_that_no_admin_names_is_refused(uri: str) -> None:
    folders = {"/data/team/{user}": {"workspaces": ["vision"]}, "/data/nlp": {"workspaces": ["nlp"]}}
    with pytest.raises(Refused) as refused:
        render(job(mounts=(Mount(uri=uri, path="/mnt/data"),)), make_config(folders=folders))
    assert why(refused) == "mount_not_allowed"


def test_folder_of_nodes_is_mounted_below_the_one_that_an_admin_names() -> None:
    folders = {"/data/team/{user}": {"workspaces": ["vision"], "write": True}}
    mount = Mount(uri="/data/team/alice/run/../run", path="/mnt/out", purpose=MountPurpose.OUTPUT)
    with pytest.raises(Refused):
        render(job(mounts=(mount,)), make_config(folders=folders))
    mount = mount.model_copy(update={"uri": "/data/team/alice/run"})
    pod = pods_of(render(job(mounts=(mount,)), make_config(folders=folders)))[0]["spec"]
    volume = next(each for each in pod["volumes"] if "hostPath" in each)
    assert volume["hostPath"] == {"path": "/data/team/alice", "type": "Directory"}
    mounted = next(each for each in pod["containers"][0]["volumeMounts"] if each["name"] == volume["name"])
    assert mounted == {"name": volume["name"], "mountPath": "/mnt/out", "subPath": "run"}


def test_mounts_become_claims_exports_and_empty_folders() -> None:
    mounts = (
        Mount(uri="pvc://team-data/sets", path="/mnt/sets", read_only=True),
        Mount(uri="nfs://nas/export/a/b", path="/mnt/nfs"),
        Mount(uri="emptydir://", path="/mnt/scratch", options={"sizeLimit": "1Gi"}),
        Mount(id="d-1"),
    )
    storage = {"d-1": StorageMapping(folder="pvc://mapped", path="/mnt/mapped")}
    config = make_config(exports=("nas:/export",))
    pod = pods_of(render(job(mounts=mounts), config, storage=storage))[0]["spec"]
    by_path = {each["mountPath"]: each for each in pod["containers"][0]["volumeMounts"]}
    volumes = {each["name"]: each for each in pod["volumes"]}
    sets = by_path["/mnt/sets"]
    assert (sets["subPath"], sets["readOnly"]) == ("sets", True)
    assert volumes[sets["name"]]["persistentVolumeClaim"] == {"claimName": "team-data"}
    assert volumes[by_path["/mnt/nfs"]["name"]]["nfs"] == {"server": "nas", "path": "/export"}
    assert by_path["/mnt/nfs"]["subPath"] == "a/b"
    assert volumes[by_path["/mnt/scratch"]["name"]]["emptyDir"] == {"sizeLimit": "1Gi"}
    assert volumes[by_path["/mnt/mapped"]["name"]]["persistentVolumeClaim"] == {"claimName": "mapped"}


@pytest.mark.parametrize(
    ("mount", "expected"),
    [
        (Mount(uri="nfs://nas/other", path="/mnt/a"), "mount_not_allowed"),
        (Mount(uri="nfs://nas/export/../x", path="/mnt/a"), "mount_not_allowed"),
        (Mount(uri="pvc://team/../../x", path="/mnt/a"), "mount_not_allowed"),
        (Mount(uri="pvc://inst-xyz-checkpoints", path="/mnt/a"), "mount_not_allowed"),
        (Mount(uri="s3://bucket/a", path="/mnt/a"), "mount_elsewhere"),
        (Mount(uri=f"{HOST}/in", path="/mnt/a"), "bucket_not_writable"),
        (Mount(uri="hdfs://nn:9000/out", path="/mnt/a"), "bucket_not_writable"),
        (Mount(uri="hdfs://other:9000/out", path="/mnt/a"), "mount_elsewhere"),
        (Mount(uri="pvc://team", path="/etc/passwd"), "mount_over"),
        (Mount(uri="pvc://team", path="/proc"), "mount_over"),
        (Mount(id="unknown", path="/mnt/a"), "mount_unknown"),
    ],
)
def test_mount_that_the_cluster_can_not_give_is_refused(mount: Mount, expected: str) -> None:
    config = make_config(exports=("nas:/export",), hdfs={"hdfs://nn:9000": "http://nn:9870"})
    with pytest.raises(Refused) as refused:
        render(job(mounts=(mount,)), config, storage=BUCKET)
    assert why(refused) == expected


def test_archive_and_bucket_are_fetched_by_the_data_mover_with_orders_that_it_alone_sees() -> None:
    source = CodeSource(uri="https://bob:$SECRET:web@files.example/org/tool.tar.gz")
    sets = Mount(uri=f"{HOST}/in", path="/mnt/sets", read_only=True)
    spec = job(role(init_containers=(PodContainer(command=("true",)),)), code=source, mounts=(sets,))
    made = render(spec, storage=BUCKET, secrets={"web": "hunter"})
    made = made.with_signed({f"{HOST}/in": [["a", 1, 0.0, "https://signed.example/a?hunter"]]})
    assert "hunter" not in json.dumps([made.claim(), dict(made.variables), *made.owned, *made.parts])
    pod = pods_of(made)[0]["spec"]
    seeing = {
        each["name"]
        for each in pod["containers"] + pod["initContainers"]
        if any(mount["name"] == "transfers" for mount in each["volumeMounts"])
    }
    assert seeing == {"job-console-code", "job-console-data"}
    code, data = pod["initContainers"][:2]
    assert code["command"][-2:] == ["code", "/job/tool"]
    assert data["command"][-2:] == ["0", "/mnt/sets"]
    mounted = [
        next(mount for mount in each["volumeMounts"] if mount["mountPath"] == "/mnt/sets")
        for each in (data, pod["initContainers"][2], pod["containers"][0])
    ]
    assert [each["readOnly"] for each in mounted] == [False, True, True]
    volume = next(each for each in pod["volumes"] if each["name"] == "transfers")
    secret = made.secrets[0]
    keys = {each["key"] for each in volume["secret"]["items"]}
    assert keys == {f"transfer.{name}" for name in ("program", "code", "0", "signed")}
    assert keys <= secret["stringData"].keys() | secret["data"].keys()
    order = json.loads(secret["stringData"]["transfer.code"])
    assert (order["uri"], order["user"], order["password"]) == (
        "https://files.example/org/tool.tar.gz",
        "bob",
        "hunter",
    )


def test_bucket_with_more_addresses_than_a_secret_holds_is_refused() -> None:
    sets = Mount(uri=HOST, path="/mnt/sets", read_only=True)
    made = render(job(mounts=(sets,)), storage=BUCKET)
    rows = [[f"{number}", 1, 0.0, f"https://site/{os.urandom(32).hex()}"] for number in range(30_000)]
    with pytest.raises(Refused) as refused:
        made.with_signed({HOST: rows})
    assert refused.value.reason.params == {"why": "bucket_too_many", "place": HOST, "objects": 30_000}


def test_hdfs_is_fetched_where_the_settings_name_its_namenode() -> None:
    config = make_config(hdfs={"hdfs://nn:9000": "http://nn:9870"})
    mounts = (
        Mount(uri="hdfs://nn:9000/sets/$PAI_USER_NAME"),
        Mount(uri="hdfs://nn:9000/code/x", purpose=MountPurpose.CODE, read_only=True),
        Mount(uri="hdfs://nn:9000/out", purpose=MountPurpose.OUTPUT),
    )
    made = render(job(mounts=mounts), config)
    told = {name: made.variables[f"PAI_{name}_DIR"] for name in ("DATA", "CODE", "OUTPUT")}
    assert told == {"DATA": "/job/data", "CODE": "/job/x", "OUTPUT": "hdfs://nn:9000/out"}
    orders = {name: json.loads(made.secrets[0]["stringData"][f"transfer.{name}"]) for name in ("code", "0")}
    assert [(each["uri"], each["user"], each["endpoint"]) for each in orders.values()] == [
        ("hdfs://nn:9000/code/x", "alice", "http://nn:9870"),
        ("hdfs://nn:9000/sets/alice", "alice", "http://nn:9870"),
    ]


def test_code_outside_the_working_folder_has_a_volume_of_its_own() -> None:
    source = CodeSource(uri="https://git.example/a.git", path="/opt/src")
    pod = pods_of(render(job(code=source)))[0]["spec"]
    for each in (pod["initContainers"][0], pod["containers"][0]):
        assert "/opt/src" in {mount["mountPath"] for mount in each["volumeMounts"]}


def test_upload_is_split_into_config_maps_of_the_attempt(tmp_path: Path) -> None:
    content = tmp_path / "content"
    content.write_bytes(b"print(1)\n")
    digest = "0" * 64
    tree = Tree.of([Entry("main.py", Kind.FILE, digest, 9), Entry("run.sh", Kind.LINK, target="main.py")])
    supply = Supplied(9, tree, {digest: (str(content), 0)})
    spec = job(code=CodeSource(uri=f"upload://{'a' * 64}", path="/job/src"))
    objects = render(spec, uploads={"a" * 64: supply})
    assert [part["metadata"]["name"] for part in objects.parts] == ["inst-abc-1-code-0"]
    step = pods_of(objects)[0]["spec"]["initContainers"][0]
    assert {"name": "CODE_PATH", "value": "/job/src"} in step["env"]


def test_git_code_is_cloned_by_an_init_container_without_its_password() -> None:
    source = CodeSource(uri="https://bob:$SECRET:git@git.example/a.git", branch="dev", path="src")
    objects = render(
        job(code=source), make_config(git_image="registry.example/git:1"), secrets={"git": "hunter"}
    )
    step = pods_of(objects)[0]["spec"]["initContainers"][0]
    values = {each["name"]: each.get("value") for each in step["env"]}
    assert step["image"] == "registry.example/git:1"
    assert (values["CODE_URI"], values["CODE_USER"]) == ("https://git.example/a.git", "bob")
    assert (values["CODE_REF"], values["CODE_PATH"]) == ("dev", "/job/src")


def test_submodules_are_cloned_and_only_the_own_host_gets_the_login(tmp_path: Path) -> None:
    """The init container's script, with the address of a folder in place of a server's."""
    source = CodeSource(uri="https://bob:$SECRET:git@git.example:8443/a.git", submodules=True)
    made = render(job(code=source), secrets={"git": "hunter"})
    step = pods_of(made)[0]["spec"]["initContainers"][0]
    env = {each["name"]: each["value"].replace("$$", "$") for each in step["env"] if "value" in each}
    goods.repository(tmp_path / "inner")
    goods.repository(tmp_path / "outer")
    modules = '[submodule "lib"]\npath = lib\nurl = ../inner\n'
    (tmp_path / "outer" / ".gitmodules").write_text(modules)
    commit = goods.git(tmp_path / "inner", "rev-parse", "old")
    goods.git(tmp_path / "outer", "update-index", "--add", "--cacheinfo", f"160000,{commit},lib")
    goods.commit_all(tmp_path / "outer", "lib")
    (tmp_path / "tmp").mkdir()
    place = {
        "CODE_URI": f"file://{tmp_path}/outer",
        "CODE_PATH": str(tmp_path / "code"),
        "TMPDIR": str(tmp_path / "tmp"),
        "JOB_CONSOLE_GIT_PASSWORD": "hunter",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "protocol.file.allow",  # which is for this test: a server's is https
        "GIT_CONFIG_VALUE_0": "always",
        "PATH": os.environ["PATH"],
    }
    script = step["command"][-1].replace("$$", "$").replace("/dev/termination-log", str(tmp_path / "said"))
    subprocess.run(["sh", "-c", script], env={**env, **place}, check=True)
    assert (tmp_path / "code/lib/file").read_text() == "one\n"
    assert (tmp_path / "said").read_text().strip() == goods.git(tmp_path / "outer", "rev-parse", "HEAD")
    (written,) = (tmp_path / "tmp").glob("*/.gitconfig")
    settings = subprocess.run(
        ["git", "config", "--file", str(written), "--get-regexp", "^credential"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert settings.stdout.startswith("credential.https://git.example:8443.helper ")
    assert len(settings.stdout.splitlines()) == 1
    assert "hunter" not in written.read_text()


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (job(code=CodeSource(uri="ssh://git@git.example/a.git")), "code_elsewhere"),
        (job(code=CodeSource(uri="s3://other/tool.zip")), "code_elsewhere"),
        (job(code=CodeSource(uri="hdfs://other:9000/tool")), "code_not_allowed"),
        (job(code=CodeSource(uri="https://git.example/a.git", branch="--upload-pack=x")), "code_ref"),
        (job(code=CodeSource(uri="https://git.example/a.git", commit="$(id)")), "code_ref"),
        (job(role(resources=Resources(rdma=True))), "field"),
        (job(instance_role="default"), "role_without_network"),
    ],
)
def test_job_that_asks_for_what_the_cluster_lacks_is_refused(spec: JobSpec, expected: str) -> None:
    with pytest.raises(Refused) as refused:
        render(spec)
    assert why(refused) == expected


def test_role_without_an_image_needs_a_default_one() -> None:
    with pytest.raises(Refused) as refused:
        render(job(), make_config(image=""))
    assert why(refused) == "role_without_image"
    assert main_of(pods_of(render(job()))[0])["image"] == "registry.example/base:1"


def test_restricted_egress_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        render(job(), egress=())
    assert why(refused) == "egress_not_enforced"


def test_hostile_role_name_becomes_safe_names() -> None:
    objects = render(job(role(name="../Ω $(id)", replicas=1), role(name="-", replicas=1)))
    for pod in pods_of(objects):
        assert pod["metadata"]["name"].startswith("inst-abc-1-")
        assert pod["spec"]["hostname"].isascii()
        assert set(pod["spec"]["hostname"]) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert all(name.isascii() and "$" not in name and " " not in name for name in objects.variables)


def test_time_limit_grace_and_priority_are_the_pods() -> None:
    config = make_config(priority_classes={"9": "urgent"})
    pod = pods_of(render(job(time_limit_s=60, grace_s=5, priority=9), config))[0]["spec"]
    assert pod["activeDeadlineSeconds"] == 60
    assert pod["terminationGracePeriodSeconds"] == 5
    assert pod["priorityClassName"] == "urgent"
    assert pod["restartPolicy"] == "Never"


def test_two_hundred_replicas_fit_into_a_claim() -> None:
    objects = render(job(role(replicas=200), framework=Framework.TENSORFLOW))
    patch = objects.submission_patch("1")
    assert len(json.dumps(patch)) < 1_000_000
    assert len(pods_of(objects)) == 200


@pytest.mark.parametrize(
    ("field", "pointer"),
    [
        ("spec.containers[0].image", "/roles/1/image"),
        ("spec.containers[0].resources.limits[nvidia.com/gpu]", "/roles/1/resources/gpus"),
        ("spec.containers[0].resources.requests.memory", "/roles/1/resources/memory_mib"),
        ("spec.containers[0].resources.limits[cpu]", "/roles/1/resources/cpu_milli"),
        ("spec.containers[0].resources.requests", "/roles/1/resources"),
        ("spec.containers[0].env[4].name", "/env"),
        ("spec.volumes[2].hostPath", "/mounts"),
        ("spec.initContainers[1].image", "/roles/1/init_containers"),
        ("spec.affinity.nodeAffinity", "/roles/1/nodes"),
        ("spec.activeDeadlineSeconds", "/time_limit_s"),
        ("metadata.labels", ""),
    ],
)
def test_refused_field_of_a_pod_is_found_in_the_job(field: str, pointer: str) -> None:
    assert find_pointer(field, 1) == pointer


ALL_OPERATORS = Operators(frozenset(BY_NAME), "v1beta2")
MAY_FAIL = CompletionPolicy(min_failed=None)


@pytest.mark.parametrize(
    ("framework", "roles", "kind"),
    [
        (Framework.PYTORCH, (role(replicas=3),), "PyTorchJob"),
        (Framework.PYTORCH, (role(replicas=3), role(name="master")), "PyTorchJob"),
        (Framework.PYTORCH, (role(replicas=3, name="a"), role(name="b")), None),
        (Framework.PYTORCH, (role(name="a"), role(name="b"), role(name="c")), None),
        (Framework.PYTORCH, (role(replicas=3, completion=MAY_FAIL),), None),
        (Framework.PYTORCH, (role(sidecars=(PodContainer(command=("true",)),)),), None),
        (Framework.TENSORFLOW, (role(name="ps_server"), role(replicas=2, completion=MAY_FAIL)), "TFJob"),
        (Framework.XGBOOST, (role(name="master"), role(replicas=2)), "XGBoostJob"),
        (Framework.XGBOOST, (role(replicas=2),), None),
        (Framework.MPI, (role(name="launcher"), role(replicas=2)), None),
        (Framework.RAY, (role(name="head"),), None),
        (None, (role(),), None),
    ],
)
def test_job_goes_as_its_frameworks_kind_where_that_can_hold_it(
    framework: Framework | None, roles: tuple[RoleSpec, ...], kind: str | None
) -> None:
    chosen, _queue = choose_kind(job(*roles, framework=framework), make_config(), ALL_OPERATORS)
    assert (chosen and chosen.name) == kind
    assert choose_kind(job(*roles, framework=framework), make_config(), Operators()) == (None, "")


def test_object_of_a_kind_waits_in_the_queue_of_its_label_or_of_the_settings() -> None:
    label, spec = "kueue.x-k8s.io/queue-name", {"framework": Framework.PYTORCH}
    config = make_config(local_queue="site", priority_classes={"9": "high"})
    for tags, expected in (({}, "site"), ({label: "team"}, "team")):
        wanted = job(role(replicas=2), tags=tags, priority=9, time_limit_s=60, **spec)
        kind, queue = choose_kind(wanted, config, ALL_OPERATORS)
        made = attempt_objects.render(make(wanted), config, kind, queue).owned[-1]
        assert made["metadata"]["labels"][label] == expected
        assert made["spec"]["runPolicy"] == {
            "cleanPodPolicy": "None",
            "backoffLimit": 0,
            "activeDeadlineSeconds": 60,
            "schedulingPolicy": {"priorityClass": "high"},
            "suspend": True,
        }
    assert choose_kind(job(**spec), config, Operators(frozenset(BY_NAME)))[1] == ""


def test_templates_of_a_kind_have_what_the_pods_of_a_plain_job_have() -> None:
    """Secrets, the gate, restrictions and files: only names and what differs between replicas are others."""
    spec = job(
        role("train", replicas=2, init_containers=(PodContainer(command=("true",)),)),
        framework=Framework.PYTORCH,
        secret_env={"TOKEN": SecretRef(name="mine")},
        registry_auth=RegistryAuth(registry="r.example", username="u", password=SecretRef(name="mine")),
    )
    given = make(spec, secrets={"mine": "hunter"})
    plain = attempt_objects.render(given, make_config()).pods[0]
    made = attempt_objects.render(given, make_config(), BY_NAME["PyTorchJob"])
    worker = made.owned[-1]["spec"]["pytorchReplicaSpecs"]["Worker"]
    assert (worker["replicas"], worker["restartPolicy"]) == (2, "Never")
    template = worker["template"]["spec"]
    differing = {"containers", "hostname", "subdomain", "restartPolicy"}
    assert {key: value for key, value in plain["spec"].items() if key not in differing} == {
        key: value for key, value in template.items() if key != "containers"
    }
    before, after = plain["spec"]["containers"][0], template["containers"][0]
    differing = {"name", "env", "command", "ports"}
    assert after["name"] == "pytorch"
    assert {key: each for key, each in before.items() if key not in differing} == {
        key: each for key, each in after.items() if key not in differing
    }
    names = [{each["name"] for each in container["env"]} for container in (before, after)]
    assert names[0] - names[1] == {"PET_NODE_RANK", "PET_NPROC_PER_NODE", "PET_RDZV_CONF", "TF_CONFIG"}
    assert "hunter" not in json.dumps(list(made.owned))
    assert made.variables["MASTER_ADDR"] == "inst-abc-1-worker-0"

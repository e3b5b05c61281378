"""How Kubeflow manifests are understood, written and changed."""

from typing import Any

import pytest
import yaml

from jobs import dialects
from jobs.dialects.base import Problem, Refused
from jobs.dialects.document import Document
from jobs.spec import (
    CompletionPolicy,
    Framework,
    JobSpec,
    Mount,
    PodContainer,
    Resources,
    RestartCondition,
    RestartPolicy,
    RetryPolicy,
    RoleSpec,
)
from tests.jobs.dialects.sample_fields import samples

KUBEFLOW = dialects.get("kubeflow")
TEXT = """\
# Mine.
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: simple
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2   # as ever
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: pytorch
              image: torch
              command: [python, train.py]
              resources:
                limits: {cpu: 4, memory: 16Gi, nvidia.com/gpu: 1}
"""


def container(**more: Any) -> JobSpec:
    value = yaml.safe_load(TEXT)
    pod = value["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]
    pod["containers"][0] |= more
    return KUBEFLOW.parse(Document(yaml.safe_dump(value))).spec


def problems(text: str) -> list[Problem]:
    with pytest.raises(Refused) as caught:
        KUBEFLOW.parse(Document(text))
    return list(caught.value.problems)


def job(kind: str, roles: dict[str, int], **spec: Any) -> JobSpec:
    specs = {"PyTorchJob": "pytorch", "TFJob": "tf", "MPIJob": "mpi", "XGBoostJob": "xgb"}
    names = {"PyTorchJob": "pytorch", "TFJob": "tensorflow", "MPIJob": "mpi", "XGBoostJob": "xgboost"}
    pod = {"spec": {"containers": [{"name": names[kind], "image": "i", "command": ["x"]}]}}
    found = {role: {"replicas": count, "template": pod} for role, count in roles.items()}
    value = {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {"name": "a"},
        "spec": {f"{specs[kind]}ReplicaSpecs": found, **spec},
    }
    return KUBEFLOW.parse(Document(yaml.safe_dump(value))).spec


def test_kubeflow_pod_becomes_a_replica() -> None:
    spec = KUBEFLOW.parse(Document(TEXT)).spec
    assert spec == JobSpec(
        name="simple",
        framework=Framework.PYTORCH,
        roles=(
            RoleSpec(
                name="Worker",
                replicas=2,
                command="python train.py",
                image="torch",
                resources=Resources(cpu_milli=4000, memory_mib=16384, gpus=1),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("command", "args", "shell"),
    [
        (["python", "a b.py"], [], "python 'a b.py'"),
        (["torchrun"], ["--nodes=$(WORLD_SIZE)", "$(date)"], "torchrun --nodes=\"${WORLD_SIZE}\" '$(date)'"),
        (["sh", "-c", "echo $(hostname) $$HOME $(A)"], [], "echo $(hostname) $HOME ${A}"),
        (["/bin/bash", "-c"], ["one && two"], "one && two"),
        (["bash", "-c", "one", "two"], [], "bash -c one two"),
    ],
)
def test_container_command_words_become_shell_command(
    command: list[str], args: list[str], shell: str
) -> None:
    spec = container(command=command, args=args, env=[{"name": "A", "value": "1"}])
    assert spec.roles[0].command == shell


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"cpu": "500m"}, {"cpu_milli": 500}),
        ({"cpu": 1.5}, {"cpu_milli": 1500}),
        ({"cpu": "1e1"}, {"cpu_milli": 10_000}),
        ({"memory": "1536Mi"}, {"memory_mib": 1536}),
        ({"memory": 1073741824}, {"memory_mib": 1024}),
        ({"memory": "0.5Gi"}, {"memory_mib": 512}),
        ({"memory": "1Ti", "ephemeral-storage": "10Gi"}, {"memory_mib": 2**20, "disk_mib": 10_240}),
        ({"amd.com/gpu": "2", "rdma/hca_shared": 1}, {"gpus": 2, "rdma": True}),
    ],
)
def test_resource_quantities_are_converted(limits: dict[str, Any], expected: dict[str, Any]) -> None:
    has = container(resources={"limits": limits}).roles[0].resources
    assert {name: getattr(has, name) for name in expected} == expected


def test_resource_requests_count_where_limit_is_missing() -> None:
    has = (
        container(resources={"limits": {"cpu": 2}, "requests": {"cpu": 1, "memory": "2Gi"}})
        .roles[0]
        .resources
    )
    assert (has.cpu_milli, has.memory_mib) == (2000, 2048)


@pytest.mark.parametrize(
    ("kind", "roles", "more", "ends"),
    [
        ("PyTorchJob", {"Worker": 3}, {}, {"Worker": None}),
        ("PyTorchJob", {"Master": 1, "Worker": 3}, {}, {"Master": 1, "Worker": None}),
        ("TFJob", {"Worker": 3}, {}, {"Worker": 1}),
        ("TFJob", {"Worker": 3}, {"successPolicy": "AllWorkers"}, {"Worker": None}),
        ("TFJob", {"PS": 2, "Worker": 3}, {"successPolicy": "AllWorkers"}, {"PS": None, "Worker": 3}),
        ("TFJob", {"Chief": 1, "Worker": 3}, {}, {"Chief": 1, "Worker": None}),
        ("MPIJob", {"Launcher": 1, "Worker": 3}, {}, {"Launcher": 1, "Worker": None}),
        ("XGBoostJob", {"Master": 1, "Worker": 3}, {}, {"Master": 1, "Worker": None}),
    ],
)
def test_success_condition_follows_kind_and_roles(
    kind: str, roles: dict[str, int], more: dict[str, Any], ends: dict[str, int | None]
) -> None:
    found = {role.name: role.completion.min_succeeded for role in job(kind, roles, **more).roles}
    assert found == ends


def test_elastic_workers_go_on_with_minimum() -> None:
    spec = job("PyTorchJob", {"Worker": 4}, elasticPolicy={"minReplicas": 3, "maxReplicas": 8})
    (worker,) = spec.roles
    assert (worker.completion.min_failed, worker.replicas) == (2, 4)
    written = yaml.safe_load(dialects.get("kubeflow").render(spec, {}).text)
    assert written["spec"]["elasticPolicy"] == {"minReplicas": 3}
    (worker,) = job("PyTorchJob", {"Worker": 4}, elasticPolicy={"maxRestarts": 0}).roles
    assert worker.restart == RestartPolicy(limit=0)
    (alone,) = job("XGBoostJob", {"Master": 1}, elasticPolicy={"minReplicas": 1}).roles
    assert alone.completion.min_failed == 1


def test_dynamic_workers_may_fail() -> None:
    roles = job("TFJob", {"Chief": 1, "Worker": 3}, enableDynamicWorker=True).roles
    assert roles[1].completion == CompletionPolicy(min_failed=None)


@pytest.mark.parametrize(
    ("policy", "backoff", "retry"),
    [
        ("Never", None, RetryPolicy()),
        ("Never", 4, RetryPolicy()),
        ("OnFailure", 4, RetryPolicy(limit=4)),
        ("OnFailure", None, RetryPolicy(limit=None)),
        (None, None, RetryPolicy(limit=None)),
        ("Always", None, RetryPolicy(limit=None, on_success=True)),
    ],
)
def test_retry_follows_restart_policy_and_backoff_limit(
    policy: str | None, backoff: int | None, retry: RetryPolicy
) -> None:
    text = TEXT.replace(
        "restartPolicy: Never", f"restartPolicy: {policy}" if policy else "{}: {}".format("x", 1)
    )
    if backoff is not None:
        text = text.replace("spec:\n  py", f"spec:\n  runPolicy: {{backoffLimit: {backoff}}}\n  py")
    assert KUBEFLOW.parse(Document(text)).spec.retry == retry


def test_restart_policy_of_one_role_is_its_own() -> None:
    text = TEXT.replace("restartPolicy: Never", "restartPolicy: ExitCode")
    assert KUBEFLOW.parse(Document(text)).spec.roles[0].restart.condition is RestartCondition.EXIT_CODE
    value = yaml.safe_load(TEXT.replace("restartPolicy: Never", "restartPolicy: OnFailure"))
    specs = value["spec"]["pytorchReplicaSpecs"]
    (first,) = specs
    other = "Worker" if first == "Master" else "Master"
    specs[other] = {**specs[first], "replicas": 1, "restartPolicy": "Never"}
    spec = KUBEFLOW.parse(Document(yaml.safe_dump(value))).spec
    assert {role.name: role.restart.condition.value for role in spec.roles} == {
        first: "failure",
        other: "never",
    }
    written = yaml.safe_load(KUBEFLOW.render(spec, {}).text)["spec"]["pytorchReplicaSpecs"]
    assert {name: role["restartPolicy"] for name, role in written.items()} == {
        first: "OnFailure",
        other: "Never",
    }


def test_mpi_workers_have_their_own_command() -> None:
    text = samples("kubeflow")["mpi.yaml"]
    parsed = KUBEFLOW.parse(Document(text))
    assert [role.command for role in parsed.spec.roles] == [
        "mpirun -n 4 /home/mpiuser/pi",
        "/usr/sbin/sshd -De",
    ]
    assert "other_documents" in {note.code for note in parsed.notes}
    again = KUBEFLOW.render(parsed.spec, parsed.extras).text
    assert "sshd" not in again
    assert "kubeflow.org/v2beta1" in again


def test_pod_mounts_are_read() -> None:
    spec = KUBEFLOW.parse(Document(samples("kubeflow")["pytorch.yaml"])).spec
    assert spec.mounts == (
        Mount(uri="pvc://datasets/imagenet", path="/data", read_only=True),
        Mount(uri="/mnt/scratch", path="/scratch"),
        Mount(uri="nfs://files.example.com/export", path="/export"),
    )
    worker = spec.role("Worker")
    assert worker.resources.shm_mib == 64 * 1024
    assert worker.nodes.never == ("gpu-07",)
    assert worker.resources.gpu_type == "NVIDIA-A100-SXM4-80GB"
    assert (spec.quota, spec.hold, spec.grace_s, spec.time_limit_s) == ("gpu", True, 90, 86_400)


EMPTY = """apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: a}
spec:
  pytorchReplicaSpecs:
    Master:
      template:
        spec:
          containers:
            - name: pytorch
              command: [train]
              volumeMounts:
                - {name: scratch, mountPath: /scratch}
                - {name: fast, mountPath: /fast, readOnly: true}
                - {name: shared, mountPath: /one}
                - {name: shared, mountPath: /two}
                - {name: part, mountPath: /part, subPath: a}
                - {name: plain, mountPath: /dev/shm}
          volumes:
            - {name: scratch, emptyDir: {}}
            - {name: fast, emptyDir: {medium: Memory, sizeLimit: 2Gi}}
            - {name: shared, emptyDir: {}}
            - {name: part, emptyDir: {}}
            - {name: plain, emptyDir: {}}
"""


def test_empty_dir_is_carried_unless_shared_or_mounted_in_part() -> None:
    parsed = KUBEFLOW.parse(Document(EMPTY))
    assert parsed.spec.mounts == (
        Mount(uri="emptydir://", path="/scratch"),
        Mount(
            uri="emptydir://", path="/fast", read_only=True, options={"medium": "Memory", "sizeLimit": "2Gi"}
        ),
    )
    assert KUBEFLOW.render(parsed.spec, parsed.extras, base=Document(EMPTY)).text == EMPTY
    again = KUBEFLOW.parse(Document(KUBEFLOW.render(parsed.spec, {}).text))
    assert again.spec.mounts == parsed.spec.mounts


OTHERS = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: simple}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 1
      template:
        spec:
          initContainers:
            - name: log
              image: logs:1
              restartPolicy: Always
              volumeMounts: [{name: data, mountPath: /data}]
            - name: fetch
              image: train:1
              command: [sh, -c]
              args: ["fetch $FROM"]
              workingDir: /data
              env: [{name: FROM, value: there}, {name: KEY, valueFrom: {secretKeyRef: {name: s, key: k}}}]
              volumeMounts: [{name: data, mountPath: /data}]
              resources: {limits: {cpu: 1}}
              securityContext: {runAsUser: 0}
          containers:
            - name: pytorch
              image: train:1
              command: [train]
              volumeMounts: [{name: data, mountPath: /data}, {name: own, mountPath: /own}]
            - {name: metrics, image: metrics:1, args: [--all], volumeMounts: [{name: data, mountPath: /data}]}
          volumes:
            - {name: data, emptyDir: {}}
            - {name: own, emptyDir: {}}
"""


def test_init_containers_sidecars_and_shared_folders_are_those_of_the_role() -> None:
    parsed = KUBEFLOW.parse(Document(OTHERS))
    (role,) = parsed.spec.roles
    fetch = PodContainer(
        name="fetch",
        command=("sh", "-c"),
        args=("fetch $FROM",),
        working_dir="/data",
        env={"FROM": "there"},
    )
    assert role.init_containers == (fetch,)
    assert role.sidecars == (
        PodContainer(name="log", image="logs:1"),
        PodContainer(name="metrics", image="metrics:1", args=("--all",)),
    )
    assert role.shared_paths == ("/data",)
    assert parsed.spec.mounts == (Mount(uri="emptydir://", path="/own"),)
    at = "/spec/pytorchReplicaSpecs/Worker/template/spec/initContainers/1"
    told = {(note.code, note.pointer) for note in parsed.notes}
    assert {("value_of_cluster", f"{at}/env/1"), ("kept_unused", f"{at}/securityContext")} <= told
    assert ("kept_unused", f"{at}/resources/limits") in told, told
    assert KUBEFLOW.render(parsed.spec, parsed.extras, base=Document(OTHERS)).text == OTHERS
    for extras in (parsed.extras, {}):
        assert KUBEFLOW.parse(Document(KUBEFLOW.render(parsed.spec, extras).text)).spec.roles == (role,)


def test_manifest_parts_not_run_are_reported() -> None:
    parsed = KUBEFLOW.parse(Document(samples("kubeflow")["pytorch.yaml"]))
    told = {note.code for note in parsed.notes}
    assert {"value_of_cluster", "mounts_shared", "limit_taken", "kept_unused"} <= told
    kept = {str(note.params["key"]) for note in parsed.notes if note.code == "kept_unused"}
    assert {"tolerations", "imagePullSecrets", "namespace", "rdzvBackend"} <= kept


@pytest.mark.parametrize(
    ("before", "after", "code", "place", "cured"),
    [
        ("kind: PyTorchJob", "kind: PytorchJob", "not_a_choice", (3, 7), True),
        ("kubeflow.org/v1", "kubeflow.org/v1beta2", "not_a_choice", (2, 13), True),
        ("name: simple", "name: My_Job", "bad_label", (5, 9), True),
        ("name: simple", "labels: {}", "required", (5, 3), False),
        ("Worker:", "Server:", "not_a_role", (9, 7), False),
        ("replicas: 2", "replicas: two", "wrong_type", (9, 17), True),
        ("replicas: 2", "replicas: 0", "too_small", (9, 17), False),
        ("16Gi", "16 gigs", "not_an_amount", (18, 42), False),
        ("command: [python, train.py]", "args: [x]", "image_decides", (14, 15), False),
        ("image: torch", "volumeMounts: [{name: v, mountPath: /v}]", "no_such_volume", (14, 13), False),
        ("# Mine.", "kind: TFJob\n---", "yaml_documents", (1, 1), False),
    ],
)
def test_manifest_problem_has_place_source_and_possible_fix(
    before: str, after: str, code: str, place: tuple[int, int], cured: bool
) -> None:
    text = TEXT.replace(before, after, 1)
    found = [problem for problem in problems(text) if problem.code == code]
    assert [(each.line, each.column) for each in found] == [place]
    assert found[0].source
    assert (found[0].fix is not None) == cured
    if found[0].fix:
        assert KUBEFLOW.parse(Document(KUBEFLOW.apply_fixes(Document(text), [found[0].fix]))).spec.name


def test_job_without_roles_is_refused() -> None:
    bare = TEXT.partition("  pytorchReplicaSpecs")[0]
    assert [each.code for each in problems(f"{bare}  runPolicy: {{}}\n")] == ["required"]
    assert [each.code for each in problems(f"{bare}  pytorchReplicaSpecs: {{}}\n")] == ["required"]


def test_mpi_job_without_launcher_is_reported() -> None:
    text = KUBEFLOW.render(job("MPIJob", {"Worker": 2}), {}).text
    lacking = [
        note.params["lacking"]
        for note in KUBEFLOW.parse(Document(text)).notes
        if note.code == "condition_unmet"
    ]
    assert lacking == ["Launcher"]


def test_changed_value_changes_only_its_line() -> None:
    parsed = KUBEFLOW.parse(Document(TEXT))
    role = parsed.spec.roles[0].model_copy(update={"replicas": 4})
    wanted = parsed.spec.model_copy(update={"name": "other", "roles": (role,)})
    after = KUBEFLOW.render(wanted, parsed.extras, base=Document(TEXT)).text
    assert after == TEXT.replace("replicas: 2 ", "replicas: 4 ").replace("name: simple", "name: other")


def test_foreign_names_and_roles_are_adapted() -> None:
    roles = (
        RoleSpec(name="ps_server", replicas=2, command="ps", image="i"),
        RoleSpec(name="worker", replicas=2, command="w", image="i"),
        RoleSpec(name="tensorboard", command="t", image="i"),
    )
    rendered = KUBEFLOW.render(JobSpec(name="MNIST on_GPUs", roles=roles), {})
    said = KUBEFLOW.parse(Document(rendered.text)).spec
    assert said.name == "mnist-on-gpus"
    assert [(role.name, role.command) for role in said.roles] == [
        ("PS", "ps"),
        ("Worker", "w"),
        ("Chief", "t"),
    ]
    assert {note.pointer for note in rendered.notes} >= {"/name", "/framework", "/roles/0/name"}


def test_manifest_is_recognised_by_its_kind() -> None:
    assert Document(TEXT).candidates[0].why == "kind"
    assert Document(TEXT.replace("kind: PyTorchJob", "kind: JAXJob")).candidates[0].why == "api_group"
    assert Document(TEXT + "\t- [").candidates[0].why == "keys_seen"
    assert KUBEFLOW.sniff(Document("apiVersion: v1\nkind: Pod\n")) is None


def test_container_without_name_is_refused() -> None:
    (found,) = problems(TEXT.replace("- name: pytorch\n              image", "- image"))
    assert (found.code, found.params["key"]) == ("required", "name")
    assert found.pointer.endswith("/containers/0/name")

"""What a job finds in its environment, as a pure function of the plan, and then from inside."""

import json
import subprocess
from dataclasses import replace
from hashlib import md5
from typing import Any

import pytest

from jobs.backends.base import Person
from jobs.node.frameworks import mpi
from jobs.node.supervisor import layout, plan
from jobs.node.wrapper import environment
from jobs.node.wrapper.environment import ReplicaPaths
from jobs.spec import CompletionPolicy, Mount, MountPurpose, Port, Resources, SecretRef
from jobs.states import State
from tests.jobs.backends.benches import LocalBench, log_of, role, wait_until_over

HOUSE = plan.MachineSettings("node-1", "10.0.0.5", "none", (), (), "/bin", "auto", 100)
ROOM = ReplicaPaths("/job", "/tmp")


def a_role(name: str, *slots: plan.Slot, **more: Any) -> plan.Role:
    values = {
        "command": "true",
        "image": "",
        "cpu_milli": 1500,
        "memory_mib": 2048,
        "shm_mib": 64,
        "gpus": 0,
        "env": {},
        "completion": plan.Counts(1, None),
        "labels": (),
    }
    return plan.Role(name=name, slots=slots, **{**values, **more})


def a_slot(http: int, *gpus: int, **more: tuple[int, ...]) -> plan.Slot:
    return plan.Slot(gpus, {**more, "http": (http,), "ssh": (http + 1,)})


def a_plan(*roles: plan.Role, **more: Any) -> plan.Plan:
    values: dict[str, Any] = {
        "key": "inst-abc-1",
        "job": "abc",
        "attempt": 1,
        "name": "mnist",
        "user": "alice",
        "uid": 200_007,
        "gid": 200_007,
        "virtual_cluster": "vc1",
        "framework": None,
        "created_at": 1.0,
        "boot": "b",
        "env": {},
        "locations": {"data": "hdfs://data"},
        "time_limit_s": None,
        "warned": None,
        "grace_s": 30,
        "keep_failed_s": 0,
    }
    return plan.Plan(**{**values, "house": HOUSE, "roles": roles, **more})


PS = a_role("ps", a_slot(1000), a_slot(1010))
WORKER = a_role(
    "worker",
    a_slot(2000, 0, 1, board=(5000, 5001)),
    a_slot(2010, 2, 3, board=(5010, 5011)),
    gpus=2,
    labels=("board",),
    completion=plan.Counts(None, 2),
)


def env_of(made: plan.Plan, which: int) -> dict[str, str]:
    return environment.build(made, made.replicas()[which], environment.peers(made), ROOM, {})


def test_environment_has_openpai_job_and_role_variables() -> None:
    env = env_of(a_plan(PS, WORKER), 0)
    expected = {
        "PAI_JOB_NAME": "mnist",
        "PAI_USER_NAME": "alice",
        "PAI_USERNAME": "alice",
        "PAI_DEFAULT_FS_URI": "",
        "PAI_DATA_DIR": "hdfs://data",
        "PAI_OUTPUT_DIR": "",
        "PAI_CODE_DIR": "",
        "PAI_TASK_ROLE_COUNT": "2",
        "PAI_TASK_ROLE_LIST": "ps,worker",
        "PAI_TASKS_NUM": "4",
        "PAI_JOB_TASK_COUNT": "4",
        "PAI_TASK_ROLES_NUM": "2",
        "PAI_JOB_TASK_ROLE_COUNT": "2",
        "PAI_JOB_TASK_ROLE_LIST": "ps,worker",
        "PAI_TASK_ROLE_TASK_COUNT_ps": "2",
        "PAI_TASK_ROLE_TASK_COUNT_worker": "2",
        "PAI_HOST_IP_ps_1": "10.0.0.5",
        "PAI_PORT_LIST_worker_1_board": "5010,5011",
        "PAI_worker_1_board_PORT": "5010,5011",
        "PAI_PORT_LIST_ps_0_http": "1000",
        "PAI_TASK_ROLE_ps_HOST_LIST": "10.0.0.5:1000,10.0.0.5:1010",
        "PAI_RESOURCE_ps": "0,1.5,2048,64",
        "PAI_RESOURCE_worker": "2,1.5,2048,64",
        "PAI_MIN_FAILED_TASK_COUNT_ps": "1",
        "PAI_MIN_FAILED_TASK_COUNT_worker": "",
        "PAI_MIN_SUCCEEDED_TASK_COUNT_ps": "",
        "PAI_MIN_SUCCEEDED_TASK_COUNT_worker": "2",
        "PAI_VIRTUAL_CLUSTER": "vc1",
        "PAI_TASK_ROLE_INSTANCES": "ps:0,ps:1,worker:0,worker:1",
    }
    assert {name: env.get(name) for name in expected} == expected


def test_environment_has_openpai_task_variables() -> None:
    env = env_of(a_plan(PS, WORKER), 3)
    expected = {
        "PAI_CURRENT_TASK_ROLE_NAME": "worker",
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "1",
        "PAI_TASK_INDEX": "1",
        "PAI_TASK_ROLE_INDEX": "1",
        "PAI_TASK_ROLE_NAME": "worker",
        "PAI_TASK_ROLE_NUM": "2",
        "PAI_CURRENT_TASK_ROLE_TASK_COUNT": "2",
        "PAI_CURRENT_TASK_ROLE_CPU_COUNT": "1.5",
        "PAI_CURRENT_TASK_ROLE_GPU_COUNT": "2",
        "PAI_CURRENT_TASK_ROLE_MEM_MB": "2048",
        "PAI_CURRENT_TASK_ROLE_SHM_MB": "64",
        "PAI_CURRENT_TASK_ROLE_MIN_FAILED_TASK_COUNT": "",
        "PAI_CURRENT_TASK_ROLE_MIN_SUCCEEDED_TASK_COUNT": "2",
        "PAI_TASK_CPU_NUM": "1.5",
        "PAI_TASK_GPU_NUM": "2",
        "PAI_TASK_MEM_MB": "2048",
        "PAI_RESOURCE": "2,1.5,2048,64",
        "PAI_CONTAINER_ID": "inst-abc-1-worker-1",
        "PAI_CONTAINER_HOST_IP": "10.0.0.5",
        "PAI_CURRENT_CONTAINER_IP": "10.0.0.5",
        "PAI_CONTAINER_HOST_board_PORT_LIST": "5010,5011",
        "PAI_CONTAINER_HOST_http_PORT_LIST": "2010",
        "PAI_CONTAINER_HOST_PORT_LIST": "board:5010,5011;http:2010;ssh:2011;",
        "PAI_CONTAINER_HOST_PORT": "2010",
        "PAI_CURRENT_CONTAINER_PORT": "2010",
        "PAI_CONTAINER_SSH_PORT": "2011",
        "PAI_WORK_DIR": "/job",
        "APP_ID": "inst-abc-1",
        "FRAMEWORK_NAME": "alice~mnist",
        "HADOOP_USER_NAME": "alice",
        "NVIDIA_VISIBLE_DEVICES": "2,3",
        "CUDA_VISIBLE_DEVICES": "2,3",
    }
    assert {name: env.get(name) for name in expected} == expected


def test_environment_has_dlc_and_aihc_variables() -> None:
    made = a_plan(a_role("worker", a_slot(1), a_slot(11), gpus=4), a_role("master", a_slot(21)))
    envs = [env_of(made, which) for which in range(3)]
    assert [env["RANK"] for env in envs] == ["1", "2", "0"]
    for env in envs:
        assert env["WORLD_SIZE"] == "3"
        assert env["MASTER_ADDR"] == "10.0.0.5"
        assert env["MASTER_PORT"] == "21"
        assert env["JOB_NAME"] == "abc"
        assert env["AIHC_JOB_NAME"] == "mnist"
    assert [env["NPROC_PER_NODE"] for env in envs] == ["4", "4", "1"]


def test_environment_sets_tf_config_only_for_tensorflow_roles() -> None:
    config = json.loads(env_of(a_plan(PS, WORKER), 3)["TF_CONFIG"])
    assert config == {
        "cluster": {"ps": ["10.0.0.5:1000", "10.0.0.5:1010"], "worker": ["10.0.0.5:2000", "10.0.0.5:2010"]},
        "task": {"type": "worker", "index": 1},
        "environment": "cloud",
    }
    assert "TF_CONFIG" not in env_of(a_plan(a_role("task_1", a_slot(1))), 0)
    assert "TF_CONFIG" in env_of(a_plan(a_role("worker", a_slot(1)), framework="tensorflow"), 0)


def test_environment_lists_no_evaluator_in_tensorflow_cluster() -> None:
    made = a_plan(*(a_role(name, a_slot(1)) for name in ("Chief", "Worker", "Evaluator")))
    configs = [json.loads(env_of(made, which)["TF_CONFIG"]) for which in range(3)]
    assert all(set(config["cluster"]) == {"chief", "worker"} for config in configs)
    assert configs[2]["task"] == {"type": "evaluator", "index": 0}


def test_environment_of_pytorch_spans_replicas_and_knows_minimum() -> None:
    roles = a_role("worker", a_slot(1), a_slot(11), gpus=4), a_role("master", a_slot(21))
    envs = [env_of(a_plan(*roles, framework="pytorch"), which) for which in range(3)]
    assert [env["PET_NODE_RANK"] for env in envs] == ["1", "2", "0"]
    assert [env["PET_RDZV_CONF"] for env in envs] == ["is_host=0", "is_host=0", "is_host=1"]
    assert [env["PET_NPROC_PER_NODE"] for env in envs] == ["4", "4", "1"]
    assert {(env["PET_NNODES"], env["PET_MASTER_ADDR"], env["PET_MASTER_PORT"]) for env in envs} == {
        ("3", "10.0.0.5", "21")
    }
    elastic = a_role("worker", a_slot(1), a_slot(11), a_slot(21), completion=plan.Counts(2, None))
    env = env_of(a_plan(elastic, framework="elasticbatch", env={"NPROC_PER_NODE": "2"}), 0)
    expected = {
        "PET_NNODES": "2:3",
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ENDPOINT": "10.0.0.5:1",
        "PET_RDZV_ID": "abc",
        "PET_NPROC_PER_NODE": "2",
    }
    assert {name: env.get(name) for name in expected} == expected
    assert "PET_MASTER_ADDR" not in env
    limited = replace(elastic, restarts=0)
    restarts = [
        env_of(a_plan(each, framework="elasticbatch"), 0)["PET_MAX_RESTARTS"] for each in (elastic, limited)
    ]
    assert restarts == ["3", "0"]
    odd = env_of(a_plan(elastic, framework="pytorch", env={"NPROC_PER_NODE": "$(id)"}), 0)
    assert odd["PET_NPROC_PER_NODE"] == "1"


def test_environment_of_xgboost_names_tracker() -> None:
    made = a_plan(a_role("worker", a_slot(1)), a_role("master", a_slot(21)), framework="xgboost")
    env = env_of(made, 0)
    expected = {
        "DMLC_TRACKER_URI": "10.0.0.5",
        "DMLC_TRACKER_PORT": "22",
        "DMLC_NUM_WORKER": "2",
        "DMLC_TASK_ID": "1",
        "DMLC_ROLE": "worker",
    }
    assert {name: env.get(name) for name in expected} == expected


def test_environment_of_mpi_lists_hosts_by_rank() -> None:
    worker = a_role("worker", a_slot(1), a_slot(11), gpus=2)
    hosts = env_of(a_plan(worker, a_role("Launcher", a_slot(21)), framework="mpi"), 2)[mpi.HOSTS]
    assert hosts == "launcher-0=10.0.0.5:22:0,worker-0=10.0.0.5:2:2,worker-1=10.0.0.5:12:2"
    assert env_of(a_plan(worker, framework="mpi"), 1)[mpi.HOSTS].startswith("worker-0=10.0.0.5:2:2,")


def test_environment_prefers_job_file_except_for_gpus() -> None:
    own = {"RANK": "9", "PAI_JOB_NAME": "mine", "CUDA_VISIBLE_DEVICES": "0,1,2,3,4", "ONE": "role"}
    made = a_plan(a_role("w", a_slot(1, 3), env=own), env={"ONE": "job", "TWO": "job"})
    env = env_of(made, 0)
    assert (env["RANK"], env["PAI_JOB_NAME"], env["ONE"], env["TWO"]) == ("9", "mine", "role", "job")
    assert env["CUDA_VISIBLE_DEVICES"] == "3"


def test_environment_without_gpus_shows_none() -> None:
    env = env_of(a_plan(PS), 0)
    assert (env["CUDA_VISIBLE_DEVICES"], env["NVIDIA_VISIBLE_DEVICES"]) == ("", "void")


def test_environment_of_large_job_moves_peers_to_file() -> None:
    small = environment.peers(a_plan(PS, WORKER))
    assert environment.split_by_size(small) == (small, {})
    slots = [a_slot(20_000 + 4 * index, board=(7, 8), log=(9,)) for index in range(2000)]
    large = a_plan(a_role("worker", *slots), a_role("ps", a_slot(1)))
    kept, rest = environment.split_by_size(environment.peers(large))
    env = environment.build(
        large, large.replicas()[0], kept, ReplicaPaths("/job", "/tmp", "/job-console/peers.env"), {}
    )
    assert sum(len(name) + len(value) + 2 for name, value in env.items()) < 1 << 20
    assert max(map(len, env.values())) < 128 * 1024
    assert rest["PAI_HOST_IP_worker_1999"] == "10.0.0.5"
    for first in ("PAI_HOST_IP_worker_0", "PAI_HOST_IP_ps_0", "PAI_TASK_ROLE_TASK_COUNT_ps"):
        assert first in env
        assert first not in rest
    assert env[environment.PEERS_FILE] == "/job-console/peers.env"


@pytest.mark.parametrize("value", ["plain", "it's", "two\nlines", '$HOME "x" \\'])
def test_peers_file_gives_shell_the_same_values(value: str) -> None:
    text = environment.as_shell({"ONE": value, "un.pronounceable": "x"})
    script = f'{text}printf %s "$ONE"'
    assert subprocess.run(["/bin/sh", "-c", script], capture_output=True, check=True).stdout.decode() == value


def test_environment_inside_job_has_its_values_and_none_of_console(
    local: LocalBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONSOLE_DATABASE_PASSWORD", "of the console")
    submission = local.submission(
        role(
            "env -0",
            resources=Resources(cpu_milli=500, memory_mib=64, shm_mib=32),
            ports=(Port(label="board", count=2),),
            env={"LINES": "one\ntwo", "GREETING": "$HOME 'quoted'"},
        ),
        secret_env={"TOKEN": SecretRef(name="wandb")},
        secrets={"wandb": "s3cret"},
        endpoint_token="of-the-link",
        mounts=(Mount(purpose=MountPurpose.OUTPUT, uri="hdfs://out"),),
        person=Person("alice", 7),
    )
    handle = local.backend.submit(submission)
    seen = wait_until_over(local.backend, handle)
    env = dict(line.split("=", 1) for line in log_of(local.backend, handle).split("\0") if line)
    assert env["LINES"] == "one\ntwo"
    assert env["GREETING"] == "$HOME 'quoted'"
    assert env["TOKEN"] == "s3cret"
    assert env["JOB_CONSOLE_ENDPOINT_TOKEN"] == "of-the-link"
    assert env["PAI_OUTPUT_DIR"] == "hdfs://out"
    assert env["HOME"] == env["PWD"] == env["PAI_WORK_DIR"]
    told = [int(port) for port in env["PAI_CONTAINER_HOST_board_PORT_LIST"].split(",")]
    assert [(one.label, one.port) for one in seen.replicas[0].endpoints] == [("board", port) for port in told]
    assert not [name for name in env if name.startswith("CONSOLE")]
    assert "of the console" not in env.values()


def test_secrets_are_in_no_argument_list_and_gone_after_end(local: LocalBench) -> None:
    submission = local.submission(
        role("tr '\\0' ' ' < /proc/1/cmdline; tr '\\0' ' ' < /proc/self/cmdline; echo $TOKEN | md5sum"),
        secret_env={"TOKEN": SecretRef(name="wandb")},
        secrets={"wandb": "s3cret"},
    )
    handle = local.backend.submit(submission)
    wait_until_over(local.backend, handle)
    attempt = local.attempt(handle)
    for path in attempt.rglob("*"):
        assert not path.is_file() or b"s3cret" not in path.read_bytes(), path


def test_place_with_password_is_given_whole_and_stored_nowhere(local: LocalBench) -> None:
    handle = local.backend.submit(
        local.submission(
            role('printf %s "$PAI_DATA_DIR" | md5sum | cut -c -32'),
            mounts=(Mount(uri="s3://me:$SECRET:dataDir@host/data"),),
            secrets={"dataDir": "s3cret"},
        )
    )
    wait_until_over(local.backend, handle)
    assert log_of(local.backend, handle).strip() == md5(b"s3://me:s3cret@host/data").hexdigest()
    for path in local.attempt(handle).rglob("*"):
        assert not path.is_file() or b"s3cret" not in path.read_bytes(), path


def test_peers_file_lets_many_replicas_find_each_other(local: LocalBench) -> None:
    """Only the first of them does anything: it asks for the last."""
    command = """
    [ "$PAI_TASK_INDEX" = 0 ] || exit 0
    . "$JOB_CONSOLE_PEERS_FILE"; eval echo "\\$PAI_HOST_IP_worker_199" "\\$PAI_PORT_LIST_worker_199_http"
    """
    small = Resources(cpu_milli=10, memory_mib=16)
    many = tuple(Port(label=f"a-rather-long-label-number-{number}") for number in range(25))
    spec = role(
        command, replicas=200, resources=small, ports=many, completion=CompletionPolicy(min_failed=None)
    )
    handle = local.backend.submit(local.submission(spec))
    seen = wait_until_over(local.backend, handle, timeout=90)
    assert seen.state is State.SUCCEEDED
    host, port = log_of(local.backend, handle).split()
    plan_of = plan.Plan.load(json.loads((local.attempt(handle) / layout.PLAN).read_text()))
    assert host == plan_of.address(199)
    assert port.isdigit()

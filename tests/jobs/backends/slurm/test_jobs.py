"""Real jobs on a real Slurm, looked at from inside."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from jobs import dialects
from jobs.backends.base import Gone, Handle, NotSubmitted, Observation, Refused, Unknown, Unreachable
from jobs.backends.remote import attempts
from jobs.backends.slurm.backend import SlurmBackend
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.handles import SlurmJob
from jobs.backends.slurm.status import recovery
from jobs.spec import (
    CompletionPolicy,
    EndSignal,
    Framework,
    NodeChoice,
    Port,
    Resources,
    SecretRef,
)
from jobs.states import Phase, ReasonCode, ReplicaState, State
from tests.jobs.backends.benches import SMALL, log_of, replica, role, wait_until_over
from tests.jobs.backends.slurm_bench import Releasing, SlurmBench
from tests.waiting import wait_for

ONE_GPU = Resources(cpu_milli=1000, memory_mib=64, gpus=1, gpu_type="a100")


def run(bench: SlurmBench, *roles: object, **spec: object) -> tuple[Handle, Observation]:
    handle = bench.backend.submit(bench.submission(*roles, **spec))  # type: ignore[arg-type]
    return handle, wait_until_over(bench.backend, handle, timeout=120)


def looked(backend: SlurmBackend, handle: Handle) -> Observation:
    seen = backend.observe([handle])[handle]
    assert isinstance(seen, Observation)
    return seen


def test_roles_receive_their_ranks_peers_and_gpus(on_slurm: SlurmBench) -> None:
    told = 'echo "$RANK/$WORLD_SIZE $PAI_TASK_INDEX gpus=$CUDA_VISIBLE_DEVICES $SLURMD_NODENAME $TF_CONFIG"'
    handle, seen = run(
        on_slurm,
        role(told, name="PS", replicas=2),
        role(told, name="Chief"),
        role(told, name="Worker", replicas=2, resources=ONE_GPU),
    )
    assert seen.state is State.SUCCEEDED, log_of(on_slurm.backend, handle, "PS")
    ranks = {
        (name, index): log_of(on_slurm.backend, handle, name, index).split(" ")[:4]
        for name, count in (("PS", 2), ("Chief", 1), ("Worker", 2))
        for index in range(count)
    }
    assert {where: said[0] for where, said in ranks.items()} == {
        ("Chief", 0): "0/5",
        ("PS", 0): "1/5",
        ("PS", 1): "2/5",
        ("Worker", 0): "3/5",
        ("Worker", 1): "4/5",
    }
    assert {said[2] for where, said in ranks.items() if where[0] != "Worker"} == {"gpus="}
    assert sorted(said[2] for where, said in ranks.items() if where[0] == "Worker") == ["gpus=0", "gpus=1"]
    assert replica(seen, "Worker").node == ranks["Worker", 0][3] == "gpu1"
    config = log_of(on_slurm.backend, handle, "PS", 1)
    assert '"task": {"type": "ps", "index": 1}' in config


def test_variables_and_secrets_arrive_unchanged(on_slurm: SlurmBench) -> None:
    odd = "a 'quoted' $HOME `id` \"word\"\nand a line"
    command = 'printf "%s|" "$ODD" "$PASS" "$MASTER_ADDR" "$JOB_NAME"; env | grep -c CONSOLE_HOME; exit 0'
    handle, seen = run(
        on_slurm,
        role(command),
        env={"ODD": odd},
        secret_env={"PASS": SecretRef(name="s")},
        secrets={"s": odd},
    )
    assert seen.state is State.SUCCEEDED
    job_id = handle.split("-")[1]
    assert log_of(on_slurm.backend, handle) == f"{odd}|{odd}|127.0.0.1|{job_id}|0\n"
    folder = on_slurm.attempt(handle)
    assert not (folder / "secrets").exists(), "it is gone with the end"


def test_requested_port_is_passed_to_job_and_reported(on_slurm: SlurmBench) -> None:
    command = "echo $PAI_CONTAINER_HOST_tensorboard_PORT_LIST; sleep 60"
    handle = on_slurm.backend.submit(on_slurm.submission(role(command, ports=(Port(label="tensorboard"),))))
    port = wait_for(lambda: log_of(on_slurm.backend, handle)).strip()
    seen = on_slurm.backend.observe([handle])[handle]
    assert isinstance(seen, Observation)
    (endpoint,) = replica(seen).endpoints
    assert (endpoint.label, endpoint.host, str(endpoint.port)) == ("tensorboard", "127.0.0.1", port)
    on_slurm.backend.stop(handle, grace_s=0, signal="KILL")
    assert wait_until_over(on_slurm.backend, handle).state is State.STOPPED


def test_first_failed_replica_ends_others(on_slurm: SlurmBench) -> None:
    command = "[ $PAI_TASK_INDEX = 1 ] && exit 4; trap 'exit 0' TERM; sleep 60 & wait"
    _handle, seen = run(on_slurm, role(command, replicas=3))
    assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.EXIT_CODE)
    assert seen.reason.params == {"role": "worker", "index": 1, "exit_code": 4}
    assert [one.state for one in seen.replicas] == [
        ReplicaState.STOPPED,
        ReplicaState.FAILED,
        ReplicaState.STOPPED,
    ]


def test_chief_success_ends_servers_and_tolerates_failures(on_slurm: SlurmBench) -> None:
    _handle, seen = run(
        on_slurm,
        role("sleep 60", name="ps", completion=CompletionPolicy(min_failed=None)),
        role("sleep 1", name="chief", completion=CompletionPolicy(min_succeeded=1)),
        role("exit 7", name="worker", completion=CompletionPolicy(min_failed=None)),
    )
    assert (seen.state, seen.reason.code) == (State.SUCCEEDED, ReasonCode.COMPLETED_WITH_FAILURES)
    assert seen.reason.params == {"failed": 1, "total": 3}
    assert replica(seen, "ps").state is ReplicaState.STOPPED


def test_killed_replica_reports_signal(on_slurm: SlurmBench) -> None:
    _handle, seen = run(on_slurm, role("kill -9 $$"))
    assert (seen.reason.code, replica(seen).signal) == (ReasonCode.SIGNALLED, 9)


def test_time_limit_and_warning_signal_are_passed_to_slurm(on_slurm: SlurmBench) -> None:
    submission = on_slurm.submission(
        role("sleep 1"),
        time_limit_s=7200,
        end_signal=EndSignal(signal="USR1", seconds_before=60),
        not_before="2090-01-01T00:00:00Z",
    )
    handle = on_slurm.backend.submit(submission)
    told = on_slurm.slurm.call("scontrol", "show", "job", str(SlurmJob.of(handle).number))
    assert "TimeLimit=02:00:00" in told
    assert f"JobName={submission.key}" in told
    wait_until_over(on_slurm.backend, handle)


def test_job_runs_on_requested_nodes_partitions_and_features(on_slurm: SlurmBench) -> None:
    only = role("echo $SLURMD_NODENAME", nodes=NodeChoice(only=("cpu2",)))
    handle, seen = run(on_slurm, only)
    assert (log_of(on_slurm.backend, handle), replica(seen).node) == ("cpu2\n", "cpu2")
    never = role("echo $SLURMD_NODENAME", nodes=NodeChoice(never=("cpu1", "cpu2", "gpu2")))
    handle, _seen = run(on_slurm, never)
    assert log_of(on_slurm.backend, handle) == "gpu1\n"
    submission = replace(on_slurm.submission(role("echo $SLURM_JOB_PARTITION")), virtual_cluster="gpus")
    handle = on_slurm.backend.submit(submission)
    wait_until_over(on_slurm.backend, handle)
    assert log_of(on_slurm.backend, handle) == "gpu\n"


def test_roles_run_on_any_allowed_node_and_avoid_excluded_nodes(on_slurm: SlurmBench) -> None:
    told = "echo $SLURMD_NODENAME"
    handle, _seen = run(on_slurm, role(told, nodes=NodeChoice(only=("cpu2", "gpu2"), never=("cpu2",))))
    assert log_of(on_slurm.backend, handle) == "gpu2\n"
    handle, _seen = run(
        on_slurm,
        role(told, name="a", nodes=NodeChoice(never=("cpu1", "gpu1", "gpu2"))),
        role(told, name="b", nodes=NodeChoice(never=("cpu1", "cpu2", "gpu1"))),
    )
    assert [log_of(on_slurm.backend, handle, name) for name in ("a", "b")] == ["cpu2\n", "gpu2\n"]


def test_time_limit_ends_job_after_warning_signal(on_slurm: SlurmBench) -> None:
    command = "trap 'echo warned' USR1; trap 'echo told; exit 0' TERM; echo up; while :; do sleep 0.1; done"
    handle, seen = run(
        on_slurm, role(command), time_limit_s=9, end_signal=EndSignal(signal="USR1", seconds_before=2)
    )
    assert (seen.state, seen.reason.code) == (State.STOPPED, ReasonCode.TIME_LIMIT)
    assert seen.reason.params == {"limit_s": 9}
    said = log_of(on_slurm.backend, handle).splitlines()
    assert [line for line in said if line in ("up", "warned", "told")] == ["up", "warned", "told"]


def test_job_runs_on_node_with_requested_feature(on_slurm: SlurmBench) -> None:
    handle, _seen = run(on_slurm, role("echo $SLURMD_NODENAME", nodes=NodeChoice(labels={"slow": "true"})))
    assert log_of(on_slurm.backend, handle) == "cpu2\n"


def test_replica_receives_exactly_requested_resources(on_slurm: SlurmBench) -> None:
    size = Resources(cpu_milli=1500, memory_mib=300, gpus=2, gpu_type="titan", rdma=True)
    told = (
        "echo $SLURM_CPUS_PER_TASK $SLURM_MEM_PER_NODE $SLURM_MEM_PER_CPU $CUDA_VISIBLE_DEVICES "
        "$SLURM_CPU_BIND_TYPE $NCCL_IB_DISABLE"
    )
    handle, seen = run(on_slurm, role(told, resources=size, replicas=2), cpu_affinity=True)
    assert [log_of(on_slurm.backend, handle, index=index) for index in (0, 1)] == [
        "2 150 0,1 cores 0\n",
        "2 150 2,3 cores 0\n",
    ]
    assert {one.node for one in seen.replicas} == {"gpu2"}


def test_failed_replica_folder_is_retained(on_slurm: SlurmBench) -> None:
    handle, _seen = run(on_slurm, role("echo kept >left; exit 1"), keep_failed_s=60)
    assert (on_slurm.attempt(handle) / "run-1" / "work" / "worker-0" / "left").read_text() == "kept\n"


def test_slurm_script_runs_once_and_reaches_its_nodes(on_slurm: SlurmBench) -> None:
    one = role("echo once; srun --ntasks=2 bash -c 'echo from $SLURMD_NODENAME'", name="main", replicas=2)
    handle, seen = run(on_slurm, one, framework=Framework.SLURM)
    assert seen.state is State.SUCCEEDED
    assert sorted(log_of(on_slurm.backend, handle, "main").split("\n")) == [
        "",
        "from cpu1",
        "from cpu2",
        "once",
    ]


def test_job_cancelled_in_slurm_is_stopped_when_running_or_waiting(on_slurm: SlurmBench) -> None:
    running = on_slurm.backend.submit(on_slurm.submission(role("echo up; sleep 60")))
    wait_for(lambda: log_of(on_slurm.backend, running))
    on_slurm.slurm.call("scancel", str(SlurmJob.of(running).number))
    assert wait_until_over(on_slurm.backend, running).state is State.STOPPED
    waiting = super(Releasing, on_slurm.backend).submit(on_slurm.submission())
    on_slurm.backend.stop(waiting, grace_s=30, signal="TERM")
    assert wait_until_over(on_slurm.backend, waiting).state is State.STOPPED


def test_requeued_job_is_next_run_of_same_attempt(on_slurm: SlurmBench) -> None:
    command = 'echo run $SLURM_RESTART_COUNT; [ -n "$SLURM_RESTART_COUNT" ] || sleep 60'
    handle = on_slurm.backend.submit(on_slurm.submission(role(command)))
    wait_for(lambda: log_of(on_slurm.backend, handle))
    number = str(SlurmJob.of(handle).number)
    on_slurm.slurm.call("scontrol", "requeue", number)

    def waits_again() -> bool:
        seen = on_slurm.backend.observe([handle])[handle]
        assert isinstance(seen, Observation)
        return seen.state is State.PENDING and seen.run == 2 and seen.phase is Phase.RESTARTING

    wait_for(waits_again)
    on_slurm.slurm.call("scontrol", "update", f"JobId={number}", "StartTime=now")
    seen = wait_until_over(on_slurm.backend, handle, timeout=120)
    assert (seen.state, seen.run) == (State.SUCCEEDED, 2)
    assert (on_slurm.attempt(handle) / "run-2" / "logs" / "worker-0.output").read_text() == "run 1\n"


def test_held_job_waits_for_release_and_duplicate_is_cancelled(on_slurm: SlurmBench) -> None:
    backend = on_slurm.backend
    submission = on_slurm.submission(role("echo started"))
    handle = super(Releasing, backend).submit(submission)
    seen = backend.observe([handle])[handle]
    assert isinstance(seen, Observation)
    assert (seen.state, seen.held) == (State.PENDING, True)
    script = on_slurm.attempt(handle) / "script"
    copy = on_slurm.slurm.call("sbatch", "--parsable", "--hold", str(script)).strip()
    backend.observe([handle])
    backend.release([handle])
    assert wait_until_over(backend, handle).state is State.SUCCEEDED
    assert "CANCELLED" in on_slurm.slurm.call(
        "squeue", "--noheader", "--states=all", f"--jobs={copy}", "--format=%T"
    )


def test_duplicate_running_job_ends_without_effect(on_slurm: SlurmBench) -> None:
    handle, _seen = run(on_slurm, role("echo started"))
    script = on_slurm.attempt(handle) / "script"
    copy = on_slurm.slurm.call("sbatch", "--parsable", str(script)).strip()
    asked = ("squeue", "--noheader", "--states=all", f"--jobs={copy}", "--format=%T")
    wait_for(lambda: "COMPLETED" in on_slurm.slurm.call(*asked))
    assert log_of(on_slurm.backend, handle) == "started\n"


def test_job_unknown_to_slurm_is_observed_from_its_files(on_slurm: SlurmBench) -> None:
    handle, seen = run(on_slurm, role("echo done; exit 3"))
    forgotten = SlurmJob(SlurmJob.of(handle).number + 100_000, SlurmJob.of(handle).key).handle
    again = on_slurm.backend.observe([forgotten])[forgotten]
    assert isinstance(again, Observation)
    assert (again.state, again.reason) == (seen.state, seen.reason)
    unknown = Handle(f"99999.{on_slurm.installation}-nobody-1")
    assert on_slurm.backend.observe([unknown])[unknown] is Gone.GONE


def test_jobs_forgotten_in_slurm_crash_are_recovered_and_start_once(
    on_slurm: SlurmBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "SETTLES_S", 1)
    held = SlurmBackend(on_slurm.config)
    ended, cut, waits = (
        held.submit(on_slurm.submission(role(command, resources=resources)))
        for command, resources in (
            ("echo once; exit 5", SMALL),
            ("echo once; sleep 300", SMALL),
            ("echo once", Resources(cpu_milli=16_000, gpus=4, gpu_type="a100")),
        )
    )
    blocks = on_slurm.backend.submit(on_slurm.submission(role("sleep 300", resources=ONE_GPU)))
    wait_for(lambda: looked(held, blocks).state is State.RUNNING, 60)
    on_slurm.slurm.wait_until_saved()
    state = on_slurm.slurm.base / "state"
    on_slurm.copy_state(tmp_path / "state")
    held.release([ended, cut, waits])
    wait_until_over(held, ended)
    wait_for(lambda: log_of(held, cut), 60)

    on_slurm.slurm.kill("slurmctld")
    shutil.rmtree(state)
    shutil.copytree(tmp_path / "state", state)
    on_slurm.slurm.start_controller()
    assert looked(held, cut).state is State.RUNNING
    assert looked(held, waits).reason.params == {"slurm": "None"}
    assert wait_until_over(held, ended).reason.code is ReasonCode.EXIT_CODE
    assert wait_until_over(held, cut).reason.code is ReasonCode.NODE_LOST
    on_slurm.backend.stop(blocks, grace_s=0, signal="KILL")
    assert wait_until_over(held, waits).state is State.SUCCEEDED
    assert [log_of(held, each) for each in (ended, cut, waits)] == ["once\n"] * 3
    assert looked(held, ended).reason.code is ReasonCode.EXIT_CODE, "also once it is cancelled"


def test_unreachable_controller_reports_no_job_state(on_slurm: SlurmBench) -> None:
    handle = on_slurm.backend.submit(on_slurm.submission())
    wait_until_over(on_slurm.backend, handle)
    said = on_slurm.slurm.configuration.read_text()
    nowhere = on_slurm.slurm.base / "away.conf"
    nowhere.write_text(re.sub(r"SlurmctldPort=\d+", "SlurmctldPort=1", said))
    away = Releasing(replace(on_slurm.config, configuration=str(nowhere), timeout_s=1))
    with pytest.raises(Unreachable):
        away.observe([handle])
    with pytest.raises(Unreachable):
        away.find([SlurmJob.of(handle).key])
    with pytest.raises(Unreachable):
        away.inventory()
    with pytest.raises((NotSubmitted, Unknown)):
        away.submit(on_slurm.submission())


def test_refusal_contains_slurm_error_text(on_slurm: SlurmBench) -> None:
    with pytest.raises(Refused) as refused:
        on_slurm.backend.submit(on_slurm.unacceptable())
    assert "artition" in str(refused.value.reason.params["detail"])


def test_job_with_restricted_egress_is_refused(on_slurm: SlurmBench) -> None:
    with pytest.raises(Refused) as refused:
        on_slurm.backend.submit(replace(on_slurm.submission(), egress=()))
    assert refused.value.reason.params["why"] == "egress_not_enforced"


def test_image_job_is_refused_unless_admin_allows_run_without_image(on_slurm: SlurmBench) -> None:
    submission = on_slurm.submission(role(image="registry.example.org/torch"))
    with pytest.raises(Refused) as refused:
        on_slurm.backend.submit(submission)
    assert refused.value.reason.params["why"] == "no_image_engine"
    plain = Releasing(replace(on_slurm.config, allow_plain=True))
    seen = wait_until_over(plain, plain.submit(submission))
    assert (seen.state, replica(seen).image_used) == (State.SUCCEEDED, False)


def test_log_replaced_by_link_is_not_read(on_slurm: SlurmBench) -> None:
    handle, _seen = run(on_slurm, role("echo mine"))
    log = on_slurm.attempt(handle) / "run-1" / "logs" / "worker-0.output"
    outside = on_slurm.folder / "outside"
    outside.write_text("secret")
    log.unlink()
    log.symlink_to(outside)
    assert log_of(on_slurm.backend, handle) == ""
    with attempts.open_beneath(on_slurm.root, (*log.relative_to(on_slurm.root).parts,)) as file:
        assert file is None


def test_inventory_counts_other_jobs_and_explains_drained_node(on_slurm: SlurmBench) -> None:
    slurm = on_slurm.slurm
    nodes = {node.name: node for node in on_slurm.backend.inventory().nodes}
    assert [gpu.type for gpu in nodes["gpu2"].gpus] == ["titan"] * 4
    assert nodes["cpu1"].cpu_milli == 16_000
    options = ("--parsable", "--output=/dev/null", "--mem=100M", "--gres=gpu:a100:2", "--nodelist=gpu1")
    other = slurm.call("sbatch", *options, "--wrap=sleep 60").strip()
    try:
        wait_for(lambda: {n.name: n.free_gpus for n in on_slurm.backend.inventory().nodes}["gpu1"] == (2, 3))
        told = {job.number: job for job in on_slurm.backend.inventory().jobs or ()}[other]
        assert (told.name, told.user, told.running, told.partition) == ("wrap", "root", True, "all")
        assert (told.gpus, told.nodes, told.memory_mib) == ({"a100": 2}, ("gpu1",), 100)
        slurm.call("scontrol", "update", "NodeName=cpu2", "State=DRAIN", "Reason=a fan is broken")
        drained = {node.name: node for node in on_slurm.backend.inventory().nodes}["cpu2"]
        assert not drained.schedulable
        assert drained.why == "a fan is broken"
    finally:
        slurm.call("scontrol", "update", "NodeName=cpu2", "State=RESUME")
        slurm.call("scancel", other)


NONSENSE: list[dict[str, object]] = [
    {"folder": "relative"},
    {"folder": "/with space"},
    {"partitions": {"all": "a b"}},
    {"qos": {"10": "high"}},
    {"options": {"output": "/tmp/x"}},
    {"options": {"wrap\n": ""}},
    {"ports": [1, 2]},
    {"timeout_s": 0},
    {"allow_plain": "yes"},
    {"colour": "red"},
    {"images": "docker"},
    {"nodes_folder": "relative", "console_url": "https://a.example"},
    {"nodes_folder": "/var/tmp"},
    {"nodes_folder": "/var/tmp", "console_url": "a.example"},
    {"nodes_folder": "/var/tmp", "console_url": "https://a.example/'$(id)"},
    {"nodes_folder": "/var/tmp", "console_url": "https://a.example", "identity": "sudo"},
    {"mounts": "anywhere"},
    {"allowed": ["output"]},
    {"allowed": "licenses"},
]


@pytest.mark.parametrize("settings", NONSENSE, ids=str)
def test_invalid_settings_are_refused(settings: dict[str, object], on_slurm: SlurmBench) -> None:
    with pytest.raises((TypeError, ValueError)):
        SlurmConfig.from_settings(on_slurm.folder, settings)


def test_exported_script_assigns_gpus_to_each_task(on_slurm: SlurmBench) -> None:
    told = "echo $RANK gpus=$CUDA_VISIBLE_DEVICES"
    spec = on_slurm.submission(role(told, resources=ONE_GPU, replicas=2)).spec
    script = on_slurm.folder / "script"
    script.write_text(dialects.get("sbatch").render(spec, {}).text)
    output = on_slurm.folder / "output"
    number = on_slurm.slurm.call("sbatch", "--parsable", f"--output={output}", str(script)).strip()
    wait_for(lambda: ended(on_slurm, number), 60)
    assert sorted(output.read_text().splitlines()) == ["0 gpus=0", "1 gpus=1"]


def ended(bench: SlurmBench, number: str) -> bool:
    told = bench.slurm.call("squeue", "--noheader", "--states=all", f"--jobs={number}", "--format=%T")
    return told.split()[0] in ("COMPLETED", "FAILED")

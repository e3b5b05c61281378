"""Real jobs on a real Ray, whose nodes share no folder with the console."""

from __future__ import annotations

import getpass
import hashlib
import io
import time
import zipfile
from functools import partial
from pathlib import Path

import pytest

from jobs.backends.base import Handle, Observation, Person, ReplicaRef
from jobs.backends.ray import package
from jobs.spec import (
    CodeSource,
    EndSignal,
    FaultTolerance,
    NodeChoice,
    Port,
    Resources,
    RestartScope,
    SecretRef,
)
from jobs.states import ReasonCode, ReplicaState, State
from jobs.trees import Entry, Supplied, Tree, address
from jobs.trees import Kind as FileKind
from tests.jobs.backends.benches import SMALL, log_of, replica, role, wait_until_over
from tests.jobs.backends.ray_bench import RayBench
from tests.waiting import wait_for

pytestmark = pytest.mark.ray

SECRET = "a-word-that-nobody-else-sees"
SHOW = """\
echo "$PASS $GREETING $PAI_TASK_INDEX $RANK/$WORLD_SIZE gpus=$CUDA_VISIBLE_DEVICES"
echo "$MASTER_ADDR $PAI_HOST_IP_ps_0 $PAI_HOST_IP_worker_1 $PAI_CONTAINER_HOST_tool_PORT_LIST"
cat hello/greeting; env | grep -c "RAY_\\|COURIER" >&2; until [ -e "$JUDGE/go" ]; do sleep 0.1; done
"""


def observe(bench: RayBench, handle: Handle) -> Observation:
    seen = bench.backend.observe([handle])[handle]
    assert isinstance(seen, Observation)
    return seen


def upload(folder: Path, content: bytes) -> tuple[Tree, dict[str, Supplied]]:
    """A tree with one file, as the console has it."""
    digest = hashlib.sha256(content).hexdigest()
    pack = folder / "pack"
    pack.write_bytes(content)
    tree = Tree((Entry("greeting", FileKind.FILE, digest, len(content)),))
    return tree, {tree.id: Supplied(len(content), tree, {digest: (str(pack), 0)})}


def has_lines(bench: RayBench, handle: Handle, name: str, index: int) -> bool:
    return log_of(bench.backend, handle, name, index).count("\n") == 4


def test_roles_on_several_nodes_receive_peers_gpus_code_and_secrets(on_ray: RayBench, tmp_path: Path) -> None:
    bench = on_ray
    tree, uploads = upload(tmp_path, b"of the upload\n")
    tool = Port(label="tool", begin_at=0, count=2)
    gpus = Resources(cpu_milli=100, memory_mib=64, gpus=2, gpu_type="titan")
    cards = Resources(cpu_milli=100, memory_mib=64, gpus=1, gpu_type="a100")
    submission = bench.submission(
        role(SHOW, name="ps", resources=gpus, ports=(tool,)),
        role(SHOW, name="worker", replicas=2, resources=cards, ports=(tool,)),
        env={"GREETING": "it's $HOME; 'quoted'", "JUDGE": str(bench.judge)},
        secret_env={"PASS": SecretRef(name="s")},
        secrets={"s": SECRET},
        code=CodeSource(id=address(tree.id), path="hello"),
        uploads=uploads,
    )
    handle = bench.backend.submit(submission)
    for name, index in (("ps", 0), ("worker", 0), ("worker", 1)):
        wait_for(partial(has_lines, bench, handle, name, index))
    seen = observe(bench, handle)
    assert (seen.state, {each.node for each in seen.replicas}) == (State.RUNNING, {"titans", "ampere"})
    network = bench.cluster.network
    log = log_of(bench.backend, handle, "ps").splitlines()
    assert log[0] == f"{SECRET} it's $HOME; 'quoted' 0 0/3 gpus=0,1"
    *addresses, ports = log[1].split()
    assert addresses == [f"{network}.3", f"{network}.3", f"{network}.4"]
    assert len({int(port) for port in ports.split(",")}) == 2
    assert log[2:] == ["of the upload", "0"]
    ranks = {log_of(bench.backend, handle, "worker", index).split("\n")[0][-12:] for index in range(2)}
    assert ranks == {"0 1/3 gpus=0", "1 2/3 gpus=1"}
    shown = bench.cluster.get(f"/api/jobs/{handle}").text + bench.cluster.get(f"/api/jobs/{handle}/logs").text
    assert "run_job.py" in shown
    assert SECRET not in shown
    assert "quoted" not in shown
    nodes = {each.name: each for each in bench.backend.inventory().nodes}
    assert nodes["titans"].free_gpus == (2, 3)
    assert [queued.handle for queued in bench.backend.inventory().jobs or ()] == [handle]
    (bench.judge / "go").touch()
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED
    folder = bench.attempt(handle)
    assert not (folder / "secrets").exists()
    wait_for(lambda: not list(bench.nodes_folder.glob("job-console-*/*-1")))


def test_check_names_nodes_and_tries_a_job(on_ray: RayBench) -> None:
    assert set(on_ray.backend.check().nodes) > {"ampere", "titans"}
    assert on_ray.backend.try_as(Person("alice", 7)) == getpass.getuser()
    assert on_ray.backend.read_origin("try-nothing-1") is None


def test_package_has_no_word_of_a_job() -> None:
    name, data = package.build()
    assert package.build() == (name, data)
    names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    assert {package.MAIN, "jobs/backends/ray/driver.py", "jobs/node/runner.py"} <= set(names)
    assert not [each for each in names if "local" in each or "slurm" in each]


def test_stop_ends_whole_process_tree_with_signal_and_grace(on_ray: RayBench) -> None:
    deaf = "setsid sh -c \"trap '' HUP TERM; while sleep 0.1; do :; done\" &"
    command = f"{deaf} trap 'echo caught; exit 4' USR1; echo up; while sleep 0.1; do :; done"
    handle = on_ray.backend.submit(on_ray.submission(role(command)))
    wait_for(lambda: log_of(on_ray.backend, handle))
    assert on_ray.processes()
    on_ray.backend.stop(handle, grace_s=3, signal="USR1")
    seen = wait_until_over(on_ray.backend, handle)
    assert (seen.state, replica(seen).exit_code) == (State.STOPPED, 4)
    assert log_of(on_ray.backend, handle) == "up\ncaught\n"
    wait_for(lambda: not on_ray.processes())


def test_job_stopped_while_it_waits_for_resources_never_starts(on_ray: RayBench) -> None:
    first = on_ray.submission(
        role("echo up; sleep 60", resources=Resources(cpu_milli=8000, memory_mib=64), replicas=2)
    )
    running = on_ray.backend.submit(first)
    wait_for(lambda: observe(on_ray, running).state is State.RUNNING)
    waiting = on_ray.submission(role("echo never"))
    with pytest.MonkeyPatch.context() as patched:  # as where somebody else was faster
        patched.setattr("jobs.backends.ray.capacity.place_replicas", lambda *_: None)
        handle = on_ray.backend.submit(waiting)
    wait_for(lambda: observe(on_ray, handle).reason.params.get("ray") == "PLACING")
    on_ray.backend.stop(handle, grace_s=30, signal="TERM")
    seen = wait_until_over(on_ray.backend, handle)
    assert (seen.state, replica(seen).state) == (State.STOPPED, ReplicaState.STOPPED)
    assert log_of(on_ray.backend, handle) == ""


def test_failed_replica_is_started_again_by_an_order(on_ray: RayBench) -> None:
    restarting = FaultTolerance(enabled=True, restart_scope=RestartScope.REPLICA)
    command = '[ -e "$JUDGE/once" ] && echo well && exit; touch "$JUDGE/once"; echo ill; exit 3'
    submission = on_ray.submission(
        role(command), env={"JUDGE": str(on_ray.judge)}, fault_tolerance=restarting
    )
    handle = on_ray.backend.submit(submission)

    def failed() -> bool:
        run = replica(observe(on_ray, handle)).failed_run
        return run is not None and (run.run, run.exit_code) == (1, 3)

    wait_for(failed)
    on_ray.backend.order_restart(handle, ReplicaRef("worker", 0), 1, restarts=True)
    assert wait_until_over(on_ray.backend, handle).state is State.SUCCEEDED
    assert log_of(on_ray.backend, handle).split("\n")[0::3] == ["ill", "well"]


def test_replica_over_its_memory_and_job_over_its_time_are_ended(on_ray: RayBench) -> None:
    much = "python3 -c 'import time; held = bytearray(300 << 20); time.sleep(60)'"
    full = on_ray.backend.submit(on_ray.submission(role(much)))
    patient = role("trap 'echo warned' USR2; echo up; while sleep 0.1; do :; done")
    late = on_ray.backend.submit(
        on_ray.submission(
            patient, time_limit_s=6, grace_s=5, end_signal=EndSignal(signal="USR2", seconds_before=3)
        )
    )
    seen = wait_until_over(on_ray.backend, full)
    assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.OUT_OF_MEMORY)
    assert seen.reason.params["limit_mib"] == SMALL.memory_mib
    seen = wait_until_over(on_ray.backend, late)
    assert (seen.state, seen.reason.code) == (State.STOPPED, ReasonCode.TIME_LIMIT)
    assert log_of(on_ray.backend, late) == "up\nwarned\n"


def test_replica_runs_on_chosen_node_and_its_failure_ends_the_job(on_ray: RayBench) -> None:
    began = time.time()
    chief = role("sleep 600", name="chief", nodes=NodeChoice(only=("ampere",)))
    worker = role("exit 9", nodes=NodeChoice(never=("ampere",)))
    seen = wait_until_over(on_ray.backend, on_ray.backend.submit(on_ray.submission(chief, worker)))
    assert seen.reason.params == {"role": "worker", "index": 0, "exit_code": 9}
    assert {each.role: each.node for each in seen.replicas} == {"chief": "ampere", "worker": "titans"}
    assert replica(seen, "chief").state is ReplicaState.STOPPED
    assert seen.ended_at is not None
    assert began < seen.ended_at < time.time()

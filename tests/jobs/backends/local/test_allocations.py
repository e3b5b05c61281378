"""What a machine gives out: GPUs, ports, memory; all of it or nothing."""

import os
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.backends.base import Gpu, NotSubmitted, Observation, Refused, Reserved, Unknown
from jobs.backends.local import accept, allocations, gpus, port_allocator, uplink_allocator
from jobs.backends.local.config import LocalConfig
from jobs.backends.local.core_allocator import CoreAllocator
from jobs.messages import reason_message
from jobs.node.sandbox.isolation import Isolation
from jobs.node.supervisor.layout import Layout, UnknownAttemptKey, folder_name
from jobs.spec import Framework, NodeChoice, Port, Resources, SecretRef
from jobs.states import ReasonCode
from tests.jobs.backends.benches import SMALL, LocalBench, log_of, replica, role, wait_until_over
from tests.ports import free_ports
from tests.waiting import wait_for


def with_gpus(count: int, kind: str = "") -> Resources:
    return Resources(cpu_milli=100, memory_mib=64, gpus=count, gpu_type=kind)


@pytest.fixture
def gpu_bench(tmp_path: Path) -> LocalBench:
    return LocalBench(tmp_path, {"gpus": {"TITANX": 2, "P100": 1}})


def test_gpu_allocation_is_exclusive_and_returned_after_use(gpu_bench: LocalBench) -> None:
    command = "echo $CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES; exec sleep 60"
    first = gpu_bench.backend.submit(
        gpu_bench.submission(role(command, replicas=2, resources=with_gpus(1, "TITANX")))
    )
    wait_for(lambda: all(log_of(gpu_bench.backend, first, index=index) for index in (0, 1)))
    assert sorted(log_of(gpu_bench.backend, first, index=index) for index in (0, 1)) == ["0 0\n", "1 1\n"]
    assert gpu_bench.backend.inventory().nodes[0].free_gpus == (2,)
    third = gpu_bench.submission(role(command, resources=with_gpus(1, "TITANX")))
    with pytest.raises(NotSubmitted) as not_sent:
        gpu_bench.backend.submit(third)
    assert not_sent.value.reason.params == {"resource": "gpu", "wanted": 1, "free": 0}
    other = gpu_bench.backend.submit(gpu_bench.submission(role(command, resources=with_gpus(1))))
    wait_for(lambda: log_of(gpu_bench.backend, other) == "2 2\n")
    gpu_bench.backend.stop(first, grace_s=0, signal="KILL")
    wait_until_over(gpu_bench.backend, first)
    assert gpu_bench.backend.inventory().nodes[0].free_gpus == (0, 1)
    gpu_bench.close()


def test_replicas_with_affinity_are_pinned_to_cores_of_their_own(bench_of: Callable[..., LocalBench]) -> None:
    local = bench_of()
    one_core = Resources(cpu_milli=600, memory_mib=64)
    command = "grep -Po 'Cpus_allowed_list:\\s*\\K.*' /proc/self/status; exec sleep 60"
    pinned = local.submission(role(command, replicas=2, resources=one_core), cpu_affinity=True)
    first = local.backend.submit(pinned)
    free = local.backend.submit(local.submission(role(command, resources=one_core)))
    cores = sorted(os.sched_getaffinity(0))
    wait_for(lambda: all(log_of(local.backend, first, index=index) for index in (0, 1)))
    seen = [int(log_of(local.backend, first, index=index)) for index in (0, 1)]
    assert sorted(seen) == [cores[0], cores[1 % len(cores)]]
    held = allocations.sum_held(Layout(local.config.root))
    assert sorted(held.cores) == sorted(seen)
    wait_for(lambda: log_of(local.backend, free))
    expected = Path("/proc/self/status").read_text(encoding="utf-8")
    assert f"Cpus_allowed_list:\t{log_of(local.backend, free)}" in expected, "another job runs on any core"


@given(st.integers(1, 6), st.lists(st.integers(1, 3000), min_size=1, max_size=12))
def test_cores_are_shared_only_when_all_are_taken(count: int, wanted: list[int]) -> None:
    allocator = CoreAllocator(range(count), ())
    times = Counter[int]()
    for cpu_milli in wanted:
        chosen = allocator.allocate(cpu_milli)
        assert len(set(chosen)) == len(chosen) == min(count, -(-cpu_milli // 1000))
        times.update(chosen)
        assert max(times.values()) - min(times[core] for core in range(count)) <= 1


def test_reserved_gpus_are_assigned_to_their_job(gpu_bench: LocalBench) -> None:
    asked = gpu_bench.submission(role("echo $CUDA_VISIBLE_DEVICES", resources=with_gpus(1)))
    node = gpu_bench.config.node
    handle = gpu_bench.backend.submit(replace(asked, reserved=(Reserved(node, {"P100": 1}, (2,)),)))
    over = wait_until_over(gpu_bench.backend, handle)
    assert (log_of(gpu_bench.backend, handle), replica(over).gpus) == ("2\n", (2,))
    gpu_bench.close()


def test_reserved_gpu_already_taken_is_replaced_by_same_type(gpu_bench: LocalBench) -> None:
    sleeping = gpu_bench.submission(role("exec sleep 60", resources=with_gpus(1, "TITANX")))
    first = gpu_bench.backend.submit(sleeping)
    reserved = (Reserved(gpu_bench.config.node, {"TITANX": 1}, (0,)),)
    second = gpu_bench.submission(role("true", resources=with_gpus(1)))
    handle = gpu_bench.backend.submit(replace(second, reserved=reserved))
    assert replica(wait_until_over(gpu_bench.backend, handle)).gpus == (1,)
    gpu_bench.backend.stop(first, grace_s=0, signal="KILL")
    wait_until_over(gpu_bench.backend, first)
    gpu_bench.close()


def test_untyped_gpu_role_takes_no_gpu_named_by_another_role(gpu_bench: LocalBench) -> None:
    any_type, named = role(resources=with_gpus(1)), role(name="other", resources=with_gpus(2, "TITANX"))
    handle = gpu_bench.backend.submit(gpu_bench.submission(any_type, named))
    over = wait_until_over(gpu_bench.backend, handle)
    assert [each.gpus for each in over.replicas] == [(2,), (0, 1)]
    gpu_bench.close()


def test_submission_with_absent_gpu_type_waits_and_names_type(gpu_bench: LocalBench) -> None:
    with pytest.raises(NotSubmitted) as not_sent:
        gpu_bench.backend.submit(gpu_bench.submission(role(resources=with_gpus(1, "H100"))))
    assert not_sent.value.reason.code is ReasonCode.NO_SUCH_GPU
    assert not_sent.value.reason.params == {"gpu_type": "H100"}


def test_gang_without_room_starts_no_replicas(gpu_bench: LocalBench) -> None:
    submission = gpu_bench.submission(
        role(resources=with_gpus(2, "TITANX")), role(name="other", resources=with_gpus(2))
    )
    with pytest.raises(NotSubmitted):
        gpu_bench.backend.submit(submission)
    assert gpu_bench.backend.find([submission.key])[submission.key] == []
    assert len(gpu_bench.backend.inventory().nodes[0].free_gpus) == 3


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        ("NVIDIA TITAN X (Pascal)", "TITANX"),
        ("Tesla P100-PCIE-16GB", "P100-PCIE-16GB"),
        ("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"),
        ("NVIDIA GeForce RTX 3090", "RTX3090"),
        ("TITANX", "TITANX"),
    ],
)
def test_gpu_model_name_is_shortened_to_common_name(name: str, type_: str) -> None:
    assert gpus.short(name) == type_


def test_gpu_type_matches_by_partial_name() -> None:
    assert gpus.matches("P100-PCIE-16GB", "p100")
    assert gpus.matches("anything", "")
    assert not gpus.matches("P100-PCIE-16GB", "V100")
    assert gpus.from_counts({"A": 1, "B": 2}) == (Gpu(0, "A"), Gpu(1, "B"), Gpu(2, "B"))


def test_gpu_discovery_without_driver_finds_none() -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has a GPU")
    assert gpus.find_gpus() == ()


@pytest.fixture
def on_host(bench_of: Callable[..., LocalBench]) -> LocalBench:
    """A bench whose jobs share the machine's network."""
    return bench_of(network="host")


def test_allocated_ports_are_unique_across_replicas_and_jobs(on_host: LocalBench) -> None:
    spec = role("exec sleep 60", replicas=3, ports=(Port(label="a", count=4), Port(label="b")))
    seen = []
    for _ in range(2):
        handle = on_host.backend.submit(on_host.submission(spec))
        one = on_host.backend.observe([handle])[handle]
        assert isinstance(one, Observation)
        seen += [endpoint.port for each in one.replicas for endpoint in each.endpoints]
    first, last = on_host.config.ports
    assert len(seen) == len(set(seen)) == 2 * 3 * 5
    assert all(first <= port <= last for port in seen)


def test_fixed_port_range_advances_for_each_replica(on_host: LocalBench) -> None:
    begin = free_ports(4)
    command = "echo $PAI_CONTAINER_HOST_fixed_PORT_LIST"
    handle = on_host.backend.submit(
        on_host.submission(role(command, replicas=2, ports=(Port(label="fixed", begin_at=begin, count=2),)))
    )
    wait_until_over(on_host.backend, handle)
    told = [log_of(on_host.backend, handle, index=index).strip() for index in (0, 1)]
    assert told == [f"{begin},{begin + 1}", f"{begin + 2},{begin + 3}"]


def test_adjacent_fixed_ports_never_block_their_own_replica(on_host: LocalBench) -> None:
    begin = free_ports(4)
    ports = (Port(label="a", begin_at=begin), Port(label="b", begin_at=begin + 1))
    command = """
import os, socket
told = [int(os.environ[f"PAI_CONTAINER_HOST_{label}_PORT_LIST"]) for label in "ab"]
listeners = [socket.create_server(("127.0.0.1", port)) for port in told]
print(*told)
"""
    spec = role(f"python3 -c '{command}'", replicas=2, ports=ports)
    handle = on_host.backend.submit(on_host.submission(spec))
    wait_until_over(on_host.backend, handle)
    told = [log_of(on_host.backend, handle, index=index).split() for index in (0, 1)]
    assert told == [[str(begin), str(begin + 1)], [str(begin + 2), str(begin + 3)]]


def test_taken_fixed_port_leaves_submission_waiting(on_host: LocalBench) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(NotSubmitted) as not_sent:
            on_host.backend.submit(on_host.submission(role(ports=(Port(label="fixed", begin_at=port),))))
    assert not_sent.value.reason.params == {"resource": "port", "port": port}


def test_endpoint_is_ready_once_port_listens(local: LocalBench) -> None:
    code = """
import os, socket, time
time.sleep(0.5)
server = socket.socket()
server.bind(("127.0.0.1", int(os.environ["PAI_CONTAINER_HOST_web_PORT_LIST"])))
server.listen()
time.sleep(60)
"""
    command = f"python3 -c '{code}'"
    handle = local.backend.submit(local.submission(role(command, ports=(Port(label="web"),))))

    def ready() -> bool:
        seen = local.backend.observe([handle])[handle]
        assert isinstance(seen, Observation)
        return replica(seen).endpoints[0].ready

    assert not ready()
    wait_for(ready)


def test_port_allocator_without_free_port_raises_no_port_free() -> None:
    allocator = port_allocator.PortAllocator((20_000, 20_001), {20_000, 20_001})
    with pytest.raises(port_allocator.NoPortFree):
        allocator.any(1)


def test_job_for_other_nodes_is_refused(local: LocalBench) -> None:
    for nodes in (NodeChoice(only=("elsewhere",)), NodeChoice(never=(local.config.node,))):
        with pytest.raises(Refused) as refused:
            local.backend.submit(local.submission(role(nodes=nodes)))
        assert refused.value.reason.params == {"why": "field", "field": "nodes"}
    handle = local.backend.submit(local.submission(role(nodes=NodeChoice(only=(local.config.node,)))))
    wait_until_over(local.backend, handle)


def test_multi_node_slurm_script_is_refused_locally(local: LocalBench) -> None:
    """Slurm would run it once, on its first node; here it would run in both replicas."""
    with pytest.raises(Refused) as refused:
        local.backend.submit(local.submission(role(replicas=2), framework=Framework.SLURM))
    assert refused.value.reason.params == {"why": "only_slurm", "nodes": 2}
    handle = local.backend.submit(local.submission(role(), framework=Framework.SLURM))
    wait_until_over(local.backend, handle)


def test_missing_secret_is_refused_by_name(local: LocalBench) -> None:
    with pytest.raises(Refused) as refused:
        local.backend.submit(local.submission(secret_env={"TOKEN": SecretRef(name="wandb")}))
    assert refused.value.reason.params == {"why": "no_secret", "name": "wandb"}


def test_allocation_of_dead_submitter_is_released(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "jobs")
    with allocations.hold_lock(layout):
        allocations.hold(layout, "inst-abc-1", allocations.Allocation(500, 64, (0,), (20_000,)))
        assert allocations.sum_held(layout) == allocations.AllocatedTotal(0, 0, frozenset(), frozenset())
        allocations.remove_released(layout)
    assert list(layout.live.iterdir()) == []


def test_submission_raises_unknown_when_allocation_lock_times_out(
    local: LocalBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allocations, "PATIENCE_S", 0.1)
    with allocations.hold_lock(Layout(local.config.root)), pytest.raises(Unknown):
        local.backend.submit(local.submission())


def test_layout_rejects_foreign_attempt_keys(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    assert layout.attempt("inst-abc-12") == tmp_path / "abc" / "12"
    for key in ("", "x", "../../etc-passwd-1", "a-b", "a-b-0", "a-b-01", "a-b/..-1", "A-B-1", "a-b-1\n"):
        with pytest.raises(UnknownAttemptKey):
            layout.attempt(key)


def test_role_folder_names_are_safe_and_distinct() -> None:
    roles = ["worker", "../../etc", "a~b", "a_b", "a/b", "é", "x" * 255]
    names = [folder_name(name, ordinal, 0) for ordinal, name in enumerate(roles)]
    assert names[0] == "worker-0"
    assert len(set(names)) == len(names)
    assert not [name for name in names if "/" in name or len(name) > 120]


def test_role_with_unusual_name_runs(local: LocalBench) -> None:
    roles = (
        role("echo one", name="../../../etc"),
        role("echo two", name="a~b"),
        role("echo three", name="a/b"),
    )
    handle = local.backend.submit(local.submission(*roles))
    wait_until_over(local.backend, handle)
    assert [log_of(local.backend, handle, one.name).strip() for one in roles] == ["one", "two", "three"]


def test_local_config_reads_machine_resources_from_settings(tmp_path: Path) -> None:
    config = LocalConfig.from_settings(
        tmp_path,
        {
            "gpus": {"TITANX": 2},
            "memory_mib": 512,
            "isolation": "none",
            "ports": [30000, 30100],
            "show": ["/data"],
        },
    )
    assert config.total().memory_mib == 512
    assert [gpu.type for gpu in config.total().gpus] == ["TITANX", "TITANX"]
    assert config.isolation is Isolation.NONE
    assert (config.root, config.hide) == (tmp_path / "jobs", tmp_path)
    assert (config.ports, config.show) == ((30000, 30100), (Path("/data"),))
    with pytest.raises(ValueError, match="gpu"):
        LocalConfig.from_settings(tmp_path, {"gpu": 1})
    assert SMALL.gpus == 0


def test_submission_below_disk_floor_waits_with_reason(tmp_path: Path) -> None:
    bench = LocalBench(tmp_path, {"disk_floor_mib": 1 << 40})
    with pytest.raises(NotSubmitted) as not_sent:
        bench.backend.submit(bench.submission(role()))
    reason = not_sent.value.reason
    assert reason.code is ReasonCode.DISK_LOW
    assert reason.params["floor_mib"] == 1 << 40
    said = reason_message(reason.code, {"free_mib": 1229, "floor_mib": 5120})
    assert said == "Waiting: the console's disk has 1.2 GiB free, less than the minimum of 5 GiB."
    assert not list((tmp_path / "home" / "jobs").glob("*/*/plan.json"))
    bench.close()


def test_uplink_allocator_gives_every_link_once_and_none_beyond_the_range() -> None:
    held: list[str] = []
    for _ in range(64):
        held.append(uplink_allocator.allocate("10.99.98.0/24", held))
    assert set(held) == {f"10.99.98.{number}" for number in range(1, 256, 4)}
    with pytest.raises(uplink_allocator.NoUplinkFree):
        uplink_allocator.allocate("10.99.98.0/24", held)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes links")
def test_submission_without_free_uplink_waits_unless_its_egress_needs_none(local: LocalBench) -> None:
    config = replace(local.config, uplink_range="10.99.98.0/24")
    runtime = accept.JobRuntime(Isolation.PERSONS, (), own_network=True)
    uplinks = frozenset(f"10.99.98.{number}" for number in range(1, 256, 4))
    held = allocations.AllocatedTotal(0, 0, frozenset(), frozenset(), uplinks)
    asked = local.submission(egress=("internet",))
    layer = accept.refuse_impossible(asked, config, runtime)
    with pytest.raises(NotSubmitted) as waiting:
        accept.plan(asked, config, runtime, layer, held)
    reason = waiting.value.reason
    assert (reason.code, reason.params["resource"]) == (ReasonCode.WAITING_CAPACITY, "uplink")
    assert "(10.99.98.0/24)" in reason_message(reason.code, reason.params)
    made = accept.plan(replace(asked, egress=()), config, runtime, layer, held)
    assert made.network is not None
    assert made.network.uplink == accept.allocation_of(made).uplink == ""

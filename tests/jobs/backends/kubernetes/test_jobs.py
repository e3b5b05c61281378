"""Jobs on a real Kubernetes, looked at from inside."""

import base64
import itertools
import re
import shlex
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import NotSubmitted, Observation, Person, Unreachable
from jobs.backends.kubernetes.backend import AT_ONCE, KubernetesBackend
from jobs.backends.kubernetes.client.api import Api
from jobs.backends.kubernetes.status import replicas
from jobs.facilities import StorageMapping
from jobs.spec import (
    CodeSource,
    CompletionPolicy,
    EndSignal,
    Framework,
    Mount,
    NodeChoice,
    PodContainer,
    Port,
    Requirements,
    Resources,
    SecretRef,
)
from jobs.states import Phase, ReasonCode, ReplicaState, State
from jobs.trees import Entry, Kind, Supplied, Tree
from tests.jobs.backends.benches import log_of, replica, role, wait_until_over
from tests.jobs.backends.hdfs import served, tar
from tests.jobs.backends.kubernetes_bench import KubernetesBench, Releasing
from tests.jobs.backends.local.buckets import serve
from tests.jobs.backends.local.goods import wheel
from tests.jobs.backends.local.test_code_sources import Web
from tests.kubernetes import inside
from tests.kubernetes.cluster import Cluster
from tests.waiting import wait_for

ALL_REDUCE = r"""
import os, socket, sys, time
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    server = socket.create_server(("0.0.0.0", port))
    peers, total = [], rank
    while len(peers) < size - 1:
        peer, _ = server.accept()
        peers.append(peer)
        total += int(peer.makefile().readline())
    for peer in peers:
        peer.sendall(f"{total}\n".encode())
else:
    for _ in range(600):
        try:
            peer = socket.create_connection((address, port), 1)
            break
        except OSError:
            time.sleep(0.1)
    peer.sendall(f"{rank}\n".encode())
    total = int(peer.makefile().readline())
print("sum", total, "of", size, "host", socket.gethostname(), flush=True)
"""


REQUESTS = [
    *("GET configmaps", "POST pods", "POST configmaps", "POST secrets", "PATCH configmaps"),
    *("PATCH configmaps", "POST services", "POST networkpolicies", "POST pods", "PATCH configmaps"),
    *("PATCH configmaps", "DELETE secrets"),
]
"""About one attempt: its submission, of which the first POST is a dry run, its release, and its end."""


def test_job_of_one_replica_takes_twelve_requests(
    bench: KubernetesBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    ask = Api._ask

    def note(self: Api, method: str, path: str, *more: Any) -> Any:
        _cluster, _namespaces, rest = path.partition(f"/namespaces/{bench.namespace}/")
        asked.append(f"{method} {rest.partition('/')[0]}")
        return ask(self, method, path, *more)

    with monkeypatch.context() as patch:
        patch.setattr(Api, "_ask", note)
        handle = bench.backend.submit(bench.submission(endpoint_token="secret"))
        assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED
    assert [each for each in asked if not each.endswith(" ")] == REQUESTS


def test_jobs_are_released_several_at_a_time_and_none_once_the_api_server_is_away(
    bench: KubernetesBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    handles = [KubernetesBackend.submit(bench.backend, bench.submission()) for _ in range(12)]
    together, asked = threading.Barrier(AT_ONCE), itertools.count()

    def away(_self: Api, _path: str, _patch: object) -> None:
        if next(asked) < AT_ONCE:
            together.wait(30)
        raise Unreachable("away")

    with monkeypatch.context() as patch:
        patch.setattr(Api, "patch_if", away)
        with pytest.raises(Unreachable, match="away"):
            bench.backend.release(handles)
    assert next(asked) < len(handles)
    for handle in handles:
        bench.backend.stop(handle, grace_s=0, signal="KILL")


def test_three_workers_find_rank_zero_by_name_and_reduce(bench: KubernetesBench) -> None:
    command = f"python3 -c {shlex.quote(ALL_REDUCE)}"
    job = bench.submission(role(command, replicas=3), framework=Framework.PYTORCH)
    handle = bench.backend.submit(job)
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED
    assert [log_of(bench.backend, handle, index=index) for index in range(3)] == [
        f"sum 3 of 3 host worker-{index}\n" for index in range(3)
    ]


def test_hello_world_of_two_roles_runs_to_its_end(bench: KubernetesBench) -> None:
    """The seeds' HelloWorld: parameter servers that run on, and workers whose end is the job's."""
    servers = role("while :; do sleep 1; done", name="ps_server", completion=CompletionPolicy(min_failed=1))
    workers = role(
        'echo "Hello World from $PAI_CURRENT_TASK_ROLE_NAME $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"',
        replicas=2,
        completion=CompletionPolicy(min_failed=1, min_succeeded=2),
    )
    handle = bench.backend.submit(bench.submission(servers, workers, grace_s=1))
    seen = wait_until_over(bench.backend, handle)
    assert (seen.state, seen.reason.code) == (State.SUCCEEDED, ReasonCode.COMPLETED)
    assert replica(seen, "ps_server").state is ReplicaState.STOPPED
    assert log_of(bench.backend, handle, index=1) == "Hello World from worker 1\n"


def test_container_is_restricted_and_runs_as_the_persons_user(bench: KubernetesBench) -> None:
    command = "id -u; grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status; ls /run/secrets 2>&1"
    handle = bench.backend.submit(bench.submission(role(command), person=Person("bob", 9)))
    assert wait_until_over(bench.backend, handle).state is not State.LOST
    lines = [line.split() for line in log_of(bench.backend, handle).splitlines()]
    assert lines[0] == ["200009"]
    assert ["CapEff:", "0000000000000000"] in lines
    assert ["NoNewPrivs:", "1"] in lines
    assert ["Seccomp:", "2"] in lines
    assert "kubernetes.io" not in log_of(bench.backend, handle)


def test_variables_and_secrets_arrive_unchanged(bench: KubernetesBench) -> None:
    hostile = "a'b\"c $(id) $HOME `id` \\ %s $$ $(HOME)"
    command = 'printf "%s\\n" "$PLAIN" "$SECRET" "$PAI_JOB_NAME"; env | grep -c hunter'
    job = bench.submission(
        role(command, env={"PLAIN": hostile}),
        secret_env={"SECRET": SecretRef(name="mine")},
        secrets={"mine": f"hunter {hostile}"},
    )
    handle = bench.backend.submit(job)
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED
    assert log_of(bench.backend, handle) == f"{hostile}\nhunter {hostile}\nbench\n1\n"


def test_secret_and_code_are_removed_when_the_job_ends(bench: KubernetesBench) -> None:
    job = bench.submission(role("sleep 60"), endpoint_token="hunter")
    handle = bench.backend.submit(job)
    path = f"/api/v1/namespaces/{bench.namespace}/secrets"
    names = [each["metadata"]["name"] for each in bench.api.list(path).items]
    assert job.key in names
    bench.backend.stop(handle, grace_s=0, signal="KILL")
    wait_until_over(bench.backend, handle)
    names = [each["metadata"]["name"] for each in bench.api.list(path).items]
    assert job.key not in names


def test_replica_has_the_requested_resources(bench: KubernetesBench) -> None:
    command = (
        "cat /sys/fs/cgroup/memory/memory.limit_in_bytes; df -m --output=size /dev/shm | tail -1;"
        ' echo "$CUDA_VISIBLE_DEVICES" | tr , "\\n" | wc -l'
    )
    resources = Resources(cpu_milli=200, memory_mib=256, shm_mib=128, gpus=2)
    handle = bench.backend.submit(bench.submission(role(command, resources=resources)))
    seen = wait_until_over(bench.backend, handle)
    assert seen.state is State.SUCCEEDED
    memory, shared, gpus = map(int, log_of(bench.backend, handle).split())
    assert (memory, gpus) == (256 << 20, 2)
    assert shared > 64  # Kubernetes 1.20 counts it as memory and 1.22 sizes it


def test_replica_that_exceeds_its_memory_fails_for_that(bench: KubernetesBench) -> None:
    command = "python3 -c 'x = bytearray(300 << 20); print(len(x))'"
    seen = wait_until_over(bench.backend, bench.backend.submit(bench.submission(role(command))))
    assert seen.state is State.FAILED
    assert seen.reason.code is ReasonCode.OUT_OF_MEMORY
    assert seen.reason.params["limit_mib"] == 64


def test_time_limit_stops_the_job(bench: KubernetesBench) -> None:
    handle = bench.backend.submit(bench.submission(role("sleep 60"), time_limit_s=3, grace_s=1))
    seen = wait_until_over(bench.backend, handle)
    assert (seen.state, seen.reason.code) == (State.STOPPED, ReasonCode.TIME_LIMIT)
    assert seen.reason.params["limit_s"] == 3


TRAP = "trap 'echo got USR1' USR1; trap 'echo got TERM; exit 5' TERM; echo up; while :; do sleep 0.1; done"


def test_warning_signal_comes_before_the_time_limit(bench: KubernetesBench) -> None:
    warning = EndSignal(signal="USR1", seconds_before=6)
    job = bench.submission(role(TRAP), time_limit_s=10, grace_s=5, end_signal=warning)
    handle = bench.backend.submit(job)

    def has_warned() -> bool:
        bench.backend.observe([handle])
        return "got USR1" in log_of(bench.backend, handle)

    wait_for(has_warned)
    assert _state(bench, handle) is State.RUNNING
    seen = wait_until_over(bench.backend, handle)
    assert seen.reason.code is ReasonCode.TIME_LIMIT
    log = log_of(bench.backend, handle)
    assert log.count("got USR1") == 1
    assert log.endswith("got TERM\n"), "what is written within the grace period is kept"


def test_stop_sends_its_signal_and_then_ends_the_job(bench: KubernetesBench) -> None:
    handle = bench.backend.submit(bench.submission(role(TRAP)))
    wait_for(lambda: "up" in log_of(bench.backend, handle))
    bench.backend.stop(handle, grace_s=6, signal="USR1")
    wait_for(lambda: "got USR1" in log_of(bench.backend, handle))
    assert _state(bench, handle) is State.RUNNING
    seen = wait_until_over(bench.backend, handle)
    assert seen.state is State.STOPPED
    assert replica(seen).exit_code in (5, None)  # kubelets of 1.20 may lose it (ContainerStatusUnknown)


def test_job_runs_on_allowed_nodes_alone(bench: KubernetesBench) -> None:
    chosen = bench.backend.submit(bench.submission(role(nodes=NodeChoice(only=("node2",)))))
    avoiding = bench.backend.submit(bench.submission(role(nodes=NodeChoice(never=("node1",)))))
    assert replica(wait_until_over(bench.backend, chosen)).node == "node2"
    assert replica(wait_until_over(bench.backend, avoiding)).node == "node2"


def test_job_that_no_node_is_labelled_for_waits_with_the_reason(bench: KubernetesBench) -> None:
    handle = bench.backend.submit(bench.submission(role(nodes=NodeChoice(labels={"zone": "nowhere"}))))

    def waiting() -> bool:
        seen = bench.backend.observe([handle])[handle]
        assert isinstance(seen, Observation)
        assert seen.state is State.PENDING
        return seen.reason.code is ReasonCode.ENGINE_QUEUE and seen.phase is Phase.QUEUING

    wait_for(waiting)
    seen = bench.backend.observe([handle])[handle]
    assert isinstance(seen, Observation)
    assert seen.reason.params["kubernetes"] in ("NodeAffinity", "Unschedulable")
    bench.backend.stop(handle, grace_s=0, signal="KILL")
    assert wait_until_over(bench.backend, handle).state is State.STOPPED


def test_init_containers_run_in_order_and_share_folders(bench: KubernetesBench) -> None:
    first = PodContainer(name="fetch", command=("sh", "-c", "echo one >>/mnt/shared/file"))
    second = PodContainer(name="fetch", command=("sh", "-c", "echo two >>/mnt/shared/file"))
    job = bench.submission(
        role("cat /mnt/shared/file", init_containers=(first, second), shared_paths=("/mnt/shared",))
    )
    handle = bench.backend.submit(job)
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED
    assert log_of(bench.backend, handle) == "one\ntwo\n"


def test_sidecar_runs_beside_the_command_and_ends_with_it(bench: KubernetesBench) -> None:
    stays = PodContainer(name="stays", command=("sh", "-c", "echo up >/mnt/shared/file; sleep 600"))
    fails = PodContainer(name="fails", command=("sh", "-c", "exit 7"))
    command = "until [ -s /mnt/shared/file ]; do sleep 0.1; done; cat /mnt/shared/file; exit 3"
    job = bench.submission(role(command, sidecars=(stays, fails), shared_paths=("/mnt/shared",)), grace_s=1)
    handle = bench.backend.submit(job)
    seen = wait_until_over(bench.backend, handle)
    assert (seen.state, replica(seen).exit_code) == (State.FAILED, 3)
    assert log_of(bench.backend, handle) == "up\n"
    wait_for(lambda: not bench.pods(), 60)


def test_failed_init_container_fails_the_job_by_its_name(bench: KubernetesBench) -> None:
    failing = PodContainer(name="Fetch data", command=("sh", "-c", "exit 4"))
    seen = wait_until_over(
        bench.backend, bench.backend.submit(bench.submission(role(init_containers=(failing,))))
    )
    assert seen.reason.code is ReasonCode.INIT_CONTAINER_FAILED
    assert seen.reason.params["container"] == "fetch-data"
    assert seen.reason.params["exit_code"] == 4


def test_folder_of_nodes_is_mounted_read_only_unless_named_writable(
    bench: KubernetesBench, tmp_path: Path
) -> None:
    (bench.judge / "data").mkdir()
    (bench.judge / "data/file").write_text("of the node\n")
    (bench.judge / "link").symlink_to("/etc")
    data = Mount(uri=str(bench.judge / "data"), path="/mnt/data", read_only=True)
    command = "cat /mnt/data/file; echo >/mnt/data/new && echo written; ls /mnt"
    handle = bench.backend.submit(bench.submission(role(command), mounts=(data,)))
    wait_until_over(bench.backend, handle)
    log = log_of(bench.backend, handle)
    assert log.startswith("of the node\n")
    assert "written" not in log
    outside = Mount(uri=str(bench.judge / "link"), path="/mnt/etc")
    handle = bench.backend.submit(bench.submission(role("cat /mnt/etc/shadow"), mounts=(outside,)))
    wait_for(lambda: _phase(bench, handle) is not Phase.CREATING)
    bench.backend.stop(handle, grace_s=0, signal="KILL")
    wait_until_over(bench.backend, handle)
    assert "root:" not in log_of(bench.backend, handle)


def _phase(bench: KubernetesBench, handle: object) -> Phase:
    (seen,) = bench.backend.observe([handle]).values()  # type: ignore[list-item]
    assert isinstance(seen, Observation)
    return seen.phase


def test_uploaded_code_is_in_the_working_folder(bench: KubernetesBench, tmp_path: Path) -> None:
    content = tmp_path / "content"
    text = b"print('hello from upload')\n"
    content.write_bytes(text)
    digest = "1" * 64
    tree = Tree.of(
        [Entry("src/main.py", Kind.FILE, digest, len(text)), Entry("go", Kind.LINK, target="src/main.py")]
    )
    upload = "a" * 64
    job = bench.submission(
        role("python3 /job/code/go"),
        code=CodeSource(uri=f"upload://{upload}"),
        uploads={upload: Supplied(len(text), tree, {digest: (str(content), 0)})},
    )
    handle = bench.backend.submit(job)
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED
    assert log_of(bench.backend, handle) == "hello from upload\n"


def test_code_from_an_archive_and_data_of_a_bucket_are_fetched_before_the_command(
    bench: KubernetesBench,
) -> None:
    host = "oss://vendor.oss-cn-beijing.aliyuncs.com"
    sets = Mount(uri=f"{host}/in", path="/mnt/in", read_only=True)
    command = "tool/say; cat '/mnt/in/sub dir/two'; touch /mnt/in/x 2>/dev/null || echo shut; env"
    lost = Mount(uri="hdfs://lost:9000/x", path="/mnt/x", read_only=True)
    login = base64.b64encode(b"bob:hunter").decode()
    files = {"/tool.tar.gz": tar(("say", "#!/bin/sh\necho packed\n"))}
    with (
        bench.cluster.enter_network() as address,
        serve(address) as bucket,
        served(Web, address, files=files, login=f"Basic {login}") as web,
    ):
        bucket.put_at("team/in/sub dir/two", "two\n")
        known: dict[str, Any] = {"endpoint": bucket.endpoint, "access_key": "AK", "secret_key": "s3cretkey"}
        code = CodeSource(uri=f"http://bob:$SECRET:web@{web[7:]}/tool.tar.gz")
        given = {
            "secrets": {"web": "hunter"},
            "storage": {host: StorageMapping(bucket="s3://sets/team", **known)},
        }
        url, hdfs = f"https://{address}:{inside.API_PORT}", {"hdfs://lost:9000": f"http://{address}:1"}
        backend = Releasing(replace(bench.config, url=url, hdfs=hdfs))
        handle = backend.submit(bench.submission(role(command), code=code, mounts=(sets,), **given))
        seen = wait_until_over(backend, handle)
        log = log_of(backend, handle)
        assert seen.state is State.SUCCEEDED, seen.reason
        assert log.startswith("packed\ntwo\nshut\n")
        assert not re.search("hunter|s3cretkey|X-Amz", log)
        missing = code.model_copy(update={"uri": code.uri.replace("tool", "none")})
        for more, failed in (({"code": missing}, "CODE_FAILED"), ({"mounts": (lost,)}, "MOUNT_FAILED")):
            handle = backend.submit(bench.submission(role(command), **more, **given))
            seen = wait_until_over(backend, handle)
            assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode[failed])
            assert re.search("404|refused", str(seen.reason.params["error"]))


def test_packages_are_installed_before_the_command(bench: KubernetesBench) -> None:
    """By the pip of the image, from the place that the job itself names; what it says is the reason."""
    wheel(bench.judge)
    wheel(bench.judge, "other")
    (bench.judge / "requirements.txt").write_text("other==1.0\n")
    wheels = Mount(uri=str(bench.judge), path="/mnt/wheels")
    env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/mnt/wheels"}
    asked = Requirements(packages=("tiny==1.0",), directory="/mnt/wheels")
    command = "tiny-says; python3 -c 'import other; other.main()'"
    wanted = bench.submission(role(command), mounts=(wheels,), env=env, requirements=asked)
    handle = bench.backend.submit(wanted)
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED
    assert log_of(bench.backend, handle) == "tiny says hello\nother says hello\n"
    absent = Requirements(packages=("absent==1.0",))
    wanted = bench.submission(role(), mounts=(wheels,), env=env, requirements=absent)
    seen = wait_until_over(bench.backend, bench.backend.submit(wanted))
    assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.REQUIREMENTS_FAILED)
    assert seen.reason.params["error"] == "ERROR: No matching distribution found for absent==1.0"


def test_requested_port_is_ready_when_something_listens(bench: KubernetesBench) -> None:
    go = bench.judge / "go"
    serve = 'exec python3 -m http.server "$PAI_CONTAINER_HOST_tb_PORT_LIST"'
    command = f"until [ -e {go} ]; do sleep 0.1; done; {serve}"
    job = bench.submission(role(command, ports=(Port(label="tb", begin_at=6006),)))
    handle = bench.backend.submit(job)

    def is_ready() -> bool:
        seen = bench.backend.observe([handle])[handle]
        assert isinstance(seen, Observation)
        (endpoint,) = replica(seen).endpoints
        assert (endpoint.label, endpoint.port) == ("tb", 6006)
        return endpoint.ready

    wait_for(lambda: _state(bench, handle) is State.RUNNING)
    assert not is_ready()
    go.touch()
    wait_for(is_ready)


def _state(bench: KubernetesBench, handle: object) -> State:
    (seen,) = bench.backend.observe([handle]).values()  # type: ignore[list-item]
    assert isinstance(seen, Observation)
    return seen.state


def test_image_that_can_not_be_pulled_fails_the_job(
    bench: KubernetesBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "IMAGE_WAIT_S", 2)
    handle = bench.backend.submit(bench.submission(role(image="registry.invalid/none:1")))
    seen = wait_until_over(bench.backend, handle)
    assert seen.state is State.FAILED
    assert seen.reason.code is ReasonCode.IMAGE_FAILED
    assert "registry.invalid" in str(seen.reason.params["error"])
    wait_for(lambda: not bench.pods())


def test_inventory_lists_jobs_of_others_and_tells_why_nodes_are_closed(
    bench: KubernetesBench, kubernetes: Cluster
) -> None:
    pod = {
        "metadata": {"name": "foreign"},
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "localhost/base:12",
                    "command": ["sleep", "60"],
                    "resources": {"requests": {"cpu": "150m", "memory": "32Mi"}},
                }
            ]
        },
    }
    path = f"/api/v1/namespaces/{bench.namespace}/pods"
    bench.api.create(path, pod)
    try:
        wait_for(lambda: _foreign(bench) and _foreign(bench)[0].nodes)
        (job,) = _foreign(bench)
        assert (job.cpu_milli, job.memory_mib, job.handle) == (150, 32, None)
        kubernetes.kubectl("cordon", "node1")
        node = next(each for each in bench.backend.inventory().nodes if each.name == "node1")
        assert (node.schedulable, node.why) == (False, "SchedulingDisabled")
        assert [gpu.index for gpu in node.gpus] == [0, 1, 2, 3]
    finally:
        kubernetes.kubectl("uncordon", "node1")
        bench.api.delete(f"{path}/foreign", grace_s=0)


def _foreign(bench: KubernetesBench) -> list:  # type: ignore[type-arg]
    jobs = bench.backend.inventory().jobs or ()
    return [job for job in jobs if job.name == "foreign" and job.number.startswith(bench.namespace)]


def test_dry_run_tells_the_api_servers_refusal_and_starts_nothing(
    bench: KubernetesBench, kubernetes: Cluster
) -> None:
    found = {each.what: each for each in bench.backend.dry_run(bench.submission())}
    assert (found["accepted"].ok, found["room"].ok) == (True, True)
    bad = bench.submission(role(nodes=NodeChoice(labels={"not a label": "x"})))
    (refused,) = bench.backend.dry_run(bad)
    assert refused.ok is False
    assert refused.reason is not None
    assert "not a label" in str(refused.reason.params["detail"])
    assert refused.pointer == "/roles/0/nodes"
    bad = bench.submission(role(), role(name="other", nodes=NodeChoice(labels={"not a label": "x"})))
    (refused,) = bench.backend.dry_run(bad)
    assert refused.pointer == "/roles/1/nodes"
    assert bench.pods() == []


def test_job_over_a_namespaces_quota_waits_until_it_is_raised(
    bench: KubernetesBench, kubernetes: Cluster
) -> None:
    path = f"/api/v1/namespaces/{bench.namespace}/resourcequotas"
    bench.api.create(path, {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}})
    try:
        wait_for(lambda: bench.api.get(f"{path}/few").get("status", {}).get("hard"))
        handle = bench.backend.submit(bench.submission(role("sleep 0.1", replicas=2)))
        seen = bench.backend.observe([handle])[handle]
        assert isinstance(seen, Observation)
        assert seen.state is State.PENDING
        wait_for(bench.pods)
        with pytest.raises(NotSubmitted):
            bench.backend.submit(bench.submission())
        bench.api.patch(f"{path}/few", {"spec": {"hard": {"pods": "9"}}})
        assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED
    finally:
        bench.api.delete(f"{path}/few")


def test_connection_test_names_each_missing_right(bench: KubernetesBench) -> None:
    assert bench.backend.check().lacking == ()
    assert bench.backend.check().nodes == ("node1", "node2")


def test_preview_shows_the_pod_without_secrets(bench: KubernetesBench) -> None:
    job = bench.submission(
        secret_env={"TOKEN": SecretRef(name="mine")}, secrets={"mine": "hunter"}, endpoint_token="hunter"
    )
    shown = bench.backend.render(job)
    assert "hunter" not in repr(shown)
    assert '"kind": "Pod"' in shown.roles[0].script
    assert shown.roles[0].env["TOKEN"] == "***"

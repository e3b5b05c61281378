"""Images, in a real podman with a store of its own."""

import os
import shlex
import signal
import socket
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import Refused
from jobs.backends.local import accept
from jobs.backends.staging import job_secrets
from jobs.node import files
from jobs.node.network.uplink import host_addresses
from jobs.node.sandbox import engine
from jobs.node.sandbox.folders import SharedFolderRule
from jobs.node.sandbox.isolation import Isolation
from jobs.spec import CodeSource, Mount, MountPurpose, Port, RegistryAuth, Resources, SecretRef
from jobs.states import ReasonCode, ReplicaState, State
from tests.jobs.backends.benches import LocalBench, log_of, replica, role, wait_until_over
from tests.jobs.backends.local import goods
from tests.jobs.backends.local.images import IMAGE, list_containers
from tests.waiting import wait_for

ROOM = Resources(cpu_milli=500, memory_mib=256)


@pytest.fixture
def bench(tmp_path: Path, store: tuple[str, ...]) -> Iterator[LocalBench]:
    made = LocalBench(tmp_path, {"engine": "podman", "engine_options": store})
    yield made
    made.close()


@pytest.mark.parametrize(
    ("searched", "asked"),
    [("", "docker.io/sitonholy/tensorflow:2"), ('"quay.io"', "sitonholy/tensorflow:2")],
)
def test_unqualified_image_uses_docker_hub_unless_registry_is_configured(
    searched: str, asked: str, store: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = tmp_path / "registries.conf"
    conf.write_text(f"unqualified-search-registries = [{searched}]\n")
    monkeypatch.setenv("CONTAINERS_REGISTRIES_CONF", str(conf))
    podman = engine.Engine(engine.detect("podman", store).command)
    assert podman.pull("sitonholy/tensorflow:2", None)[-1] == asked
    for named in ("localhost/small:1", "host:5000/a", "ghcr.io/a/b"):
        assert podman.pull(named, None)[-1] == named


def inside(command: str, **more: Any) -> Any:
    return role(command, image=IMAGE, **more)


def containers(bench: LocalBench) -> str:
    return list_containers(bench.config.engine_options)


def test_container_has_names_of_all_replicas_in_own_network(bench: LocalBench) -> None:
    if not bench.config.has_own_network(Isolation.PERSONS, ("podman",)):
        pytest.skip("no own networks here")
    command = "cat /proc/sys/kernel/hostname /etc/hosts /etc/resolv.conf; echo $PAI_CONTAINER_HOST_IP"
    submission = bench.submission(inside(command, replicas=2, completion={"min_succeeded": 2}))
    handle = bench.backend.submit(replace(submission, egress=()))
    wait_until_over(bench.backend, handle)
    lines = log_of(bench.backend, handle, index=1).splitlines()
    name = f"{submission.job_id}-worker"
    assert (lines[0], lines[-2], lines[-1]) == (f"{name}-1", "nameserver 169.254.77.1", "10.66.0.3")
    assert {f"10.66.0.2\t{name}-0 worker-0", f"10.66.0.3\t{name}-1 worker-1"} <= set(lines)


def test_image_command_runs_with_job_environment(bench: LocalBench) -> None:
    command = """
    cat /etc/marker; echo err >&2; id -u; echo $PAI_JOB_NAME $HOME $TOKEN; echo "$LINES"; touch made
    ls -A /job; grep -E '^(NoNewPrivs|CapEff)' /proc/self/status; echo $PATH | grep -c bin; exit 7
    """
    spec = inside(command, env={"LINES": "one\ntwo"}, ports=(Port(label="http"),))
    handle = bench.backend.submit(
        bench.submission(spec, secret_env={"TOKEN": SecretRef(name="t")}, secrets={"t": "s3cret"})
    )
    seen = wait_until_over(bench.backend, handle)
    one = replica(seen)
    uid = bench.config.uid_base + 7
    assert log_of(bench.backend, handle).splitlines() == [
        "inside",
        "err",
        str(uid),
        "bench /job s3cret",
        "one",
        "two",
        "made",
        "CapEff:\t0000000000000000",
        "NoNewPrivs:\t1",
        "1",
    ]
    assert (one.state, one.exit_code, one.image_used) == (ReplicaState.FAILED, 7, True)
    assert (bench.attempt(handle) / "work/worker-0/made").stat().st_uid == uid
    assert Path(one.log_path).stat().st_uid == os.geteuid()
    assert containers(bench) == ""
    assert not list(bench.attempt(handle).glob("replicas/*/env"))


def test_stop_reaches_whole_container_and_leaves_none(bench: LocalBench) -> None:
    command = "trap 'echo ended; exit 0' TERM; echo up; while :; do sleep 0.1; done"
    handle = bench.backend.submit(bench.submission(inside(command, replicas=2)))
    wait_for(lambda: all("up" in log_of(bench.backend, handle, index=index) for index in (0, 1)))
    bench.backend.stop(handle, grace_s=15, signal="TERM")
    seen = wait_until_over(bench.backend, handle)
    assert seen.state is State.STOPPED
    assert "ended" in log_of(bench.backend, handle)
    assert containers(bench) == ""


def test_container_ignoring_stop_is_killed(bench: LocalBench) -> None:
    handle = bench.backend.submit(
        bench.submission(inside("trap '' TERM; echo up; while :; do sleep 0.1; done"))
    )
    wait_for(lambda: log_of(bench.backend, handle))
    bench.backend.stop(handle, grace_s=1, signal="TERM")
    seen = wait_until_over(bench.backend, handle)
    assert replica(seen).exit_code == 137
    assert containers(bench) == ""


def test_container_over_memory_limit_ends_whole(bench: LocalBench) -> None:
    spec = inside(
        "(head -c 300000000 /dev/zero | tail); echo went on; sleep 60", resources=Resources(memory_mib=64)
    )
    handle = bench.backend.submit(bench.submission(spec))
    seen = wait_until_over(bench.backend, handle)
    assert seen.reason.code is ReasonCode.OUT_OF_MEMORY
    assert containers(bench) == ""


def test_lost_wrapper_removes_its_container(bench: LocalBench) -> None:
    handle = bench.backend.submit(bench.submission(inside("echo up; sleep 60")))
    wait_for(lambda: log_of(bench.backend, handle))
    for pid in bench.processes("jc-wrapper"):
        os.kill(pid, signal.SIGKILL)
    seen = wait_until_over(bench.backend, handle)
    assert seen.reason.code is ReasonCode.WRAPPER_LOST
    assert containers(bench) == ""
    wait_for(lambda: not bench.processes())


def test_container_survives_supervisor_restart(bench: LocalBench) -> None:
    command = "for i in $(seq 30); do echo line $i; sleep 0.05; done; exit 4"
    handle = bench.backend.submit(bench.submission(inside(command)))
    wait_for(lambda: log_of(bench.backend, handle))
    bench.restart_controller()
    seen = wait_until_over(bench.backend, handle)
    assert replica(seen).exit_code == 4
    assert log_of(bench.backend, handle).splitlines() == [f"line {number}" for number in range(1, 31)]


def test_failed_container_is_retained_on_request_until_folder_removal(bench: LocalBench) -> None:
    """The command that is told gives its files."""
    handle = bench.backend.submit(bench.submission(inside("exit 1"), keep_failed_s=3600))
    one = replica(wait_until_over(bench.backend, handle))
    assert containers(bench).split() == [f"{handle}.worker-0"]
    assert one.reason is not None
    assert one.reason.params["kept_s"] == 3600
    assert (bench.home / str(one.reason.params["kept_folder"])).is_dir()
    subprocess.run(shlex.split(str(one.reason.params["kept_container"])), cwd=bench.judge, check=True)
    with tarfile.open(bench.judge / f"{handle}.worker-0.tar") as archive:
        found = archive.extractfile("etc/marker")
        assert found is not None
        assert found.read() == b"inside\n"
    bench.backend.forget(handle)
    assert containers(bench) == ""


def test_container_without_own_failure_is_not_retained(bench: LocalBench) -> None:
    for command in ("exit 0", "echo up; sleep 60"):
        handle = bench.backend.submit(bench.submission(inside(command), keep_failed_s=3600))
        if command != "exit 0":
            wait_for(lambda: "up" in log_of(bench.backend, handle))  # noqa: B023 it is over by then
            bench.backend.stop(handle, grace_s=0, signal="KILL")
        one = replica(wait_until_over(bench.backend, handle))
        assert containers(bench) == ""
        assert one.reason is not None
        assert "kept_s" not in one.reason.params


def test_unavailable_image_fails_replica_and_runs_nothing(tmp_path: Path, store: tuple[str, ...]) -> None:
    bench = LocalBench(tmp_path, {"engine": "podman", "engine_options": store, "allow_plain": True})
    spec = role("echo ran", image="127.0.0.1:1/absent:1")
    login = RegistryAuth(registry="127.0.0.1:1", username="me", password=SecretRef(name="p"))
    handle = bench.backend.submit(bench.submission(spec, registry_auth=login, secrets={"p": "s3cret"}))
    seen = wait_until_over(bench.backend, handle)
    one = replica(seen)
    assert one.reason is not None
    assert (one.state, one.reason.code) == (ReplicaState.FAILED, ReasonCode.IMAGE_FAILED)
    assert "127.0.0.1:1" in str(one.reason.params["error"])
    assert "ran" not in log_of(bench.backend, handle).split()
    wait_for(lambda: not list(bench.attempt(handle).glob("replicas/*/config.json")))
    assert not [
        path for path in bench.attempt(handle).rglob("*") if path.is_file() and b"s3cret" in path.read_bytes()
    ]
    bench.close()


def test_image_job_without_engine_is_refused_or_marked(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    strict = LocalBench(tmp_path / "a", {"engine": "none"})
    with pytest.raises(Refused) as refused:
        strict.backend.submit(strict.submission(inside("echo ran")))
    assert refused.value.reason.params == {"why": "no_image_engine", "image": IMAGE}
    facilities = strict.backend.inventory().facilities
    assert facilities is not None
    assert not facilities.images
    lenient = LocalBench(tmp_path / "b", {"engine": "none", "allow_plain": True})
    handle = lenient.backend.submit(lenient.submission(inside("echo ran")))
    seen = wait_until_over(lenient.backend, handle)
    assert replica(seen).image_used is False
    assert log_of(lenient.backend, handle) == "ran\n"
    lenient.close()


def test_job_without_image_reports_no_image_use(local: LocalBench) -> None:
    seen = wait_until_over(local.backend, local.backend.submit(local.submission()))
    assert replica(seen).image_used is None


BOX = engine.ContainerSpec(
    name="n",
    image="i:1",
    command="echo $HOME",
    folders={"/job": "/host"},
    work="/job",
    owner=(5, 6),
    groups="",
    cpu_milli=1500,
    memory_mib=64,
    shm_mib=0,
    pids=9,
    open_files=1024,
    gpus=(1, 3),
)


def test_docker_command_line_carries_limits_gpus_and_command() -> None:
    argv = engine.Engine(["docker"]).run(BOX, Path("/env"), ["LINES"])
    assert argv[:2] == ["docker", "run"]
    for words in (
        "--user=5:6",
        "--init",
        "--memory=64m",
        "--memory-swap=64m",
        "--cpus=1.5",
        "--pids-limit=9",
    ):
        assert words in argv
    assert argv[argv.index("--gpus") + 1] == '"device=1,3"'
    assert argv[-1] == "echo $HOME"
    assert not [words for words in argv if words.startswith(("--log-driver=passthrough", "--pull"))]


def test_podman_command_line_requests_gpus_by_cdi() -> None:
    argv = engine.Engine(["podman"]).run(BOX, Path("/env"), [])
    assert {"--device=nvidia.com/gpu=1", "--device=nvidia.com/gpu=3"} <= set(argv)


def test_container_mounts_allowed_folders(tmp_path: Path, store: tuple[str, ...], place: Path) -> None:
    said: dict[str, Any] = {
        str(place / "sets"): {"workspaces": ["*"]},
        str(place): {"workspaces": ["*"], "write": True},
    }
    named = tuple(SharedFolderRule.from_settings(path, more) for path, more in said.items())
    bench = LocalBench(tmp_path, {"engine": "podman", "engine_options": store, "folders": named})
    command = """
    cat /mnt/s/file; touch /mnt/s/x || echo no; touch /mnt/o/made; touch $PAI_OUTPUT_DIR/made; id -u
    touch /empty/x /job/e/x && ls /empty /job/e; df -k /mem /dev/shm | grep -c ' 3072 '; echo $PAI_OUTPUT_DIR
    """
    memory = {"medium": "Memory", "sizeLimit": "3Mi"}
    mounts = (
        Mount(uri=f"file://{place}/sets", path="/mnt/s"),
        Mount(uri=f"file://{place}/out", path="/mnt/o"),
        Mount(uri=f"{place}/out/new", purpose=MountPurpose.OUTPUT),
        Mount(uri="emptydir://", path="/empty"),
        Mount(uri="emptydir://", path="/job/e"),
        Mount(uri="emptydir://", path="/mem", options=memory),
        Mount(uri="emptydir://", path="/dev/shm", options=memory),
    )
    (place / "out" / "new").mkdir()
    (place / "out" / "new").chmod(0o777)
    handle = bench.backend.submit(bench.submission(inside(command), mounts=mounts))
    seen = wait_until_over(bench.backend, handle)
    assert seen.state is State.SUCCEEDED, log_of(bench.backend, handle)
    lines = [line for line in log_of(bench.backend, handle).splitlines() if "cannot touch" not in line]
    uid = bench.config.uid_base + 7
    listing = ["/empty:", "x", "", "/job/e:", "x"]
    assert lines == ["of the set", "no", str(uid), *listing, "2", f"{place}/out/new"]
    assert (place / "out" / "made").stat().st_uid == uid
    assert (place / "out" / "new" / "made").exists()
    assert containers(bench) == ""
    assert str(bench.config.root) not in Path("/proc/self/mountinfo").read_text()
    bench.close()


def test_link_created_after_check_does_not_escape_container(
    tmp_path: Path, store: tuple[str, ...], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = tmp_path / "faults"
    faults.mkdir()
    (faults / "wrapper.claimed").write_text("STOP")
    monkeypatch.setenv("CONSOLE_FAULTS", str(faults))
    named = (SharedFolderRule.from_settings(str(place), {"workspaces": ["*"], "write": True}),)
    bench = LocalBench(tmp_path, {"engine": "podman", "engine_options": store, "folders": named})
    mounts = (Mount(uri=f"{place}/sets", path="/mnt/x"),)
    handle = bench.backend.submit(bench.submission(inside("ls /mnt/x"), mounts=mounts))
    wait_for(lambda: list(faults.glob("*.taken.*")))
    (place / "sets").rename(place / "before")
    (place / "sets").symlink_to(bench.home)
    seen = wait_until_over(bench.backend, handle)
    assert seen.reason.code is ReasonCode.START_FAILED
    assert "jobs" not in log_of(bench.backend, handle)
    assert containers(bench) == ""
    bench.close()


def test_docker_mount_of_folder_replaceable_by_others_is_refused(tmp_path: Path, place: Path) -> None:
    if os.geteuid():
        pytest.skip("looking into a folder as somebody else needs root")
    config = LocalBench(
        tmp_path,
        {
            "folders": (
                SharedFolderRule.from_settings(str(place), {"workspaces": ["*"], "write": True}),
                SharedFolderRule.from_settings(str(place / "sets"), {"workspaces": ["*"]}),
                SharedFolderRule.from_settings("/opt", {"workspaces": ["*"]}),
            )
        },
    )
    docker = accept.JobRuntime(Isolation.PERSONS, ("docker",))
    for uri in (f"{place}/out", f"{place}/sets", "/opt/x"):
        submission = config.submission(inside("true"), mounts=(Mount(uri=uri, path="/mnt/x"),))
        with pytest.raises(Refused) as refused:
            accept.refuse_impossible(submission, config.config, docker)
        assert refused.value.reason.params == {"why": "mount_unsteady", "place": uri, "setting": "folders"}
    submission = config.submission(inside("true"), mounts=(Mount(uri="/opt", path="/mnt/x"),))
    assert accept.refuse_impossible(submission, config.config, docker).bounds[0].source == "/opt"


def test_container_code_is_fetched_by_host_git_in_separate_view(
    tmp_path: Path, store: tuple[str, ...], place: Path
) -> None:
    goods.repository(place / "repo")
    named = (SharedFolderRule.from_settings(str(place), {"workspaces": ["*"]}),)
    bench = LocalBench(tmp_path, {"engine": "podman", "engine_options": store, "folders": named})
    code_dir = Mount(uri=f"file://{place}/sets", purpose=MountPurpose.CODE, read_only=True)
    command = (
        "cat /root/src/file sets/file; touch sets/x || echo no; touch /root/src/x && stat -c %u /root/src/x"
    )
    source = CodeSource(uri=f"file://{place}/repo", branch="old", path="/root/src")
    handle = bench.backend.submit(bench.submission(inside(command), code=source, mounts=(code_dir,)))
    seen = wait_until_over(bench.backend, handle)
    lines = [line for line in log_of(bench.backend, handle).splitlines() if "cannot touch" not in line]
    assert lines == ["one", "of the set", "no", str(bench.config.uid_base + 7)]
    assert seen.state is State.SUCCEEDED
    nowhere = CodeSource(uri=f"file://{place}/repo", branch="nowhere")
    handle = bench.backend.submit(bench.submission(inside(command), code=nowhere))
    seen = wait_until_over(bench.backend, handle)
    assert seen.reason.code is ReasonCode.CODE_FAILED
    assert seen.reason.params["error"] == "fatal: couldn't find remote ref nowhere"
    assert containers(bench) == ""
    assert (bench.attempt(handle) / "supervisor.log").read_text() == ""
    bench.close()


def test_registry_login_from_file_reaches_engine_only(
    tmp_path: Path, store: tuple[str, ...], place: Path
) -> None:
    """OpenPAI's authFile."""
    named = (SharedFolderRule.from_settings(str(place), {"workspaces": ["*"]}),)
    bench = LocalBench(tmp_path, {"engine": "podman", "engine_options": store, "folders": named})
    file = place / "auth"
    spec = role("echo ran", image="127.0.0.1:1/absent:1")
    for text, told in (("127.0.0.1:1\nme\n", "auth_file"), ("a b c d", "auth_file")):
        file.write_text(text)
        file.chmod(0o644)
        assert _refusal(bench, spec, RegistryAuth(file_uri=f"file://{file}"))["why"] == told
    file.write_text("127.0.0.1:1\nme\ns3cret\n")
    for uri, told in (
        ("hdfs://name/auth", "auth_elsewhere"),
        (f"file://{place}/absent", "auth_file"),
        (f"file://{place}/sets", "auth_file"),
        ("file:///etc/shadow", "mount_not_allowed"),
    ):
        assert _refusal(bench, spec, RegistryAuth(file_uri=uri))["why"] == told
    login = RegistryAuth(file_uri=f"file://{file}")
    submission = bench.submission(spec, registry_auth=login)
    means = accept.JobRuntime(Isolation.PERSONS, ("podman",))
    laid = accept.refuse_impossible(submission, bench.config, means)
    found = job_secrets.secrets_of(submission, bench.config.code(), laid)["registry"]
    assert found == {"registry": "127.0.0.1:1", "username": "me", "password": "s3cret"}
    handle = bench.backend.submit(submission)
    assert wait_until_over(bench.backend, handle).reason.code is ReasonCode.IMAGE_FAILED
    for path in bench.attempt(handle).rglob("*"):
        assert not path.is_file() or b"s3cret" not in path.read_bytes(), path
    bench.close()


def _refusal(bench: LocalBench, spec: Any, login: RegistryAuth) -> dict[str, Any]:
    with pytest.raises(Refused) as refused:
        bench.backend.submit(bench.submission(spec, registry_auth=login))
    return dict(refused.value.reason.params)


def test_container_has_the_network_of_its_replica(bench: LocalBench) -> None:
    """It reaches a replica beside it by name, and no listener of the machine."""
    if not bench.config.has_own_network(Isolation.PERSONS, ("podman",)):
        pytest.skip("jobs have no networks of their own here")
    serve = "import socket; s = socket.create_server(('', 9000)); s.accept(); print('met', flush=True)"
    with socket.create_server(("", 0)) as server:
        hosts = [f"{address}/{server.getsockname()[1]}" for address in host_addresses()]
        ask = f"""
        until (echo > /dev/tcp/plain-0/9000) 2>/dev/null; do sleep 0.05; done; cat /etc/hostname
        for host in {" ".join(hosts)}; do (echo > /dev/tcp/$host) 2>/dev/null && echo reached; done; true
        """
        handle = bench.backend.submit(
            bench.submission(inside(ask), role(f'python3 -Ic "{serve}"', name="plain", resources=ROOM))
        )
        assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED
    assert log_of(bench.backend, handle).split() == ["job0-worker-0"]
    assert log_of(bench.backend, handle, "plain").split() == ["met"]
    started = files.read(bench.attempt(handle) / "replicas/worker-0/started")
    assert started is not None
    assert started["network"] == "own"

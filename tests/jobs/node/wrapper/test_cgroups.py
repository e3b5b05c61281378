"""Limits hold for a replica's whole tree, with the kernel's help and without."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.node import kernel
from jobs.node.sandbox.isolation import Isolation
from jobs.node.wrapper import cgroups, device_program
from jobs.spec import Resources
from jobs.states import ReasonCode, ReplicaState, State
from tests.jobs.backends.benches import LocalBench, log_of, replica, role, wait_until_over
from tests.waiting import wait_for

MODES: dict[str, dict[str, Any]] = {
    "cgroup": {},
    "watchdog": {"limits": "watchdog"},
    "cgroup-none": {"isolation": Isolation.NONE},
    "watchdog-none": {"limits": "watchdog", "isolation": Isolation.NONE},
}

EIGHT_CHILDREN = """
import os, sys, time
for _ in range(8):
    if os.fork() == 0:
        hoard = bytearray(512 << 20)
        for place in range(0, len(hoard), 4096):
            hoard[place] = 1
        time.sleep(60)
        os._exit(0)
print("forked", flush=True)
time.sleep(60)
"""


@pytest.fixture(params=MODES)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalBench]:
    if "cgroup" in request.param and cgroups.usable() is None:
        pytest.skip("no control groups can be made here")
    made = LocalBench(tmp_path, MODES[request.param])
    yield made
    made.close()


@pytest.fixture
def limits(request: pytest.FixtureRequest, bench: LocalBench) -> str:
    return bench.config.limits if bench.config.limits == "watchdog" else "cgroup"


def _python(code: str) -> str:
    """A command that works whatever the job may see of the tests' own interpreter."""
    return f"python3 -c '{code}'"


def test_replica_over_limit_with_children_ends_whole(bench: LocalBench, limits: str) -> None:
    command = _python(EIGHT_CHILDREN)
    resources = Resources(cpu_milli=2000, memory_mib=2048)
    handle = bench.backend.submit(bench.submission(role(command, resources=resources)))
    wait_for(lambda: "forked" in log_of(bench.backend, handle))
    seen = wait_until_over(bench.backend, handle, timeout=60)
    one = replica(seen)
    assert seen.state is State.FAILED
    assert one.state is ReplicaState.FAILED
    assert one.limits == limits
    assert one.reason is not None
    assert one.reason.code is ReasonCode.OUT_OF_MEMORY
    assert one.reason.params == {"limit_mib": 2048, "exit_code": 137}
    assert one.exit_code == 137
    wait_for(lambda: not bench.processes())


def test_child_killed_for_memory_ends_its_replica(
    bench: LocalBench,
) -> None:
    child = (
        "hoard = bytearray(200 << 20); hoard[::4096] = bytes(len(hoard[::4096])); import time; time.sleep(60)"
    )
    command = f"{_python(child)}; echo went on; sleep 60"
    handle = bench.backend.submit(bench.submission(role(command)))
    seen = wait_until_over(bench.backend, handle, timeout=60)
    assert seen.reason.code is ReasonCode.OUT_OF_MEMORY


def test_replica_below_limit_runs_to_completion(bench: LocalBench, limits: str) -> None:
    command = _python(
        "hoard = bytearray(40 << 20); hoard[::4096] = bytes(len(hoard[::4096])); print(len(hoard))"
    )
    handle = bench.backend.submit(bench.submission(role(command)))
    seen = wait_until_over(bench.backend, handle)
    assert seen.state is State.SUCCEEDED
    assert replica(seen).limits == limits


@pytest.fixture
def grouped(tmp_path: Path) -> Iterator[LocalBench]:
    if cgroups.usable() is None:
        pytest.skip("no control groups can be made here")
    made = LocalBench(tmp_path)
    yield made
    made.close()


def test_shared_memory_is_counted_once_by_watchdog(tmp_path: Path) -> None:
    code = """
import mmap, os, time
shared = mmap.mmap(-1, 40 << 20)
shared[::4096] = bytes(len(shared[::4096]))
for _ in range(4):
    if os.fork() == 0:
        sum(shared[::4096]); time.sleep(1.5); os._exit(0)
time.sleep(1.5)
"""
    bench = LocalBench(tmp_path, {"limits": "watchdog"})
    handle = bench.backend.submit(bench.submission(role(_python(code), resources=Resources(memory_mib=110))))
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED
    bench.close()


def test_replica_gets_no_more_than_requested_cpu_time(grouped: LocalBench) -> None:
    code = "import time; end = time.time() + 2\nwhile time.time() < end: pass\nprint(time.process_time())"
    resources = Resources(cpu_milli=250, memory_mib=64)
    handle = grouped.backend.submit(grouped.submission(role(_python(code), resources=resources)))
    wait_until_over(grouped.backend, handle)
    assert float(log_of(grouped.backend, handle)) < 0.25 * 2 * 1.5


def test_fork_bomb_ends_at_process_limit(tmp_path: Path) -> None:
    if cgroups.usable() is None:
        pytest.skip("no control groups can be made here")
    bench = LocalBench(tmp_path, {"pids": 30})
    code = """
import os, time
made = 0
try:
    while made < 200:
        if os.fork() == 0:
            time.sleep(60)
        made += 1
except BlockingIOError:
    print("no more", made)
"""
    resources = Resources(memory_mib=512)
    handle = bench.backend.submit(bench.submission(role(_python(code), resources=resources)))
    wait_until_over(bench.backend, handle)
    words = log_of(bench.backend, handle).split()
    assert words[:2] == ["no", "more"]
    assert int(words[2]) < 30
    bench.close()


def test_shared_memory_size_is_as_requested(grouped: LocalBench) -> None:
    if grouped.backend.isolation() is Isolation.NONE:
        pytest.skip("without namespaces /dev/shm is the machine's own")
    fits = "head -c 9000000 /dev/zero > /dev/shm/x && echo fits"
    command = f"{fits}; head -c 20000000 /dev/zero > /dev/shm/y || echo full"
    resources = Resources(memory_mib=64, shm_mib=16)
    handle = grouped.backend.submit(grouped.submission(role(f"({command}) 2>/dev/null", resources=resources)))
    wait_until_over(grouped.backend, handle)
    assert log_of(grouped.backend, handle).split() == ["fits", "full"]


def test_replica_may_open_many_files_and_dumps_no_core(grouped: LocalBench) -> None:
    handle = grouped.backend.submit(grouped.submission(role("ulimit -n; ulimit -c; ulimit -v; ulimit -u")))
    wait_until_over(grouped.backend, handle)
    files, core, memory, _ = log_of(grouped.backend, handle).split()
    assert int(files) >= min(4096, os.sysconf("SC_OPEN_MAX"))
    assert (core, memory) == ("0", "unlimited")


def test_cgroup_v2_receives_the_same_limits(tmp_path: Path) -> None:
    """No kernel is asked here: the files that are written are what the kernel would read."""
    place = tmp_path / "job-console"
    folder = place / "x"
    folder.mkdir(parents=True)
    for name in ("cgroup.procs", "memory.events"):
        (folder / name).write_text("low 0\noom 0\noom_kill 0\n" if "events" in name else "")
    limits = cgroups.GroupLimits(1500, 2048, 99)
    group = cgroups.ControlGroup.make(cgroups.Hierarchies(place, {}), "x", limits)
    written = {
        path.name: path.read_text()
        for path in folder.iterdir()
        if path.name not in ("cgroup.procs", "memory.events")
    }
    assert written == {
        "memory.max": str(2048 << 20),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "cpu.max": "150000 100000",
        "pids.max": "99",
    }
    assert not group.out_of_memory()
    (folder / "memory.events").write_text("low 0\noom 1\noom_kill 3\n")
    assert group.out_of_memory()
    group.enter()
    assert (folder / "cgroup.procs").read_text() == "0"
    for fd in set(group.files):
        os.close(fd)


def test_cgroup_v2_place_needs_delegated_controllers(tmp_path: Path) -> None:
    (tmp_path / "user.slice" / "me").mkdir(parents=True)
    (tmp_path / "cgroup.subtree_control").write_text("cpu memory pids")
    (tmp_path / "user.slice" / "cgroup.subtree_control").write_text("cpu memory pids")
    (tmp_path / "user.slice" / "me" / "cgroup.subtree_control").write_text("")
    place = cgroups._place_v2(tmp_path, "/user.slice/me")
    assert place == tmp_path / "job-console"
    assert (place / "cgroup.subtree_control").read_text() == "+memory +cpu +pids"
    (tmp_path / "cgroup.subtree_control").write_text("cpu")
    assert cgroups._place_v2(tmp_path, "/user.slice/me") == tmp_path / "user.slice" / "job-console"
    (tmp_path / "user.slice" / "cgroup.subtree_control").write_text("pids")
    assert cgroups._place_v2(tmp_path, "/user.slice/me") is None


@pytest.fixture
def group_v2(tmp_path: Path) -> Iterator[Path]:
    """A group of a real version 2 hierarchy, without controllers: those are of version 1 on some machines."""
    if not device_program.is_usable():
        pytest.skip("no programs for the kernel can be loaded here")
    top = tmp_path / "v2"
    top.mkdir()
    kernel.mount("none", str(top), "cgroup2")
    group = top / f"job-console-test-{os.getpid()}"
    group.mkdir()
    yield group
    group.rmdir()
    kernel.unmount(str(top))


IN_GROUP = """
import os, sys
with open(sys.argv[1], "w") as group:
    group.write("0")
for path in sys.argv[2:]:
    try:
        os.close(os.open(path, os.O_RDWR))
        print(path, "opens")
    except PermissionError:
        print(path, "is refused")
try:
    os.mknod("made", 0o20600, os.makedev(1, 5))
except PermissionError:
    print("made is refused")
"""


def test_process_in_a_version_2_group_opens_permitted_devices_alone(group_v2: Path) -> None:
    zero, one_terminal = Path("/dev/zero").stat().st_rdev, os.openpty()
    device_program.attach(group_v2, [(136, None), (os.major(zero), os.minor(zero))])
    terminal = os.ttyname(one_terminal[1])
    opened = ("/dev/zero", "/dev/full", "/dev/tty0", terminal)
    command = [sys.executable, "-c", IN_GROUP, str(group_v2 / "cgroup.procs"), *opened]
    said = subprocess.run(command, check=True, capture_output=True, text=True, cwd=group_v2.parents[1]).stdout
    assert said.splitlines() == [
        "/dev/zero opens",
        "/dev/full is refused",
        "/dev/tty0 is refused",
        f"{terminal} opens",
        "made is refused",
    ]
    for descriptor in one_terminal:
        os.close(descriptor)

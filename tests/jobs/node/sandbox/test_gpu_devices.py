"""A replica has the device nodes of its own GPUs, and can't open others by another name."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobs.node.sandbox import gpu_devices
from jobs.node.sandbox.isolation import Isolation
from jobs.node.wrapper import cgroups
from tests.jobs.backends.benches import CHECKOUT, LocalBench, log_of, role, wait_until_over

PCI = ("0000:01:00.0", "0000:41:00.0")
NULL, ZERO = os.makedev(1, 3), os.makedev(1, 5)
INSIDE = """
import os, sys
from pathlib import Path
from jobs.node import kernel
from jobs.node.command import Command
from jobs.node.sandbox import root_file_system, sandbox_exec
from jobs.node.sandbox.isolation import Isolation
mode, folder, own, code = sys.argv[1:]
for name in ("work", "tmp"):
    Path(folder, name).mkdir()
    Path(folder, name).chmod(0o777)
def enter():
    root_file_system.enter(root_file_system.RootFileSystem(
        folder + "/work", folder + "/tmp", 1, (folder,), read_only=mode == "namespaces", devices=(own,)))
owner = (65534, 65534) if mode == "persons" else None
program = Command(["/bin/sh", "-c", code], {"PATH": "/usr/bin:/bin"}, "/", owner)
sandbox_exec.run(Isolation(mode), enter, program)
"""
LOOK = """
ls -d /dev/nvidia*; head -c 1 {own} | wc -c
mknod /tmp/other c 1 3 2>/dev/null && echo MADE
mkdir /tmp/dev; mount -t devtmpfs none /tmp/dev 2>/dev/null && ls /tmp/dev
mount --bind {other} /tmp/dev 2>/dev/null && echo BOUND
cat {other} 2>/dev/null && echo OPEN
echo tried
"""


@pytest.fixture
def nodes() -> Iterator[tuple[Path, Path]]:
    """Two that are like those of GPUs: one of /dev/zero's kind, and one of /dev/null's."""
    if os.geteuid():
        pytest.skip("only root can make device files")
    made = Path(f"/dev/nvidia9{os.getpid()}"), Path(f"/dev/nvidia8{os.getpid()}")
    try:
        for path, number in zip(made, (ZERO, NULL), strict=True):
            os.mknod(path, stat.S_IFCHR | 0o666, number)
            path.chmod(0o666)
        yield made
    finally:
        for path in made:
            path.unlink(missing_ok=True)


@pytest.mark.parametrize("mode", ["persons", "namespaces"])
def test_root_file_system_has_own_gpu_and_no_way_to_another(
    nodes: tuple[Path, Path], tmp_path: Path, mode: str
) -> None:
    own, other = nodes
    look = LOOK.format(own=own, other=other)
    command = [sys.executable, "-c", INSIDE, mode, str(tmp_path), str(own), look]
    ran = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=False)
    assert ran.stdout.split() == [str(own), "1", "tried"], ran.stderr


@pytest.mark.parametrize("mode", [Isolation.PERSONS, Isolation.NAMESPACES])
def test_job_without_gpus_has_no_gpu_nodes(
    nodes: tuple[Path, Path], bench_of: Callable[..., LocalBench], mode: Isolation
) -> None:
    bench = bench_of(isolation=mode)
    handle = bench.backend.submit(
        bench.submission(role("ls /dev; head -c 1 /dev/zero >/dev/null && echo works"))
    )
    wait_until_over(bench.backend, handle)
    said = log_of(bench.backend, handle)
    assert said.split()[-1] == "works"
    assert "nvidia" not in said


def test_control_group_permits_listed_device_numbers_alone(nodes: tuple[Path, Path], tmp_path: Path) -> None:
    places = cgroups.usable()
    if places is None or places.devices is None:
        pytest.skip("no control groups of version 1 for devices can be made here")
    own, other = nodes
    name = f"test-{os.getpid()}"
    group = cgroups.ControlGroup.make(places, name, cgroups.GroupLimits(1000, 256, 100, (str(own),)))
    copy = tmp_path / "copy"
    os.mknod(copy, stat.S_IFCHR | 0o666, NULL)
    try:
        shell = f"head -c 1 {own} | wc -c; cat {other}; cat {copy}; mknod {copy}2 c 1 3"
        ran = subprocess.run(
            ["/bin/sh", "-c", shell], preexec_fn=group.enter, capture_output=True, text=True, check=False
        )
        assert ran.stdout.split() == ["1"]
        assert ran.stderr.count("Operation not permitted") == 3
    finally:
        for fd in set(group.files):
            os.close(fd)
        cgroups.remove(places, name)


def test_gpu_nodes_follow_minor_numbers_and_pci_addresses(tmp_path: Path) -> None:
    files = {
        f"proc/driver/nvidia/gpus/{PCI[0]}/information": "Model: X\nDevice Minor: \t 1\nGPU Excluded:\t No\n",
        f"proc/driver/nvidia/gpus/{PCI[1]}/information": "Device Minor: 0\n",
        "proc/driver/nvidia/capabilities/gpu0/mig/gi1/access": "DeviceFileMinor: 12\n",
        **{f"dev/{name}": "" for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-caps/nvidia-cap12")},
        **{f"dev/{name}": "" for name in ("dri/renderD128", "dri/renderD129", "kfd")},
        f"sys/devices/{PCI[1]}/vendor": "0x10de\n",
        "sys/devices/0000:81:00.0/vendor": "0x1002\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for render, address in (("renderD128", PCI[1]), ("renderD129", "0000:81:00.0")):
        folder = tmp_path / "sys/class/drm" / render
        folder.mkdir(parents=True)
        (folder / "device").symlink_to(tmp_path / "sys/devices" / address)
    assert gpu_devices.nodes_of((0,), tmp_path) == ("/dev/nvidia1", "/dev/nvidiactl")
    second = ("/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap12", "/dev/dri/renderD128", "/dev/nvidiactl")
    assert gpu_devices.nodes_of((1,), tmp_path) == second
    assert gpu_devices.nodes_of((2,), tmp_path) == ("/dev/kfd", "/dev/dri/renderD129")
    assert gpu_devices.nodes_of((3,), tmp_path) == ()

"""What a replica uses: CPU and memory of real processes, and GPUs by a library that speaks as NVML does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.backends.local import gpus
from jobs.backends.measures import Measuring, Transferred, Use
from jobs.spec import Resources
from tests.jobs.backends.benches import LocalBench, role, wait_until_over
from tests.waiting import wait_for

SOURCE = Path(__file__).with_name("nvml.c")


@pytest.fixture(scope="session")
def nvml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a library that is loaded where the driver's would be."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler (Debian: gcc)")
    folder = tmp_path_factory.mktemp("nvml")
    library = folder / "libnvidia-ml.so.1"
    command = [compiler, "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(library), str(SOURCE)]
    subprocess.run(command, check=True)
    return folder


def ask(nvml: Path, says: str, program: str) -> str:
    """What `program` prints in a process that finds this library."""
    env = {**os.environ, "LD_LIBRARY_PATH": str(nvml), "NVML_SAYS": says}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=env, cwd=Path.cwd(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def busy(nvml: Path, says: str, pids: str = "()", index: int = 0) -> str:
    program = f"""
from jobs.backends.local import gpus
with gpus.open_reader() as reader:
    print(reader.busy({index}, {pids}))
"""
    return ask(nvml, says, program)


def test_gpu_discovery_reads_gpus_from_nvml_library(nvml: Path) -> None:
    said = ask(
        nvml, "0 2", "from jobs.backends.local import gpus; print(len(gpus.find_gpus()), gpus.find_gpus()[1])"
    )
    assert said == "2 Gpu(index=1, type='TITANX', memory_mib=12288)"


def test_gpu_use_without_process_data_counts_whole_device(nvml: Path) -> None:
    assert busy(nvml, "63 1") == "63"


def test_gpu_use_counts_only_own_processes(nvml: Path) -> None:
    me, other = os.getpid(), os.getppid()
    assert busy(nvml, f"97 1 {me}:12 {other}:85", f"({me},)") == "12"
    assert busy(nvml, f"85 1 {other}:85", f"({me},)") == "0"


def test_gpu_use_counts_invisible_process_as_own(nvml: Path) -> None:
    """Another namespace's numbers, or one that has just ended."""
    assert busy(nvml, f"40 1 {2**22 + 7}:85", f"({os.getpid()},)") == "85"


@pytest.mark.parametrize(("says", "index"), [("- 1", 0), ("50 1", 1), ("", 0)])
def test_gpu_use_unreported_by_driver_is_unknown(nvml: Path, says: str, index: int) -> None:
    assert busy(nvml, says, index=index) == "None"


def measured(local: LocalBench, handle: object) -> Use:
    backend = local.backend
    assert isinstance(backend, Measuring)
    found = backend.measure([handle])  # type: ignore[list-item]  # a Handle
    return next(iter(found[handle]))  # type: ignore[index]


def test_cpu_and_memory_use_cover_all_processes(local: LocalBench) -> None:
    roomy = Resources(cpu_milli=1000, memory_mib=512)
    command = "python3 -c 'x = bytearray(100 << 20)\nwhile True: pass' & wait"
    handle = local.backend.submit(local.submission(role(command, resources=roomy)))

    def works() -> bool:
        try:
            use = measured(local, handle)
        except StopIteration:
            return False
        return (use.cpu_s or 0) > 0.5 and (use.memory_mib or 0) >= 100

    wait_for(works, 60, 0.2)
    use = measured(local, handle)
    assert (use.role, use.index, use.gpu_percents) == ("worker", 0, ())
    later = measured(local, handle)
    assert (later.cpu_s or 0) >= (use.cpu_s or 0)
    local.backend.stop(handle, grace_s=0, signal="KILL")
    wait_until_over(local.backend, handle)
    with pytest.raises(StopIteration):
        measured(local, handle)


NETWORK_AND_DISK = """\
dd if=/dev/zero of=file bs=1M count=8 conv=fsync
python3 -c '
import socket
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(2000):
    sender.sendto(bytes(1000), ("192.0.2.1", 9))'
exec sleep 60
"""


def test_disk_and_network_use_are_the_replicas_own(local: LocalBench) -> None:
    """What children that have ended wrote counts too."""
    roles = role("exec sleep 60", name="quiet"), role(NETWORK_AND_DISK, name="loud")
    handle = local.backend.submit(local.submission(*roles))

    def look(name: str) -> Transferred:
        uses = local.backend.measure([handle]).get(handle, ())
        return next((use.transferred for use in uses if use.role == name), Transferred())

    def wrote_and_sent() -> bool:
        found = look("loud")
        return (found.disk_written or 0) >= 8 << 20 and (found.sent is None or found.sent > 2000 * 1000)

    wait_for(wrote_and_sent, 60, 0.2)
    quiet = look("quiet")
    assert (quiet.disk_written or 0) < 1 << 20
    assert (quiet.sent is not None) == local.config.has_own_network(local.backend.isolation())
    assert (quiet.sent or 0) < 1 << 20


def test_gpus_known_only_from_settings_are_not_measured(tmp_path: Path) -> None:
    bench = LocalBench(tmp_path, {"gpus": {"TITANX": 1}})
    try:
        resources = Resources(cpu_milli=100, memory_mib=64, gpus=1)
        handle = bench.backend.submit(bench.submission(role("exec sleep 60", resources=resources)))
        wait_for(lambda: bool(bench.backend.measure([handle])[handle]), interval=0.2)
        assert measured(bench, handle).gpu_percents is None
    finally:
        bench.close()


def test_gpu_use_without_driver_is_unknown() -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has a GPU")
    with gpus.open_reader() as reader:
        assert reader.busy(0, ()) is None

"""What nobody gets by mounting it: the console, the machine, other people's folders, what a link leads to."""

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import Person, Refused
from jobs.backends.local.machine import detect_isolation
from jobs.node.sandbox.folder_access import open_bound
from jobs.node.sandbox.folders import SharedFolderRule
from jobs.node.sandbox.isolation import Isolation
from jobs.node.staging.mount_specs import MountKind, MountSpec
from jobs.spec import Mount, MountPurpose
from jobs.states import ReasonCode, State
from tests.jobs.backends.benches import LocalBench, log_of, role, wait_until_over
from tests.waiting import wait_for

ALICE, BOB = Person("alice", 7), Person("bob", 8)
EVERYBODY = {"workspaces": ["*"], "write": True}


@pytest.fixture
def bench(tmp_path: Path, place: Path) -> Iterator[LocalBench]:
    """Everything that an admin could name is named, and everybody may write to it."""
    if detect_isolation(sys.executable) is not Isolation.PERSONS:
        pytest.skip("user ids for every person need root and mount namespaces")
    named = [*map(str, Path("/").iterdir()), str(place), str(place / "home/{user}")]
    named += ["/run", "/proc", "/var/run", str(tmp_path)]
    made = LocalBench(
        tmp_path, {"folders": tuple(SharedFolderRule.from_settings(path, EVERYBODY) for path in named)}
    )
    for person in (ALICE, BOB):
        folder = place / "home" / person.name
        folder.mkdir(parents=True)
        os.chown(folder, *[made.config.uid_base + person.number] * 2)
        (folder / "private").mkdir(mode=0o755)
        (folder / "private" / "diary").write_text(f"of {person.name}\n")
    (made.home / "keys").mkdir()
    (made.home / "keys" / "django").write_text("secret key\n")
    yield made
    made.close()


def why(bench: LocalBench, uri: str, path: str = "/mnt/x", **more: Any) -> Any:
    with pytest.raises(Refused) as refused:
        bench.backend.submit(bench.submission(mounts=(Mount(uri=uri, path=path),), **more))
    return refused.value.reason.params["why"]


def test_mount_of_console_or_system_folder_is_refused(bench: LocalBench) -> None:
    for path in (
        bench.home,
        bench.home / "keys",
        bench.home.parent,
        "/",
        "//",
        "/proc",
        "/proc/1/root",
        "/proc/self/cwd",
        "/sys/fs/cgroup",
        "/dev",
        "/etc",
        "/run",
        "/run/docker.sock",
        "/var/run/docker.sock",
        "/var/lib/docker",
        "/var/lib",
        "/var",
        "/../etc",
        "/home/../etc",
        "/tmp/..",
    ):
        assert why(bench, f"file://{path}") == "mount_not_allowed", path
        assert why(bench, str(path)) == "mount_not_allowed", path


def test_mount_of_another_persons_folder_is_refused(bench: LocalBench, place: Path) -> None:
    mine = f"{place}/home/bob"
    assert why(bench, mine, person=ALICE) == "mount_not_allowed"
    assert why(bench, f"{mine}/private", person=ALICE) == "mount_not_allowed"
    assert why(bench, f"{place}/home", person=ALICE) == "mount_not_allowed"
    assert why(bench, f"{place}/home/alice/../bob", person=ALICE) == "mount_not_allowed"
    handle = bench.backend.submit(
        bench.submission(
            role("cat /mnt/x/private/diary"), mounts=(Mount(uri=mine, path="/mnt/x"),), person=BOB
        )
    )
    wait_until_over(bench.backend, handle)
    assert log_of(bench.backend, handle) == "of bob\n"


def test_mount_of_folder_unreachable_by_person_is_refused(bench: LocalBench, place: Path) -> None:
    """The folder inside is open to all, the one around it is not: a mount would jump over that door."""
    closed = place / "closed"
    (closed / "open").mkdir(parents=True)
    (closed / "open" / "file").write_text("x")
    closed.chmod(0o700)
    assert why(bench, f"{closed}/open", person=ALICE) == "mount_no_folder"
    assert why(bench, f"{closed}/absent", person=ALICE) == "mount_no_folder"
    output = Mount(purpose=MountPurpose.OUTPUT, uri=f"{closed}/made/by/root", path="/mnt/x")
    handle = bench.backend.submit(bench.submission(mounts=(output,), person=ALICE))
    seen = wait_until_over(bench.backend, handle)
    assert seen.reason.code is ReasonCode.MOUNT_FAILED
    assert seen.reason.params["error"] == f"{closed}/made/by/root: Permission denied"
    assert not (closed / "made").exists()


def test_mount_through_link_is_refused(bench: LocalBench, place: Path) -> None:
    mine = place / "home" / "alice"
    for name, target in (("a", bench.home), ("b", place / "home/bob"), ("c", "/etc"), ("d", "private")):
        (mine / name).symlink_to(target)
        assert why(bench, f"{mine}/{name}", person=ALICE) == "mount_no_folder", name
        assert why(bench, f"{mine}/{name}/x", person=ALICE) == "mount_no_folder", name


def test_mount_does_not_follow_link_created_after_check(
    bench: LocalBench, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = tmp_path / "faults"
    faults.mkdir()
    (faults / "wrapper.begun").write_text("STOP")
    monkeypatch.setenv("CONSOLE_FAULTS", str(faults))
    mine = place / "home" / "alice" / "private"
    mount = Mount(uri=str(mine), path="/mnt/x")
    submission = bench.submission(role("ls /mnt/x /mnt/x/keys"), mounts=(mount,), person=ALICE)
    handle = bench.backend.submit(submission)
    wait_for(lambda: list(faults.glob("*.taken.*")))
    mine.rename(mine.with_name("before"))
    mine.symlink_to(bench.home)
    for pid in bench.processes("jc-wrapper"):
        os.kill(pid, signal.SIGCONT)
    seen = wait_until_over(bench.backend, handle)
    assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.MOUNT_FAILED)
    assert seen.reason.params["error"] == f"{mine}: Not a directory"
    assert log_of(bench.backend, handle) == ""


def test_mount_never_follows_alternating_link(place: Path) -> None:
    """A folder and a link to a secret change places as fast as they can, on the way and at its end."""
    secret = place / "secret"
    (secret / "data").mkdir(parents=True)
    shared = place / "shared"
    (shared / "real" / "data").mkdir(parents=True)
    (shared / "link").symlink_to(secret)
    wanted = (shared / "real" / "data").stat().st_ino
    bound = MountSpec("/mnt/x", MountKind.FOLDER, str(shared / "now" / "data"))
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            for name in ("real", "link"):
                (shared / name).rename(shared / "now")
                (shared / "now").rename(shared / name)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        found = [_inode(bound) for _ in range(3000)]
    finally:
        over.set()
        swapper.join()
    assert set(found) <= {wanted, None}
    assert wanted in found


def _inode(bound: MountSpec) -> int | None:
    try:
        fd = open_bound(bound, (os.geteuid(), os.getegid()))
    except OSError:
        return None
    try:
        return os.fstat(fd).st_ino
    finally:
        os.close(fd)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/etc",
        "/etc/ssl",
        "/proc",
        "/proc/self",
        "/sys",
        "/dev",
        "/dev/shm/x",
        "/usr/bin",
        "/lib",
        "/bin",
        "/run/secrets",
        "/var/run",
        "/job",
        "/job/",
        "/tmp",
        "/job-console",
        "/job-console/peers.env",
        "relative",
        "/mnt/../etc",
        "/mnt/a:b",
        "/mnt/a,b",
        "/mnt/a\nb",
        "/mnt/" + "x" * 2000,
    ],
)
def test_mount_over_system_or_job_files_is_refused(bench: LocalBench, place: Path, path: str) -> None:
    assert why(bench, f"{place}/home/alice", path, person=ALICE) == "mount_over"


def test_mount_through_host_link_to_system_folder_fails(bench: LocalBench, place: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="job-console-test-", dir="/srv") as host:
        Path(host).chmod(0o755)
        Path(host, "deep").symlink_to("/etc")
        mount = Mount(uri=f"{place}/home/alice", path=f"{host}/deep/ssl")
        handle = bench.backend.submit(bench.submission(mounts=(mount,), person=ALICE))
        seen = wait_until_over(bench.backend, handle)
    assert (seen.reason.code, seen.reason.params["error"]) == (
        ReasonCode.MOUNT_FAILED,
        f"{host}/deep/ssl: Permission denied",
    )


def test_overlapping_mounts_are_refused(bench: LocalBench, place: Path) -> None:
    for second in ("/mnt/x", "/mnt/x/y", "/mnt"):
        mounts = (
            Mount(uri=f"{place}/home/alice", path="/mnt/x"),
            Mount(uri=f"{place}/home/alice", path=second),
        )
        with pytest.raises(Refused) as refused:
            bench.backend.submit(bench.submission(mounts=mounts, person=ALICE))
        assert refused.value.reason.params == {"why": "mount_twice", "path": second}

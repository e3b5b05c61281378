"""Places outside a job, seen from inside it, in each mode that is possible on this machine."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import Person, Refused
from jobs.backends.local.backend import LocalBackend
from jobs.backends.local.machine import detect_isolation
from jobs.facilities import StorageMapping
from jobs.node.sandbox.folders import SharedFolderRule
from jobs.node.sandbox.isolation import Isolation
from jobs.node.supervisor.plan import Plan
from jobs.spec import Mount, MountPurpose
from jobs.states import State
from tests.jobs.backends.benches import CHECKOUT, LocalBench, log_of, role, wait_until_over
from tests.jobs.backends.local import goods

DEFAULT_OUTPUT = "$PAI_DEFAULT_FS_URI/Output/$PAI_USER_NAME/$PAI_JOB_NAME"


def settings_for(place: Path) -> dict[str, Any]:
    said: dict[str, dict[str, Any]] = {
        str(place / "sets"): {"workspaces": ["vision"]},
        str(place / "out"): {"workspaces": ["*"], "write": True},
    }
    return {
        "folders": tuple(SharedFolderRule.from_settings(path, more) for path, more in said.items()),
        "file_system": str(place / "store"),
    }


def storage_at(place: Path) -> dict[str, StorageMapping]:
    return {
        "d-1": StorageMapping(str(place / "sets"), "/mnt/one"),
        "d-2": StorageMapping(str(place / "sets")),
        "d-3": StorageMapping(str(place)),
        "pfs://pfs-9": StorageMapping(str(place / "out")),
        "pfs://pfs-9/deep": StorageMapping(str(place / "sets")),
        "cpfs://c-1": StorageMapping(str(place / "out"), read_only=True),
        "cpfs://c-1/theirs": StorageMapping(str(place / "out"), is_admitted=False),
    }


@pytest.fixture
def bench(tmp_path: Path, place: Path) -> Iterator[LocalBench]:
    if detect_isolation(sys.executable) is not Isolation.PERSONS:
        pytest.skip("user ids for every person need root and mount namespaces")
    made = LocalBench(tmp_path, settings_for(place), storage_at(place))
    yield made
    made.close()


@pytest.fixture
def open_bench(tmp_path: Path, place: Path) -> Iterator[LocalBench]:
    made = LocalBench(tmp_path, {**settings_for(place), "isolation": Isolation.NONE})
    yield made
    made.close()


def run(bench: LocalBench, command: str, *mounts: Mount, **more: Any) -> list[str]:
    """The lines of a job of the workspace `vision` that mounts all of it."""
    submission = bench.submission(role(command), mounts=mounts, **{"workspace": "vision", **more})
    handle = bench.backend.submit(submission)
    seen = wait_until_over(bench.backend, handle)
    assert seen.state is State.SUCCEEDED, (seen.reason, log_of(bench.backend, handle))
    assert (bench.attempt(handle) / "supervisor.log").read_text() == ""
    return log_of(bench.backend, handle).splitlines()


def why(bench: LocalBench, *mounts: Mount, **more: Any) -> dict[str, Any]:
    """Why a job that mounts all of it is refused."""
    with pytest.raises(Refused) as refused:
        bench.backend.submit(bench.submission(mounts=mounts, **{"workspace": "vision", **more}))
    return dict(refused.value.reason.params)


def test_mounted_folder_is_at_requested_path_and_writable_if_allowed(bench: LocalBench, place: Path) -> None:
    command = """
    cat /mnt/data/sets/file; touch /mnt/data/sets/new 2>/dev/null || echo read-only
    echo made > /made/here/result; echo inner > /job/in/ner; echo $PAI_DATA_DIR; ls /job
    """
    lines = run(
        bench,
        command,
        Mount(uri=f"file://{place}/sets", path="/mnt/data/sets"),
        Mount(uri=f"{place}/out", path="/made//here/"),
        Mount(uri=f"file://localhost{place}/out", path="/job/in"),
    )
    assert lines == ["of the set", "read-only", "/mnt/data/sets", "in"]
    assert (place / "out" / "result").read_text() == "made\n"
    assert (place / "out" / "ner").read_text() == "inner\n"
    assert not (place / "sets" / "new").exists()
    assert not Path("/made").exists()
    assert not Path("/mnt/data").exists()


def test_read_only_mount_of_writable_folder_stays_read_only(bench: LocalBench, place: Path) -> None:
    command = "touch /mnt/o/x 2>/dev/null || echo no; mount -o remount,rw /mnt/o 2>/dev/null || echo no"
    lines = run(bench, command, Mount(uri=f"{place}/out", path="/mnt/o", read_only=True))
    assert lines == ["no", "no"]
    assert not (place / "out" / "x").exists()


@pytest.fixture
def host_folder() -> Iterator[Path]:
    """A folder that a job sees where it is; /tmp and /var/tmp are each replica's own."""
    with tempfile.TemporaryDirectory(prefix="job-console-test-", dir="/srv") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_files_beside_mount_remain_visible(bench: LocalBench, place: Path, host_folder: Path) -> None:
    """In the view a folder of ours has taken the place of `beside`; nothing of that is on the machine."""
    beside = host_folder / "beside"
    (beside / "deep").mkdir(parents=True)
    beside.chmod(0o711)
    (beside / "deep").chmod(0o755)
    (beside / "deep" / "file").write_text("still there\n")
    (beside / "file").write_text("this too\n")
    (beside / "file").chmod(0o644)
    (beside / "link").symlink_to("file")
    closed = host_folder / "closed"
    (closed / "open").mkdir(parents=True)
    (closed / "open").chmod(0o777)
    (closed / "open" / "file").write_text("nobody's business\n")
    (closed / "open" / "file").chmod(0o644)
    closed.chmod(0o700)
    command = f"""
    cat {beside}/new/file {beside}/deep/file {beside}/file {beside}/link
    ls {beside} 2>/dev/null || echo unlisted
    cat {closed}/new/file; ls {closed}; cat {closed}/open/file 2>/dev/null || echo hidden
    """
    lines = run(
        bench,
        command,
        Mount(uri=f"{place}/sets", path=f"{beside}/new"),
        Mount(uri=f"{place}/sets", path=f"{closed}/new"),
    )
    told = ["of the set", "still there", "this too", "this too", "unlisted"]
    assert lines == [*told, "of the set", "new", "hidden"]
    assert not (beside / "new").exists()
    assert not (closed / "new").exists()


def test_dataset_mount_resolves_to_folder_named_in_settings(bench: LocalBench, place: Path) -> None:
    assert run(bench, "cat /mnt/one/file", Mount(id="d-1")) == ["of the set"]
    assert run(bench, "cat /two/file", Mount(id="d-2", path="/two")) == ["of the set"]
    assert why(bench, Mount(id="d-2")) == {"why": "mount_without_path", "id": "d-2"}
    assert why(bench, Mount(id="d-9", path="/x")) == {"why": "mount_unknown", "id": "d-9"}
    assert why(bench, Mount(id="d-3", path="/x"))["why"] == "mount_not_allowed"


def test_remote_place_maps_to_configured_local_folder(bench: LocalBench, place: Path) -> None:
    (place / "out" / "below").mkdir()
    (place / "out" / "below").chmod(0o755)
    (place / "out" / "below" / "file").write_text("below\n")
    (place / "out" / "below" / "file").chmod(0o644)
    command = "cat /mnt/a/file /mnt/b/file"
    mounts = (Mount(uri="pfs://pfs-9/deep", path="/mnt/a"), Mount(uri="pfs://pfs-9/below/", path="/mnt/b"))
    assert run(bench, command, *mounts) == ["of the set", "below"]
    assert why(bench, Mount(uri="pfs://pfs-99", path="/mnt/a"))["why"] == "mount_elsewhere"
    assert why(bench, Mount(uri="pfs://pfs-9/../x", path="/mnt/a"))["why"] == "mount_not_allowed"


def test_mapped_storage_is_read_only_and_for_its_workspaces_where_settings_say_so(
    bench: LocalBench, place: Path
) -> None:
    lines = run(bench, "touch /mnt/r/x 2>/dev/null || echo shut", Mount(uri="cpfs://c-1/", path="/mnt/r"))
    assert lines == ["shut"]
    assert not (place / "out" / "x").exists()
    output = Mount(uri="cpfs://c-1", path="/mnt/r", purpose=MountPurpose.OUTPUT)
    assert why(bench, output)["why"] == "storage_read_only"
    refused = why(bench, Mount(uri="cpfs://c-1/theirs/x", path="/mnt/r"))
    assert (refused["why"], refused["place"]) == ("storage_not_allowed", "cpfs://c-1/theirs/x")


def test_memory_mount_has_requested_size_and_empty_mount_is_on_disk(bench: LocalBench) -> None:
    memory = {"medium": "Memory", "sizeLimit": "3Mi"}
    command = """
    df --output=fstype,size -BM /mem /dev/shm | tail -n 2 | tr -s ' '
    touch /empty/x /job/also/x && ls -A /empty /job/also | wc -w; stat -f -c %T /empty
    """
    lines = run(
        bench,
        command,
        Mount(uri="emptydir://", path="/mem", options=memory),
        Mount(uri="emptydir://", path="/dev/shm", options={**memory, "sizeLimit": "5Mi"}),
        Mount(uri="emptydir://", path="/empty"),
        Mount(uri="emptydir://", path="/job/also"),
    )
    assert lines[:2] == ["tmpfs 3M", "tmpfs 5M"]
    assert lines[2] == "4"
    assert lines[3] != "tmpfs"


def test_openpai_directories_are_passed_as_their_paths(bench: LocalBench, place: Path) -> None:
    command = "cat $PAI_DATA_DIR/file; touch $PAI_DATA_DIR/x || true; echo r > $PAI_OUTPUT_DIR/result"
    lines = run(
        bench,
        f"({command}) 2>/dev/null; echo $PAI_DATA_DIR $PAI_OUTPUT_DIR $PAI_DEFAULT_FS_URI",
        Mount(uri=f"file://{place}/sets"),
        Mount(purpose=MountPurpose.OUTPUT, uri=f"file://{place}/out/of/{{}}"),
    )
    assert lines == ["of the set", f"{place}/sets {place}/out/of/{{}} {place}/store"]
    assert (place / "out/of/{}/result").read_text() == "r\n"


def test_default_output_belongs_to_person_and_survives_job(bench: LocalBench, place: Path) -> None:
    default = Mount(purpose=MountPurpose.OUTPUT, uri=DEFAULT_OUTPUT)
    for person in (Person("alice", 7), Person("bob", 8)):
        submission = bench.submission(
            role("echo $PAI_USER_NAME >> $PAI_OUTPUT_DIR/x; ls $PAI_OUTPUT_DIR/../../*/* 2>&1"),
            mounts=(default,),
            person=person,
        )
        handle = bench.backend.submit(submission)
        wait_until_over(bench.backend, handle)
        bench.backend.forget(handle)
        made = place / "store" / "Output" / person.name / "bench"
        assert (made / "x").read_text() == f"{person.name}\n"
        assert made.stat().st_uid == bench.config.uid_base + person.number
        assert made.stat().st_mode & 0o077 == 0
        assert made.parent.stat().st_uid == 0
    other = Mount(purpose=MountPurpose.OUTPUT, uri="$PAI_DEFAULT_FS_URI/Output/bob/bench")
    assert why(bench, other)["why"] == "mount_not_allowed"
    escape = Mount(purpose=MountPurpose.OUTPUT, uri=DEFAULT_OUTPUT)
    assert why(bench, escape, name="../bob/bench")["why"] == "mount_not_allowed"


def test_default_output_without_storage_is_removed_with_job(tmp_path: Path) -> None:
    for mode in {detect_isolation(sys.executable), Isolation.NONE}:
        folder = tmp_path / mode
        folder.mkdir()
        bench = LocalBench(folder, {"isolation": mode})
        default = Mount(purpose=MountPurpose.OUTPUT, uri=DEFAULT_OUTPUT)
        handle = bench.backend.submit(bench.submission(role("echo r > $PAI_OUTPUT_DIR/x"), mounts=(default,)))
        assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED
        assert (bench.attempt(handle) / "work/worker-0/output/x").read_text() == "r\n"
        bench.close()


def test_remote_place_is_passed_as_text_and_never_mounted(bench: LocalBench) -> None:
    lines = run(bench, "echo $PAI_DATA_DIR", Mount(uri="hdfs://name:9000/data"))
    assert lines == ["hdfs://name:9000/data"]
    for uri in ("oss://bucket/data/", "pfs://pfs-1/", "s3://bucket", "file://other-host/data", "data"):
        assert why(bench, Mount(uri=uri, path="/mnt/x")) == {
            "why": "mount_elsewhere",
            "place": uri,
            "path": "/mnt/x",
        }


def test_mount_is_limited_to_workspaces_named_in_settings(bench: LocalBench, place: Path) -> None:
    mount = Mount(uri=f"{place}/sets", path="/mnt/x")
    assert why(bench, mount, workspace="speech") == {
        "why": "mount_not_allowed",
        "place": f"{place}/sets",
        "workspace": "speech",
        "setting": "folders",
    }
    output = Mount(purpose=MountPurpose.OUTPUT, uri=f"{place}/sets", path="/mnt/x")
    assert why(bench, output)["why"] == "mount_read_only"
    absent = why(bench, Mount(uri=f"{place}/sets/none", path="/mnt/x"))
    assert (absent["why"], absent["error"]) == ("mount_no_folder", "No such file or directory")
    assert why(bench, Mount(uri=f"{place}/sets/file", path="/mnt/x"))["why"] == "mount_no_folder"


def test_job_without_view_uses_only_places_already_present(open_bench: LocalBench, place: Path) -> None:
    lines = run(
        open_bench,
        "cat $PAI_DATA_DIR/file; touch $PAI_OUTPUT_DIR/x /job/also 2>/dev/null; touch also/x; ls",
        Mount(uri=f"file://{place}/sets"),
        Mount(purpose=MountPurpose.OUTPUT, uri=f"file://{place}/out/new"),
        Mount(uri="emptydir://", path="/job/also"),
    )
    assert lines == ["of the set", "also"]
    assert (place / "out/new/x").exists()
    for mount in (
        Mount(uri=f"{place}/sets", path="/mnt/x"),
        Mount(uri=f"{place}/sets", read_only=True),
        Mount(uri="emptydir://", path="/mem", options={"medium": "Memory"}),
    ):
        assert why(open_bench, mount)["why"] == "mount_needs_view"


def test_rootless_job_mounts_folders_in_private_view(place: Path) -> None:
    told = {
        "command": "cat /mnt/x/file; touch /mnt/x/n || echo no; touch /mnt/o/made && ls /mnt/o",
        "folders": {
            str(place / "sets"): {"workspaces": ["*"]},
            str(place / "out"): {"workspaces": ["*"], "write": True},
        },
        "spec": {
            "mounts": [
                {"uri": f"file://{place}/sets", "path": "/mnt/x"},
                {"uri": f"{place}/out", "path": "/mnt/o"},
            ]
        },
    }
    answer = _as_nobody(place, told)
    lines = [line for line in answer["log"].splitlines() if "cannot touch" not in line]
    assert lines == ["of the set", "no", "made"], answer


def _as_nobody(place: Path, told: dict[str, Any]) -> dict[str, Any]:
    home = place / "console"
    home.mkdir()
    process = subprocess.run(
        [sys.executable, "-m", "tests.jobs.backends.local.nobody", str(home), json.dumps(told)],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "mount_needs_view" in process.stderr:
        pytest.skip("this kernel gives ordinary users no namespaces")
    assert process.returncode == 0, process.stderr
    answer: dict[str, Any] = json.loads(process.stdout)
    return answer


def test_rootless_job_fetches_code_and_installs_packages(place: Path) -> None:
    goods.repository(place / "repo")
    goods.wheel(place / "sets")
    told = {
        "command": "cat /mnt/src/file sets/file; touch sets/x 2>/dev/null || echo no; tiny-says",
        "folders": {str(place): {"workspaces": ["*"]}},
        "spec": {
            "mounts": [{"uri": f"file://{place}/sets", "purpose": "code", "read_only": True}],
            "code": {"uri": f"file://{place}/repo", "branch": "old", "path": "/mnt/src"},
            "requirements": {"packages": ["tiny"]},
            "env": {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "sets"},
        },
    }
    answer = _as_nobody(place, told)
    assert answer["log"].splitlines()[-4:] == ["one", "of the set", "no", "tiny says hello"], answer
    assert answer["diary"] == ""


def test_plan_without_mounts_is_readable_by_earlier_releases(bench: LocalBench, place: Path) -> None:
    formats = {}
    backend = LocalBackend(replace(bench.config, network="host"))  # an own network has a later format
    for name, mounts in (("none", ()), ("some", (Mount(uri=f"{place}/sets", path="/mnt/x"),))):
        handle = backend.submit(bench.submission(mounts=mounts, workspace="vision"))
        wait_until_over(backend, handle)
        written = json.loads((bench.attempt(handle) / "plan.json").read_text())
        formats[name] = written["format"]
        assert json.loads(json.dumps(Plan.load(written).dump())) == written
    assert formats == {"none": 2, "some": 2}


def test_home_folder_outlives_the_job_and_is_closed_to_others(bench: LocalBench, place: Path) -> None:
    homes = place / "homes"
    homes.mkdir(mode=0o755)
    bench.config = replace(bench.config, homes=str(homes), show=(*bench.config.show, homes))
    bench.backend = LocalBackend(bench.config)
    alice, bob = Person("alice", 7), Person("robert", 8, "bob")
    assert run(bench, 'pwd; cd "$JOB_CONSOLE_HOME_FOLDER"; pwd; echo secret > notes', person=alice)[1] == (
        "/home/alice"
    )
    look = f"cat /home/alice/notes; cat {homes}/alice/notes; echo $?; touch /home/bob/mine; echo /home/[ab]*"
    assert run(bench, f"exec 2>/dev/null; {look}", person=bob) == ["1", "/home/bob"]
    assert run(bench, "cat /home/alice/notes", person=alice) == ["secret"]
    assert run(bench, "echo ${JOB_CONSOLE_HOME_FOLDER-none}", person=Person("..", 9)) == ["none"]
    assert [each.stat().st_mode & 0o777 for each in sorted(homes.iterdir())] == [0o700, 0o700]
    assert (homes / "alice").stat().st_uid != (homes / "bob").stat().st_uid

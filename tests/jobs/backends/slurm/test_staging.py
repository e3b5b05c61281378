"""Code, packages and places on the nodes of a real Slurm, looked at from inside."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import Handle, NotSubmitted, Observation, Refused
from jobs.backends.slurm.backend import SlurmBackend
from jobs.facilities import StorageMapping
from jobs.spec import CodeSource, Framework, Mount, MountPurpose, Requirements, SecretRef, Software
from jobs.states import ReasonCode, State
from jobs.trees import Entry, Kind, Supplied, Tree
from tests.jobs.backends.benches import log_of, role, wait_until_over
from tests.jobs.backends.hdfs import StandInHdfs, hdfs, tar
from tests.jobs.backends.local.buckets import Store, bucket
from tests.jobs.backends.local.goods import wheel
from tests.jobs.backends.slurm_bench import Releasing, SlurmBench

__all__ = ["bucket", "hdfs"]


def run(bench: SlurmBench, *roles: object, **spec: object) -> tuple[Handle, Observation]:
    handle = bench.backend.submit(bench.submission(*roles, **spec))  # type: ignore[arg-type]
    return handle, wait_until_over(bench.backend, handle, timeout=90)


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits: `say` says one, then two."""
    folder = tmp_path / "tool.git"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    for word in ("one", "two"):
        (folder / "say").write_text(f"echo {word}\n")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "--message", word)
    return folder


def test_repository_code_is_staged_at_requested_commit(on_slurm: SlurmBench, repository: Path) -> None:
    first = git(repository, "rev-parse", "HEAD~1")
    code = CodeSource(uri=str(repository), commit=first, path="src")
    handle, seen = run(on_slurm, role("sh src/say", replicas=3), code=code)
    assert seen.state is State.SUCCEEDED, seen.reason
    assert [log_of(on_slurm.backend, handle, index=index) for index in range(3)] == ["one\n"] * 3
    fetched = list((on_slurm.attempt(handle) / "run-1" / "stage").glob("*/code-0"))
    assert len(fetched) == len({one.node for one in seen.replicas}), "once on each node"


def test_submodules_are_staged_on_nodes(on_slurm: SlurmBench, repository: Path) -> None:
    inner = repository.with_name("inner")
    git(repository.parent, "clone", "--quiet", str(repository), str(inner))
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(inner), "lib")
    git(repository, "commit", "--quiet", "--message", "with a submodule")
    code = CodeSource(uri=f"file://{repository}", path="src", branch="main", submodules=True)
    handle, seen = run(on_slurm, role("sh src/lib/say"), code=code)
    assert seen.state is State.SUCCEEDED, seen.reason
    assert log_of(on_slurm.backend, handle) == "two\n"


def test_missing_code_branch_fails_job_with_reason(on_slurm: SlurmBench, repository: Path) -> None:
    code = CodeSource(uri=f"file://{repository}", branch="nowhere")
    _handle, seen = run(on_slurm, role("echo ran", replicas=2), code=code)
    assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.CODE_FAILED)
    assert "nowhere" in str(seen.reason.params["error"])
    assert {one.started_at for one in seen.replicas} == {None}


def test_uploaded_code_fills_working_folder(on_slurm: SlurmBench, tmp_path: Path) -> None:
    content = b"#!/bin/sh\necho uploaded\n"
    digest = hashlib.sha256(content).hexdigest()
    pack = tmp_path / "pack"
    pack.write_bytes(b"....." + content)
    tree = Tree.of(
        (
            Entry("bin/say", Kind.PROGRAM, digest, len(content)),
            Entry("say", Kind.LINK, target="bin/say"),
            Entry("empty", Kind.FOLDER),
        )
    )
    uploads = {tree.id: Supplied(len(content), tree, {digest: (str(pack), 5)})}
    code = CodeSource(uri=f"upload://{tree.id}", path=".")
    handle, seen = run(on_slurm, role("./say; ls -d empty"), code=code, uploads=uploads)
    assert seen.state is State.SUCCEEDED, seen.reason
    assert log_of(on_slurm.backend, handle) == "uploaded\nempty\n"


def test_packages_are_installed_from_requirements_in_code(on_slurm: SlurmBench, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    package = folder / "tiny"
    package.mkdir(parents=True)
    (package / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (package / "backend.py").write_text(BUILDS)
    (folder / "requirements.txt").write_text(f"{package}\n")
    handle, seen = run(
        on_slurm,
        role("python3 -c 'import tiny; print(tiny.WORD)'"),
        code=CodeSource(uri=str(folder), path="src"),
        requirements=Requirements(directory="src"),
    )
    assert seen.state is State.SUCCEEDED, log_of(on_slurm.backend, handle)
    assert log_of(on_slurm.backend, handle).endswith("small\n")


BUILDS = """\
import zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "tiny-1-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        wheel.writestr("tiny.py", "WORD = 'small'\\n")
        wheel.writestr("tiny-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1\\n")
        said = "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
        wheel.writestr("tiny-1.dist-info/WHEEL", said)
        wheel.writestr("tiny-1.dist-info/RECORD", "")
    return name
"""


def test_packages_are_installed_once_for_all_jobs_of_the_person(on_slurm: SlurmBench, tmp_path: Path) -> None:
    """Their index is a folder that is mounted."""
    wheel(tmp_path)
    env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/mnt/wheels", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    more: dict[str, Any] = {
        "env": env,
        "mounts": (Mount(uri=str(tmp_path), path="/mnt/wheels"),),
        "requirements": Requirements(packages=("tiny==1.0",)),
    }
    for words in ("Successfully installed", "as they were installed before"):
        handle, seen = run(on_slurm, role("tiny-says"), **more)
        log = log_of(on_slurm.backend, handle)
        assert seen.state is State.SUCCEEDED, log
        assert words in log
        assert log.endswith("tiny says hello\n")
    (environment,) = (tmp_path / "cache" / "job-console").glob("*/packages/*/bin")
    assert environment.is_dir()


def test_unavailable_packages_fail_job_with_reason(on_slurm: SlurmBench) -> None:
    wanted = Requirements(packages=("/nowhere/at/all",))
    _handle, seen = run(on_slurm, role("echo ran"), requirements=wanted)
    assert seen.reason.code is ReasonCode.REQUIREMENTS_FAILED
    assert "/nowhere/at/all" in str(seen.reason.params["error"])


def test_mounts_are_at_requested_paths(on_slurm: SlurmBench, tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    (data / "word").write_text("known\n")
    mounts = (
        Mount(uri=str(data), path="/far/away/data", read_only=True),
        Mount(uri=f"file://{out}", path="/mnt/results/here", purpose=MountPurpose.OUTPUT),
        Mount(uri="emptydir://", path="/scratch/memory", options={"medium": "Memory", "sizeLimit": "8Mi"}),
        Mount(uri=str(data), path="/job/own"),
    )
    command = (
        "cat $PAI_DATA_DIR/word own/word; (echo no >/far/away/data/x) 2>/dev/null || echo shut;"
        "echo made >/mnt/results/here/made; touch /scratch/memory/x && df --output=fstype /scratch/memory;"
        "ls -d /usr >/dev/null && pwd -P | grep -o worker-0"
    )
    handle, seen = run(on_slurm, role(command), mounts=mounts)
    assert log_of(on_slurm.backend, handle) == "known\nknown\nshut\nType\ntmpfs\nworker-0\n"
    assert seen.state is State.SUCCEEDED
    assert (out / "made").read_text() == "made\n"
    assert not Path("/far").exists(), "nothing of it is left on the node"


def test_mapped_address_is_folder_of_nodes(on_slurm: SlurmBench, tmp_path: Path) -> None:
    data = tmp_path / "data" / "sets"
    data.mkdir(parents=True)
    (data / "word").write_text("known\n")
    storage = {
        "pfs://pfs-1": StorageMapping(str(tmp_path / "data"), read_only=True),
        "pfs://pfs-1/theirs": StorageMapping(str(tmp_path), is_admitted=False),
    }
    backend = on_slurm.backend
    command = "cat /mnt/cluster/word; (echo no >/mnt/cluster/x) 2>/dev/null || echo shut"
    mount = Mount(uri="pfs://pfs-1/sets", path="/mnt/cluster")
    handle = backend.submit(on_slurm.submission(role(command), mounts=(mount,), storage=storage))
    seen = wait_until_over(backend, handle, timeout=90)
    assert log_of(backend, handle) == "known\nshut\n"
    assert seen.state is State.SUCCEEDED
    for uri, why in (("theirs/x", "storage_not_allowed"), ("../x", "mount_not_allowed")):
        refused = Mount(uri=f"pfs://pfs-1/{uri}", path="/mnt/cluster")
        with pytest.raises(Refused) as caught:
            backend.submit(on_slurm.submission(role("true"), mounts=(refused,), storage=storage))
        assert caught.value.reason.params["why"] == why


def test_mapped_bucket_is_copied_in_by_signed_addresses(on_slurm: SlurmBench, bucket: Store) -> None:
    bucket.put_at("team/in/one.txt", "one\n")
    bucket.put_at("team/in/sub dir/two.txt", "two\n")
    host = "oss://vendor.oss-cn-beijing.aliyuncs.com"
    keys: dict[str, Any] = {"endpoint": bucket.endpoint, "access_key": "AKIATEST", "secret_key": "s3cretkey"}
    storage = {host: StorageMapping(bucket="s3://sets/team", **keys)}
    mount = Mount(uri=f"{host}/in", path="/mnt/in", read_only=True)
    bucket.put_at("team/tool.tar.gz", tar(("say", "echo packed\n")))
    code = CodeSource(uri=f"{host}/tool.tar.gz")
    command = "cat /mnt/in/one.txt '/mnt/in/sub dir/two.txt'; touch /mnt/in/x 2>/dev/null || sh tool/say"
    handle, seen = run(on_slurm, role(command, replicas=2), mounts=(mount,), storage=storage, code=code)
    log = log_of(on_slurm.backend, handle)
    assert seen.state is State.SUCCEEDED, log
    assert log.splitlines()[-3:] == ["one", "two", "packed"]
    kept = [path for path in on_slurm.root.rglob("*") if path.is_file()]
    assert not any(b"s3cretkey" in path.read_bytes() for path in kept), "the job never had the key"
    assert not [path for path in kept if path.name == "bucket-login"]
    writable = mount.model_copy(update={"read_only": False})
    with pytest.raises(Refused) as refused:
        on_slurm.backend.submit(on_slurm.submission(mounts=(writable,), storage=storage))
    assert refused.value.reason.params["why"] == "bucket_not_writable"
    other = {host: replace(storage[host], bucket="s3://nowhere")}
    with pytest.raises(NotSubmitted) as not_sent:
        on_slurm.backend.submit(on_slurm.submission(mounts=(mount,), storage=other))
    assert "bucket" in str(not_sent.value.reason.params["detail"]).lower()


def test_missing_mount_fails_job_with_reason(on_slurm: SlurmBench) -> None:
    _handle, seen = run(on_slurm, role("echo ran"), mounts=(Mount(uri="/nowhere/at/all", path="/data"),))
    assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.MOUNT_FAILED)
    assert "/nowhere/at/all" in str(seen.reason.params["error"])


REFUSED = [
    ({"mounts": (Mount(uri="/data", path="/etc/passwd"),)}, "mount_over"),
    ({"mounts": (Mount(uri="/data", path="/x"), Mount(uri="/more", path="/x/y"))}, "mount_twice"),
    ({"mounts": (Mount(id="d-1", path="/x"),)}, "mount_unknown"),
    ({"mounts": (Mount(uri="oss://bucket/x", path="/x"),)}, "mount_elsewhere"),
    ({"mounts": (Mount(uri="/data", path="/x"),), "framework": Framework.SLURM}, "mount_needs_view"),
    ({"code": CodeSource(id="code-1")}, "code_unknown"),
    ({"code": CodeSource(uri="https://git.example.org/x", branch="a b")}, "code_ref"),
    ({"code": CodeSource(uri=f"upload://{'0' * 64}")}, "code_no_upload"),
    ({"secret_env": {"X": SecretRef(name="gone")}}, "no_secret"),
    ({"instance_role": "acs:ram::1:role/trainer"}, "role_unknown"),
]


@pytest.mark.parametrize(("said", "why"), REFUSED, ids=[why for _said, why in REFUSED])
def test_unsupported_staging_is_refused_at_submission(
    said: dict[str, object], why: str, on_slurm: SlurmBench
) -> None:
    with pytest.raises(Refused) as refused:
        on_slurm.backend.submit(on_slurm.submission(**said))
    assert refused.value.reason.params["why"] == why


def test_links_only_mounts_refuse_path_outside_job_folder(on_slurm: SlurmBench, tmp_path: Path) -> None:
    backend = SlurmBackend(replace(on_slurm.config, mounts="links"))
    with pytest.raises(Refused) as refused:
        backend.submit(on_slurm.submission(mounts=(Mount(uri=str(tmp_path), path="/data"),)))
    assert refused.value.reason.params["why"] == "mount_needs_view"


def test_virtual_environment_is_active_at_command_start(on_slurm: SlurmBench, tmp_path: Path) -> None:
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "pyvenv.cfg").write_text("")
    tool = tmp_path / "venv" / "bin" / "tool"
    tool.write_text("#!/bin/sh\necho $VIRTUAL_ENV\n")
    tool.chmod(0o755)
    handle, _seen = run(on_slurm, role("tool"), software=Software(venv=str(tmp_path / "venv")))
    assert log_of(on_slurm.backend, handle) == f"{tmp_path}/venv\n"


def test_code_archive_and_code_dir_of_hdfs_are_staged_on_nodes(
    on_slurm: SlurmBench, hdfs: StandInHdfs
) -> None:
    hdfs.files |= {"/code/x/main.py": b"code\n", "/code/tool.tar.gz": tar(("bin/say", "echo packed\n"))}
    backend = Releasing(replace(on_slurm.config, hdfs=hdfs.settings))
    code_dir = Mount(uri=f"{hdfs.name}/code/x", purpose=MountPurpose.CODE, read_only=True)
    command = "tool/bin/say; cat $PAI_CODE_DIR/main.py; touch $PAI_CODE_DIR/x 2>/dev/null || echo shut"
    code = CodeSource(uri=f"{hdfs.name}/code/tool.tar.gz")
    handle = backend.submit(on_slurm.submission(role(command, replicas=2), mounts=(code_dir,), code=code))
    seen = wait_until_over(backend, handle, timeout=90)
    log = log_of(backend, handle)
    assert seen.state is State.SUCCEEDED, log
    assert log.splitlines()[-3:] == ["packed", "code", "shut"]
    for uri, why in (("hdfs://other:9000/x", "code_not_allowed"), ("ftp://host/x", "code_elsewhere")):
        other = Mount(uri=uri, purpose=MountPurpose.CODE)
        with pytest.raises(Refused) as refused:
            backend.submit(on_slurm.submission(mounts=(other,)))
        assert refused.value.reason.params["why"] == why

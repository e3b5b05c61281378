"""Code, packages, folders and containers of jobs on a real Ray, staged on its nodes."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import Refused
from jobs.facilities import StorageMapping
from jobs.spec import CodeSource, Mount, PodContainer, Requirements, Software
from jobs.states import ReasonCode, State
from tests.jobs.backends.benches import log_of, role, wait_until_over
from tests.jobs.backends.hdfs import tar
from tests.jobs.backends.local.buckets import Store, bucket
from tests.jobs.backends.ray_bench import RayBench

__all__ = ["bucket"]

pytestmark = pytest.mark.ray

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
SHOW = """\
echo "$VIRTUAL_ENV"; cat src/say; cat "$KNOWN/word"; cat scratch/first; echo out >scratch/own
cd / && /usr/bin/python3 -c 'import tiny; print(tiny.WORD)'
"""


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with two commits and a package in it."""
    folder = tmp_path / "code"
    package = folder / "tiny"
    package.mkdir(parents=True)
    git(folder, "init", "--quiet")
    (package / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (package / "backend.py").write_text(BUILDS)
    (folder / "requirements.txt").write_text(f"{package}\n")
    for word in ("one", "two"):
        (folder / "say").write_text(f"{word}\n")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "--message", word)
    return folder


def test_code_packages_folders_and_containers_are_staged_on_the_node(
    on_ray: RayBench, repository: Path, tmp_path: Path
) -> None:
    known = tmp_path / "known"
    known.mkdir()
    (known / "word").write_text("known\n")
    first = PodContainer(name="first", command=("sh", "-c", "echo done; echo first >scratch/first"))
    side = PodContainer(
        name="side", command=("sh", "-c", "trap 'echo bye; exit' TERM; while sleep 0.1; do :; done")
    )
    command = role(SHOW, init_containers=(first,), sidecars=(side,))
    submission = on_ray.submission(
        command,
        code=CodeSource(uri=str(repository), commit=git(repository, "rev-parse", "HEAD~1"), path="src"),
        requirements=Requirements(directory="src"),
        mounts=(Mount(uri=f"file://{known}"), Mount(uri="emptydir://", path="/job/scratch")),
        software=Software(venv=str(on_ray.cluster.python.parents[1])),
        env={"KNOWN": str(known)},
        grace_s=5,
    )
    handle = on_ray.backend.submit(submission)
    seen = wait_until_over(on_ray.backend, handle)
    log = log_of(on_ray.backend, handle)
    assert seen.state is State.SUCCEEDED, log
    lines = log.splitlines()
    venv = str(on_ray.cluster.python.parents[1])
    assert lines[lines.index(venv) :][:5] == [venv, "one", "known", "first", "small"]
    assert {"[first] done", "[side] bye"} <= set(lines)


def test_archive_and_bucket_are_fetched_on_the_node_without_the_keys_of_the_site(
    on_ray: RayBench, bucket: Store
) -> None:
    bucket.put_at("team/in/sub/two", "two\n")
    bucket.put_at("team/tool.tar.gz", tar(("say", "#!/bin/sh\necho packed\n")))
    host = "oss://vendor.oss-cn-beijing.aliyuncs.com"
    keys: dict[str, Any] = {"endpoint": bucket.endpoint, "access_key": "AK", "secret_key": "s3cretkey"}
    storage = {host: StorageMapping(bucket="s3://sets/team", **keys)}
    sets = Mount(uri=f"{host}/in", path="/job/in", read_only=True)
    more = {"code": CodeSource(uri=f"{host}/tool.tar.gz"), "mounts": (sets,), "storage": storage}
    handle = on_ray.backend.submit(on_ray.submission(role("tool/say; cat in/sub/two"), **more))
    kept = [path for path in on_ray.folder.rglob("*") if path.is_file()]
    assert not any(b"s3cretkey" in path.read_bytes() for path in kept), "the job never had the key"
    seen = wait_until_over(on_ray.backend, handle)
    log = log_of(on_ray.backend, handle)
    assert seen.state is State.SUCCEEDED, log
    assert log.splitlines()[-2:] == ["packed", "two"]
    writable = sets.model_copy(update={"read_only": False})
    with pytest.raises(Refused) as refused:
        on_ray.backend.submit(on_ray.submission(mounts=(writable,), storage=storage))
    assert refused.value.reason.params["why"] == "bucket_not_writable"


def test_unknown_commit_fails_the_job_with_a_reason(on_ray: RayBench, repository: Path) -> None:
    code = CodeSource(uri=f"file://{repository}", branch="nowhere")
    seen = wait_until_over(on_ray.backend, on_ray.backend.submit(on_ray.submission(role("true"), code=code)))
    assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.CODE_FAILED)
    assert "nowhere" in str(seen.reason.params["error"])


def test_mount_at_another_path_and_role_and_egress_policy_are_refused(on_ray: RayBench) -> None:
    elsewhere = on_ray.submission(mounts=(Mount(uri="file:///data", path="/far/away"),))
    closed = on_ray.submission(egress=("192.0.2.0/24:443",), workspace="vision")
    for submission, why in ((elsewhere, "mount_needs_view"), (closed, "egress_not_enforced")):
        with pytest.raises(Refused) as refused:
            on_ray.backend.submit(submission)
        assert refused.value.reason.params["why"] == why
    rendered = on_ray.backend.render(on_ray.submission(role("echo hi"), env={"A": "1"}))
    assert rendered.roles[0].env["A"] == "1"
    assert rendered.roles[0].script.endswith("exec /bin/bash -c 'echo hi'\n")
    checks = {check.what: check.ok for check in on_ray.backend.dry_run(on_ray.submission())}
    assert checks == {"accepted": True, "mounts": None, "room": True}
    full = {check.what: check.ok for check in on_ray.backend.dry_run(elsewhere)}
    assert full == {"accepted": False}

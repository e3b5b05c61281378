"""Images on Slurm: real containers by runc; for plugins that can not be had here, the script that is sent."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import Refused
from jobs.backends.slurm.backend import SlurmBackend
from jobs.spec import CodeSource, Framework, Mount, Resources
from jobs.states import ReasonCode, State
from tests.jobs.backends.benches import log_of, replica, role, wait_until_over
from tests.jobs.backends.slurm_bench import Releasing, SlurmBench

PROGRAMS = ("bash", "sh", "cat", "date", "env", "hostname", "id", "ls", "mkdir", "mv")

OCI = """\
RunTimeQuery="runc --root={base}/runc state %n.%u.%j.%s.%t"
RunTimeKill="runc --root={base}/runc kill -a %n.%u.%j.%s.%t"
RunTimeDelete="runc --root={base}/runc delete --force %n.%u.%j.%s.%t"
RunTimeRun="runc --root={base}/runc run %n.%u.%j.%s.%t -b %b"
"""


@pytest.fixture
def bundle(on_slurm: SlurmBench, tmp_path: Path) -> Iterator[Path]:
    """A bundle with a shell, and a Slurm that runs such."""
    assert shutil.which("runc"), "there is no runc (Debian: runc)"
    for name in ("proc", "dev", "sys", "tmp", "data"):
        (tmp_path / "rootfs" / name).mkdir(parents=True)
    for name in PROGRAMS:
        _put(shutil.which(name) or name, tmp_path / "rootfs")
    (tmp_path / "rootfs" / "in-image").write_text("of the image\n")
    subprocess.run(["runc", "spec"], cwd=tmp_path, check=True)
    told = json.loads((tmp_path / "config.json").read_text())
    root = str(on_slurm.root)
    told["mounts"].append({"destination": root, "type": "none", "source": root, "options": ["rbind", "rw"]})
    told["root"]["readonly"] = False
    (tmp_path / "config.json").write_text(json.dumps(told))
    settings = on_slurm.slurm.base / "oci.conf"
    settings.write_text(OCI.format(base=on_slurm.slurm.base))
    yield tmp_path
    settings.unlink()


def _put(program: str, root: Path) -> None:
    """A program, at /bin, and the libraries that it needs."""
    (root / "bin").mkdir(exist_ok=True)
    shutil.copy(program, root / "bin" / Path(program).name)
    found = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    for word in found.split():
        if word.startswith("/"):
            place = root / word[1:]
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(word, place)


def test_oci_role_runs_in_bundle_with_staged_files(
    on_slurm: SlurmBench, bundle: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    backend = Releasing(replace(on_slurm.config, images="oci"))
    data = tmp_path_factory.mktemp("data")
    (data / "word").write_text("known\n")
    (data / "say").write_text("echo $RANK of $WORLD_SIZE\n")
    submission = on_slurm.submission(
        role("cat /in-image code/word; . code/say", image=str(bundle)),
        role("test ! -e /in-image && echo outside", name="other"),
        code=CodeSource(uri=str(data), path="code"),
    )
    handle = backend.submit(submission)
    seen = wait_until_over(backend, handle, timeout=120)
    assert seen.state is State.SUCCEEDED, (on_slurm.attempt(handle) / "slurm.output").read_text()
    assert log_of(backend, handle) == "of the image\nknown\n0 of 2\n"
    assert log_of(backend, handle, "other") == "outside\n"
    assert (replica(seen).image_used, replica(seen, "other").image_used) == (True, None)


def test_failed_code_staging_for_image_is_reported(on_slurm: SlurmBench, bundle: Path) -> None:
    backend = Releasing(replace(on_slurm.config, images="oci"))
    code = CodeSource(uri="/nowhere/at/all", path="code")
    handle = backend.submit(on_slurm.submission(role("echo ran", image=str(bundle)), code=code))
    seen = wait_until_over(backend, handle, timeout=120)
    assert (seen.reason.code, log_of(backend, handle).count("ran")) == (ReasonCode.CODE_FAILED, 0)


def shown(bench: SlurmBench, images: Any, **more: Any) -> str:
    backend = SlurmBackend(replace(bench.config, images=images))
    one = role("echo ran", image="registry.example.org/team/torch:2.3", **more)
    mounts = (Mount(uri="/data/imagenet", path="/mnt/data", read_only=True),)
    return backend.render(bench.submission(one, mounts=mounts)).roles[0].script


def test_pyxis_and_apptainer_scripts_use_their_own_options(on_slurm: SlurmBench) -> None:
    pyxis = shown(on_slurm, "pyxis")
    assert "engine=pyxis" in pyxis
    assert "registry.example.org#team/torch:2.3" in pyxis
    assert "seats=(/data/imagenet:/mnt/data:ro)" in pyxis
    apptainer = shown(on_slurm, "apptainer", resources=Resources(gpus=1, gpu_type="a100"))
    assert "image=docker://registry.example.org/team/torch:2.3 nvidia=--nv" in apptainer
    assert "place /data/imagenet /mnt/data ro" in apptainer
    for text in (pyxis, apptainer):
        assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0


def test_unsupported_image_jobs_are_refused(on_slurm: SlurmBench) -> None:
    oci = SlurmBackend(replace(on_slurm.config, images="oci"))
    with pytest.raises(Refused) as refused:
        oci.submit(on_slurm.submission(role(image="/bundle"), mounts=(Mount(uri="/data", path="/x"),)))
    assert refused.value.reason.params["why"] == "mount_needs_view"
    with pytest.raises(Refused) as refused:
        oci.submit(on_slurm.submission(role(image="/bundle", replicas=2)))
    assert refused.value.reason.params["why"] == "image_for_one"
    with pytest.raises(Refused) as refused:
        oci.submit(on_slurm.submission(role(image="registry.example.org/torch")))
    assert refused.value.reason.params["why"] == "image_no_bundle"
    with pytest.raises(Refused) as refused:
        oci.submit(on_slurm.submission(role(image="/bundle"), framework=Framework.SLURM))
    assert refused.value.reason.params["why"] == "no_image_engine"

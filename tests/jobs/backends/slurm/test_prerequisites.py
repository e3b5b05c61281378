"""What has to be there before the first job, each taken away in turn."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.backends.base import Unreachable
from jobs.backends.slurm import prerequisites
from jobs.backends.slurm.backend import SlurmBackend
from jobs.backends.slurm.config import SlurmConfig
from tests.jobs.backends.slurm_bench import SlurmBench


def configured(bench: SlurmBench, pattern: str, to: str, timeout_s: int) -> SlurmConfig:
    """Its settings with another slurm.conf, in which one line is different."""
    said = bench.slurm.configuration.read_text()
    changed = bench.folder / "slurm.conf"
    changed.write_text(re.sub(pattern, to, said))
    return replace(bench.config, configuration=str(changed), timeout_s=timeout_s)


def without_sbatch(bench: SlurmBench) -> SlurmConfig:
    programs = bench.folder / "bin"
    programs.mkdir()
    for name in ("squeue", "scontrol", "scancel"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    return replace(bench.config, programs=str(programs))


TAKEN: list[tuple[str, Callable[[SlurmBench], SlurmConfig]]] = [
    ("There is no sbatch in ", without_sbatch),
    (
        "names the cluster's slurm.conf",
        lambda bench: replace(bench.config, configuration="/nowhere/slurm.conf"),
    ),
    (
        "munge does not answer",
        lambda bench: configured(bench, r"AuthInfo=.*", "AuthInfo=socket=/nowhere", 30),
    ),
    (
        "slurmctld does not answer",
        lambda bench: configured(bench, r"SlurmctldPort=\d+", "SlurmctldPort=1", 2),
    ),
    ("There is no folder /nowhere", lambda bench: replace(bench.config, root=Path("/nowhere"))),
]


@pytest.mark.parametrize(("told", "without"), TAKEN, ids=[told for told, _ in TAKEN])
def test_what_is_missing_is_named(
    on_slurm: SlurmBench, told: str, without: Callable[[SlurmBench], SlurmConfig]
) -> None:
    assert on_slurm.backend.inventory().nodes
    with pytest.raises(Unreachable) as missing:
        SlurmBackend(without(on_slurm)).inventory()
    assert told in str(missing.value)


def test_a_folder_in_which_the_console_may_not_write_is_named(
    on_slurm: SlurmBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prerequisites, "_writable", lambda _: False)  # root may write everywhere
    with pytest.raises(Unreachable, match="may not write into"):
        prerequisites.check(on_slurm.config)

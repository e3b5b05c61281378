"""What has to be there before the first job, each taken away in turn."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.backends.base import Unreachable
from jobs.backends.slurm import ontonodes, prerequisites
from jobs.backends.slurm.backend import SlurmBackend
from jobs.backends.slurm.config import SlurmConfig
from tests.jobs.backends.slurm_bench import SlurmBench, by_rest
from tests.slurm import NODES, Slurm
from tests.waiting import wait_for


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


# --- what only the nodes can tell ------------------------------------------------------------------------


@pytest.fixture
def apart(slurm: Slurm) -> Iterator[Callable[..., None]]:
    """A node with a view of files of its own; the function runs a command in that view."""
    slurm.kill("cpu1")
    slurm.start("cpu1", "unshare", "--mount", "slurmd", "-D", "-N", "cpu1")
    pid = slurm.running["cpu1"].pid
    wait_for(lambda: _starts_tasks(slurm), 60)

    def inside(*command: str) -> None:
        subprocess.run(["nsenter", f"--target={pid}", "--mount", *command], check=True, timeout=30)

    yield inside
    wait_for(slurm.ready, 60)
    slurm.kill("cpu1")
    slurm.start_node("cpu1")
    wait_for(lambda: _starts_tasks(slurm), 60)


def _starts_tasks(slurm: Slurm) -> bool:
    """Whether every node does: slurmctld takes a while to notice that one was away."""
    try:
        slurm.call("srun", "--nodes=4", "--ntasks-per-node=1", "--immediate=5", "--mpi=none", "true")
    except subprocess.SubprocessError:
        return False
    return slurm.ready()


def test_nothing_is_missing_on_any_node(on_slurm: SlurmBench) -> None:
    checked = on_slurm.backend.check()
    assert (checked.nodes, checked.lacking) == (NODES, ())
    assert list(on_slurm.root.iterdir()) == []


def test_where_few_nodes_are_free_one_is_tried(on_slurm: SlurmBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ontonodes, "_TASK", (*ontonodes._TASK, "--constraint=slow"))
    assert on_slurm.backend.check().nodes == ("cpu2",)


def test_a_cluster_asked_by_rest_is_tried_by_the_command_line(on_slurm: SlurmBench, slurm: Slurm) -> None:
    config = SlurmConfig.from_settings(on_slurm.folder, {**on_slurm.told, **by_rest(slurm)})
    assert SlurmBackend(config).check().nodes == NODES


def test_a_folder_that_a_node_does_not_see_is_named(on_slurm: SlurmBench, apart: Callable[..., None]) -> None:
    apart("mount", "-t", "tmpfs", "none", str(on_slurm.root))
    told = "".join(on_slurm.backend.check().lacking)
    assert told.startswith(f"The folder {on_slurm.root} is not shared: what the console")


def test_a_user_that_a_node_does_not_know_is_named(on_slurm: SlurmBench, apart: Callable[..., None]) -> None:
    known = on_slurm.folder / "passwd"
    known.write_text("somebody:x:0:0::/:/bin/sh\n")
    apart("mount", "--bind", str(known), "/etc/passwd")
    told = "".join(on_slurm.backend.check().lacking)
    assert told.startswith("The user root is unknown on cpu1, or has another number there")


def test_where_no_node_is_free_it_says_so(on_slurm: SlurmBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ontonodes, "_TASK", (*ontonodes._TASK, "--constraint=none-such"))
    with pytest.raises(Unreachable, match=r"No node could be tried\. srun says: "):
        on_slurm.backend.check()

"""What has to be there before the first job, each taken away in turn."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import CheckReport, NotSubmitted, Unreachable
from jobs.backends.slurm.backend import SlurmBackend
from jobs.backends.slurm.client import prerequisites
from jobs.backends.slurm.client.programs import Programs
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.identity import visibility
from jobs.backends.slurm.script import node_preflight
from jobs.states import State
from tests.jobs.backends.benches import wait_until_over
from tests.jobs.backends.slurm_bench import Releasing, SlurmBench, by_rest
from tests.slurm import NODES, Slurm, of_munge
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


def with_another_key(bench: SlurmBench) -> SlurmConfig:
    """A munged beside the cluster's own, which goes with the bench's Slurm."""
    name = f"munged-{secrets.token_hex(4)}"
    base = bench.slurm.base / name
    (base / "munge").mkdir(parents=True)
    key, socket = base / "munge" / "key", base / "munge" / "socket"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    bench.slurm.start(name, "munged", "--foreground", *of_munge(base))
    wait_for(socket.exists)
    return configured(bench, r"AuthInfo=.*", f"AuthInfo=socket={socket}", 30)


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
    ("slurmctld does not accept what munge signs", with_another_key),
    ("There is no folder /nowhere", lambda bench: replace(bench.config, root=Path("/nowhere"))),
]


@pytest.mark.parametrize(("told", "without"), TAKEN, ids=[told for told, _ in TAKEN])
def test_missing_prerequisite_is_named(
    on_slurm: SlurmBench, told: str, without: Callable[[SlurmBench], SlurmConfig]
) -> None:
    assert on_slurm.backend.inventory().nodes
    with pytest.raises(Unreachable) as missing:
        SlurmBackend(without(on_slurm)).inventory()
    assert told in str(missing.value)


def test_console_creates_its_own_folder_but_no_configured_one(on_slurm: SlurmBench) -> None:
    told = {**on_slurm.told, "partitions": {}}
    home = on_slurm.folder / "home"
    home.mkdir(mode=0o700)
    own = SlurmBackend(SlurmConfig.from_settings(home, {**told, "folder": ""}))
    assert own.check().nodes == NODES
    assert stat.S_IMODE((home / "jobs").stat().st_mode) == 0o700
    named = home / "not-mounted"
    away = SlurmBackend(SlurmConfig.from_settings(home, {**told, "folder": str(named)}))
    with pytest.raises(Unreachable, match="There is no folder"):
        away.check()
    with pytest.raises(NotSubmitted):
        away.submit(on_slurm.submission())
    assert not named.exists()


def test_first_job_creates_console_folder(on_slurm: SlurmBench) -> None:
    home = on_slurm.folder / "home"
    home.mkdir(mode=0o700)
    config = SlurmConfig.from_settings(home, {**on_slurm.told, "folder": ""})
    handle = Releasing(config).submit(on_slurm.submission())
    assert wait_until_over(SlurmBackend(config), handle).state is State.SUCCEEDED


def test_missing_slurm_conf_is_reported(on_slurm: SlurmBench) -> None:
    """Without one, Slurm's programs ask the DNS, which may take its time."""
    if Path("/etc/slurm/slurm.conf").exists():
        pytest.skip("this machine has one of its own")
    config = replace(on_slurm.config, configuration="", timeout_s=60)
    with pytest.raises(Unreachable, match=r"^There is no slurm\.conf: install the cluster's, or name it"):
        SlurmBackend(config).inventory()


def test_unwritable_folder_is_named(on_slurm: SlurmBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prerequisites, "_is_writable", lambda _: False)  # root may write everywhere
    with pytest.raises(Unreachable, match="may not write into"):
        prerequisites.check(on_slurm.config)


# --- what only the nodes can tell ------------------------------------------------------------------------


@pytest.fixture
def mounted(slurm: Slurm) -> Iterator[Callable[..., None]]:
    """Lays something over a place as one node sees it, and takes it away again."""
    places: list[str] = []

    def mount(place: Path, *options: str) -> None:
        slurm.in_apart("mount", *options, str(place))
        places.append(str(place))

    wait_for(slurm.ready, 60)
    yield mount
    for place in places:
        slurm.in_apart("umount", "--lazy", place)


def test_check_finds_nothing_missing_on_nodes(on_slurm: SlurmBench) -> None:
    checked = SlurmBackend(replace(on_slurm.config, partitions={})).check()
    assert checked == CheckReport(NODES)
    assert list(on_slurm.root.iterdir()) == []


def test_check_with_few_free_nodes_tries_one(on_slurm: SlurmBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_preflight, "_TASK", (*node_preflight._TASK, "--constraint=slow"))
    assert on_slurm.backend.check().nodes == ("cpu2",)


def test_check_of_rest_cluster_uses_command_line(on_slurm: SlurmBench, slurm: Slurm) -> None:
    config = SlurmConfig.from_settings(on_slurm.folder, {**on_slurm.told, **by_rest(slurm)})
    assert SlurmBackend(config).check().nodes == NODES


def test_folder_not_shared_with_node_is_named(on_slurm: SlurmBench, mounted: Callable[..., None]) -> None:
    mounted(on_slurm.root, "-t", "tmpfs", "none")
    told = "".join(on_slurm.backend.check().lacking)
    assert told.startswith(f"The folder {on_slurm.root} is not shared: what the console")


def test_folder_read_only_on_node_is_named(on_slurm: SlurmBench, mounted: Callable[..., None]) -> None:
    mounted(on_slurm.root, "--bind", "-o", "ro", str(on_slurm.root))
    told = "".join(on_slurm.backend.check().lacking)
    assert told.startswith(f"Jobs may not write into {on_slurm.root} on cpu1: give it to the user root there")


def test_user_unknown_on_node_is_named(on_slurm: SlurmBench, mounted: Callable[..., None]) -> None:
    known = on_slurm.folder / "passwd"
    known.write_text("somebody:x:0:0::/:/bin/sh\n")
    mounted(Path("/etc/passwd"), "--bind", str(known))
    told = "".join(on_slurm.backend.check().lacking)
    assert told.startswith("The user root is unknown on cpu1, or has another number there")


def test_user_unknown_to_slurmctld_is_named(on_slurm: SlurmBench) -> None:
    programs = on_slurm.folder / "bin"
    programs.mkdir()
    for name in prerequisites.PROGRAMS:
        (programs / name).symlink_to(f"/usr/bin/{name}")
    as_nobody_known = "exec setpriv --reuid=54321 --regid=54321 --clear-groups /usr/bin/srun"
    (programs / "srun").write_text(f'#!/bin/sh\n{as_nobody_known} "$@"\n')
    (programs / "srun").chmod(0o755)
    with pytest.raises(Unreachable, match="slurmctld does not know the console's user: make it where"):
        SlurmBackend(replace(on_slurm.config, programs=str(programs))).check()


def test_check_without_free_node_raises_unreachable(
    on_slurm: SlurmBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_preflight, "_TASK", (*node_preflight._TASK, "--constraint=none-such"))
    with pytest.raises(Unreachable, match=r"No node could be tried\. srun says: "):
        on_slurm.backend.check()


def test_node_without_python_is_remarked(on_slurm: SlurmBench) -> None:
    checked = SlurmBackend(replace(on_slurm.config, partitions={}, python="/nowhere/python3")).check()
    assert (checked.nodes, checked.lacking) == (NODES, ())
    assert checked.remarks[0].startswith(
        "There is no /nowhere/python3 of version 3.11 or newer on cpu1, cpu2"
    )


# --- what the settings name --------------------------------------------------------


@pytest.mark.parametrize("said", [{"partition": "none-such"}, {"partitions": {"vision": "none-such"}}])
def test_unknown_partition_in_settings_is_named(on_slurm: SlurmBench, said: dict[str, Any]) -> None:
    [setting] = said
    config = replace(on_slurm.config, **{"partitions": {}, **said})
    [told] = prerequisites.find_refused(config, Programs(config), "root")
    assert told.startswith(
        "Slurm takes no job of root with --partition=none-such, which the cluster's setting"
    )
    assert f" {setting} names: invalid partition specified" in told


def test_check_tries_partitions_from_settings(on_slurm: SlurmBench) -> None:
    config = replace(on_slurm.config, partitions={"vision": "gpu", "speech": "none-such"})
    [told] = SlurmBackend(config).check().lacking
    assert "--partition=none-such" in told


def test_slurm_visibility_is_checked_only_once(on_slurm: SlurmBench, monkeypatch: pytest.MonkeyPatch) -> None:
    visibility.check(on_slurm.config)
    monkeypatch.setattr(visibility, "describe_hidden", lambda _config: "It is hidden.")
    visibility.check(on_slurm.config)

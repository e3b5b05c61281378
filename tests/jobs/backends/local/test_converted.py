"""The vendors' samples that need nothing which is not here run here, whatever dialect they went through."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs import dialects
from jobs.backends.base import Refused
from jobs.backends.staging.code_sources import RegisteredCode
from jobs.facilities import StorageMapping
from jobs.node.sandbox.folders import SharedFolderRule
from jobs.spec import Resources
from jobs.states import TERMINAL, State
from tests.jobs.backends.benches import LocalBench, log_of, wait_until_over
from tests.jobs.backends.local import goods
from tests.seeds import SEEDS, Seed, converted
from tests.waiting import wait_for

SAYS = {seed.file: seed.says for seed in SEEDS if seed.says}
"""File → what is in its log."""

LOOK = "cat /mnt/data/file /mnt/cluster/file /root/code/file 2>/dev/null; true"

ROOM = Resources(cpu_milli=500, memory_mib=512)
UNHIDDEN = {"branch": "main", "commit": ""}
"""What the page shows with asterisks."""

NEEDS_MORE = {"dlc-sdk-public.json", "dlc-tfjob.json", "aihc-pytorchjob.json"}
"""They mount a dataset, a file system or a code source that only their own system knows."""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[LocalBench]:
    made = LocalBench(tmp_path, {"engine": "none", "allow_plain": True, "gpus": {"TITANX": 1}})
    yield made
    made.close()


def test_vendor_samples_are_all_classified() -> None:
    assert {seed.file for seed in SEEDS} == SAYS.keys() | NEEDS_MORE


@pytest.mark.parametrize("target", dialects.NAMES)
def test_vendor_samples_run_after_conversion(target: str, machine: LocalBench) -> None:
    """One after the other on one machine: each says its first words, and is over or can be stopped."""
    for seed in {seed.file: seed for seed in SEEDS if seed.file in SAYS}.values():
        spec = converted(seed, target)
        handle = machine.backend.submit(machine.submission(**dict(spec)))
        (role,) = spec.roles
        wait_for(lambda: SAYS[seed.file] in log_of(machine.backend, handle, role.name))  # noqa: B023 - used up here
        machine.backend.stop(handle, grace_s=0, signal="KILL")
        assert wait_until_over(machine.backend, handle).state in TERMINAL


def test_hello_sample_succeeds_in_every_dialect(machine: LocalBench) -> None:
    (seed,) = {seed.file: seed for seed in SEEDS if seed.file == "dlc-sdk-quota.json"}.values()
    for target in dialects.NAMES:
        handle = machine.backend.submit(machine.submission(**dict(converted(seed, target))))
        assert wait_until_over(machine.backend, handle).state is State.SUCCEEDED


@pytest.mark.parametrize("seed", [seed for seed in SEEDS if seed.file in NEEDS_MORE], ids=str)
def test_vendor_sample_with_unknown_resources_is_refused_with_reason(seed: Seed, machine: LocalBench) -> None:
    with pytest.raises(Refused) as caught:
        machine.backend.submit(machine.submission(**dict(seed.spec)))
    assert caught.value.reason.params["why"] in ("code_unknown", "mount_unknown", "mount_elsewhere")


@pytest.mark.parametrize("target", dialects.NAMES)
def test_vendor_sample_runs_once_admin_maps_its_resources(target: str, tmp_path: Path, place: Path) -> None:
    """Data sets, a file system and a code source of other systems, that are folders here."""
    goods.repository(place / "repo")
    (place / "repo" / "requirements.txt").write_text("# the page hides the rest\n")
    goods.git(place / "repo", "add", ".")
    goods.git(place / "repo", "commit", "--quiet", "--message", "requirements")
    sets = str(place / "sets")
    machine = LocalBench(
        tmp_path,
        {
            "engine": "none",
            "allow_plain": True,
            "folders": (SharedFolderRule.from_settings(str(place), {"workspaces": ["*"]}),),
            "code_sources": {"code-****": RegisteredCode(f"file://{place}/repo", path="/root/code")},
        },
        {
            "d-example": StorageMapping(sets, "/mnt/data"),
            "d-*****": StorageMapping(sets, "/mnt/data"),
            "pfs://pfs-pxE6jz": StorageMapping(sets, "/mnt/cluster"),
        },
    )
    for seed in {seed.file: seed for seed in SEEDS if seed.file in NEEDS_MORE}.values():
        spec = converted(seed, target)
        changed = {"command": LOOK, "resources": ROOM}
        roles = [one.model_copy(update=changed) for one in spec.roles]
        code = spec.code and spec.code.model_copy(update=UNHIDDEN)
        needed = spec.requirements.model_copy(update={"packages": ()})  # none for a Python of today
        mounts = [mount for mount in spec.mounts if mount.id or mount.path]
        handle = machine.backend.submit(
            machine.submission(**{**dict(spec), "roles": tuple(roles), "code": code, "requirements": needed})
        )
        wait_until_over(machine.backend, handle, timeout=60)
        said = log_of(machine.backend, handle, roles[0].name)
        assert (not mounts) or "of the set" in said, (seed, said)
        assert spec.code is None or "two" in said, (seed, said)
    machine.close()
